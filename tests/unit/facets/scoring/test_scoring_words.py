"""Word-based scores against loops and known cases."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from facets import scoring


def _words(seed: int, texts: int, length: int, dim: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(texts, length, dim, generator=generator), dim=-1)


WEIGHTS = torch.tensor([[1.0, 2.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
PROBABILITIES = torch.tensor([[0.0, 1e-4, 0.5, 1e-2], [3e-4, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]])


def test_averages_equal_the_loop() -> None:
    words = _words(1, 3, 4)
    plain = scoring.average(words, WEIGHTS)
    by_probability = scoring.probability_average(words, PROBABILITIES, WEIGHTS)
    for text in range(3):
        known = [i for i in range(4) if WEIGHTS[text, i] > 0]
        for result, weight_of in ((plain, lambda p: 1.0), (by_probability, lambda p: 1e-4 / (1e-4 + p))):
            expected = np.zeros(5)
            for i in known:
                factor = float(WEIGHTS[text, i]) * weight_of(float(PROBABILITIES[text, i]))
                expected += factor * words[text, i].double().numpy() / len(known)
            np.testing.assert_allclose(result[text].numpy(), expected, atol=1e-6)


def test_common_component_is_the_first_singular_vector() -> None:
    vectors = _words(4, 40, 1)[:, 0] + torch.tensor([0.0, 0.0, -2.0, 0.0, 0.0])
    component = scoring.fit_common_component(vectors)
    expected = np.linalg.svd(vectors.numpy(), full_matrices=False)[2][0]
    assert abs(float(component @ torch.from_numpy(expected))) == pytest.approx(1, abs=1e-5)
    assert component[2] > 0.9  # the sign does not depend on the solver
    assert component.norm().item() == pytest.approx(1, abs=1e-6)


def test_sif_has_nothing_left_of_the_common_component() -> None:
    words = _words(5, 3, 4)
    component = scoring.fit_common_component(scoring.probability_average(words, PROBABILITIES, WEIGHTS))
    vectors = scoring.sif(words, PROBABILITIES, WEIGHTS, common_component_D=component)
    torch.testing.assert_close(vectors @ component, torch.zeros(3), atol=1e-6, rtol=0)
    removed = scoring.probability_average(words, PROBABILITIES, WEIGHTS) - vectors
    torch.testing.assert_close(removed[0], (removed[0] @ component) * component, atol=1e-6, rtol=0)


def test_cosine_score_of_zero_is_zero() -> None:
    first = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    second = torch.tensor([[6.0, 8.0], [1.0, 0.0], [-2.0, 0.0]])
    assert scoring.cosine_score(first, second).tolist() == pytest.approx([1.0, 0.0, -1.0])


class TestWordMoversDistance:
    @pytest.fixture(autouse=True)
    def _needs_pot(self) -> None:
        pytest.importorskip("ot", reason="the extra 'wmd' is not installed")

    def test_hand_made_transport(self) -> None:
        # A quarter of the weight must travel from the first word to the second.
        first, second = torch.eye(2)[None], torch.eye(2)[None]
        score = scoring.wmd(first, torch.tensor([[3.0, 1.0]]), second, torch.tensor([[2.0, 2.0]]))
        assert score.item() == pytest.approx(-0.25, abs=1e-6)

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 1000), num_first=st.integers(1, 5), num_second=st.integers(1, 5))
    def test_equals_the_linear_programme(self, seed: int, num_first: int, num_second: int) -> None:
        from scipy.optimize import linprog

        first, second = _words(seed, 1, num_first), _words(seed + 1, 1, num_second)
        weights = torch.rand(num_first + num_second, generator=torch.Generator().manual_seed(seed)) + 0.1
        from_weights, to_weights = weights[:num_first], weights[num_first:]
        score = scoring.wmd(first, from_weights[None], second, to_weights[None])
        costs = 1 - first[0].double().numpy() @ second[0].double().numpy().T
        rows = np.kron(np.eye(num_first), np.ones(num_second))
        columns = np.kron(np.ones(num_first), np.eye(num_second))
        masses = [from_weights.double().numpy(), to_weights.double().numpy()]
        solution = linprog(
            costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([m / m.sum() for m in masses])
        )
        assert -score.item() == pytest.approx(solution.fun, abs=1e-5)

    def test_padding_changes_nothing_and_symmetry_holds(self) -> None:
        first, second = _words(7, 1, 3), _words(8, 1, 4)
        score = scoring.wmd(first, torch.ones(1, 3), second, torch.ones(1, 4))
        padded = torch.cat([first, _words(9, 1, 2)], dim=1)
        mask = torch.tensor([[1.0, 1.0, 1.0, 0.0, 0.0]])
        torch.testing.assert_close(scoring.wmd(padded, mask, second, torch.ones(1, 4)), score)
        torch.testing.assert_close(scoring.wmd(second, torch.ones(1, 4), first, torch.ones(1, 3)), score)

    def test_text_without_words_is_as_far_as_unrelated_ones(self) -> None:
        words = _words(10, 1, 2)
        score = scoring.wmd(words, torch.zeros(1, 2), words, torch.ones(1, 2))
        assert score.item() == pytest.approx(-1)

    def test_probability_wmd_weighs_frequent_words_less(self) -> None:
        words = torch.eye(3)[None]
        ones, zeros = torch.ones(1, 2), torch.zeros(1, 2)
        first, second = words[:, [0, 1]], words[:, [0, 2]]
        plain = scoring.wmd(first, ones, second, ones)
        frequent = torch.tensor([[0.0, 1.0]])  # what differs is frequent
        score = scoring.probability_wmd(
            first, ones, second, ones, first_probabilities_PM=frequent, second_probabilities_PN=frequent
        )
        same = scoring.probability_wmd(
            first, ones, second, ones, first_probabilities_PM=zeros, second_probabilities_PN=zeros
        )
        assert same.item() == pytest.approx(plain.item())
        assert plain.item() < -0.4 < -0.001 < score.item()


def test_wmd_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"multifacet\[wmd\]"):
        scoring.wmd(torch.zeros(1, 1, 2), torch.ones(1, 1), torch.zeros(1, 1, 2), torch.ones(1, 1))
