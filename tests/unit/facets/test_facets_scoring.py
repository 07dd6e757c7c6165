"""Scores against loops that spell the equations out, linear programmes and known cases."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from torch import Tensor

from facets import scoring


def _facets(seed: int, texts: int, num_facets: int, dim: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(texts, num_facets, dim, generator=generator) + 0.5


def _unit(vector: Tensor) -> np.ndarray:
    return (vector / vector.norm()).double().numpy()


def _reference_error(sources: Tensor, targets: Tensor) -> float:
    """Er of eq. 3.1 on unit facets, the mean over the targets."""
    sources_DK = np.stack([_unit(c) for c in sources], axis=1)
    return float(np.mean([2 * lsq_linear(sources_DK, _unit(c), bounds=(0, 1)).cost for c in targets]))


def test_codebook_score_equals_minus_both_errors() -> None:
    first, second = _facets(1, 3, 4), _facets(2, 3, 4)
    expected = [-_reference_error(a, b) - _reference_error(b, a) for a, b in zip(first, second, strict=True)]
    scores = scoring.codebook_score(first, second)
    np.testing.assert_allclose(scores.numpy(), expected, atol=2e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), num_facets=st.integers(1, 6))
def test_codebook_score_is_symmetric_in_range_and_blind_to_order_and_length(seed: int, num_facets: int) -> None:
    first, second = _facets(seed, 2, num_facets), _facets(seed + 1, 2, num_facets)
    scores = scoring.codebook_score(first, second)
    assert scores.min() >= -2 and scores.max() <= 0
    torch.testing.assert_close(scoring.codebook_score(second, first), scores)
    other = 3.0 * first.flip(1)
    torch.testing.assert_close(scoring.codebook_score(other, second), scores, atol=5e-3, rtol=0)


def test_codebook_score_passes_over_facets_of_length_zero() -> None:
    first, second = _facets(1, 3, 2), _facets(2, 3, 4)
    padded = torch.cat([first, torch.zeros(3, 5, 6)], dim=1)
    torch.testing.assert_close(scoring.codebook_score(padded, second), scoring.codebook_score(first, second))
    contributions = scoring.codebook_contributions(padded, second)
    torch.testing.assert_close(contributions[:, :2], scoring.codebook_contributions(first, second))
    assert not contributions[:, 2:].any()


def test_codebook_contributions_add_up_to_the_score() -> None:
    first, second = _facets(3, 5, 4).abs(), _facets(4, 5, 4).abs()
    contributions = scoring.codebook_contributions(first, second)
    assert contributions.shape == (5, 4, 4)
    assert contributions.min() >= 0
    score = scoring.codebook_score(first, second)
    torch.testing.assert_close(contributions.sum(dim=(1, 2)) - 2, score, atol=1e-4, rtol=0)


@pytest.mark.parametrize("repetition", [0.3, 0.5, 1.0])
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_coverage_gain_is_what_the_sentence_adds_and_never_grows(repetition: float, seed: int) -> None:
    words = torch.nn.functional.normalize(_facets(seed, 1, 8)[0] - 0.5, dim=-1)
    covered = scoring.word_coverage(_facets(seed + 1, 5, 2), words)
    weights = torch.full((8,), 1 / 8)
    powers = covered ** (1 / repetition)
    small, large = powers[0], powers[0] + powers[1]
    gains_small = scoring.coverage_gain(powers, small, weights, repetition=repetition)
    gains_large = scoring.coverage_gain(powers, large, weights, repetition=repetition)
    assert (gains_large >= 0).all() and (gains_large <= gains_small + 1e-5).all()
    before = scoring.added_coverage(covered[:1], repetition) @ weights
    for s in range(5):
        after = scoring.added_coverage(covered[[0, s]], repetition) @ weights
        assert gains_small[s].item() == pytest.approx((after - before).item(), abs=1e-5)


def test_word_weights_and_coverage_equal_the_loop() -> None:
    words = torch.nn.functional.normalize(_facets(5, 2, 7), dim=-1)
    facets = _facets(6, 2, 3)
    mask = torch.arange(7) < torch.tensor([7, 4])[:, None]
    attention = scoring.attention(words, facets)
    closest = scoring.closest_facet_weight(words, facets, mask)
    for text in range(2):
        covered = scoring.word_coverage(facets[text : text + 1], words[text])
        for word in range(7):
            cosines = [max(0.0, float(words[text, word].double().numpy() @ _unit(c))) for c in facets[text]]
            assert attention[text, word].item() == pytest.approx(sum(cosines), abs=1e-5)
            assert closest[text, word].item() == pytest.approx(max(cosines) * mask[text, word].item(), abs=1e-5)
            assert covered[0, word].item() == pytest.approx(max(cosines), abs=1e-5)


def test_best_facet_match_is_the_closest_pair() -> None:
    first, second = _facets(9, 6, 4), _facets(10, 6, 3) - 1.0  # many cosines are negative
    first[:, 1] = 0.0  # a zero facet never wins
    score, i, j = scoring.best_facet_match(first, second)
    for pair in range(6):
        cosines = {(a, b): float(_unit(first[pair, a]) @ _unit(second[pair, b])) for a in (0, 2, 3) for b in range(3)}
        best = max(cosines, key=cosines.__getitem__)
        assert (i[pair].item(), j[pair].item()) == best
        assert score[pair].item() == pytest.approx(cosines[best], abs=1e-5)


def _words(seed: int, texts: int, length: int, dim: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(texts, length, dim, generator=generator), dim=-1)


WEIGHTS = torch.tensor([[1.0, 2.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
PROBABILITIES = torch.tensor([[0.0, 1e-4, 0.5, 1e-2], [3e-4, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]])


def test_averages_equal_the_loop() -> None:
    words = _words(1, 3, 4)
    for factors in (torch.ones(3, 4), scoring.probability_weights(PROBABILITIES)):
        result = scoring.average(words, WEIGHTS * factors)
        for text in range(3):
            known = [i for i in range(4) if WEIGHTS[text, i] > 0]
            expected = sum((WEIGHTS[text, i] * factors[text, i] * words[text, i] for i in known), torch.zeros(5))
            torch.testing.assert_close(result[text], expected / max(1, len(known)))
    assert scoring.probability_weights(torch.tensor(3e-4)).item() == pytest.approx(0.25)


def test_common_component_is_the_first_singular_vector() -> None:
    vectors = _words(4, 40, 1)[:, 0] + torch.tensor([0.0, 0.0, -2.0, 0.0, 0.0])
    component = scoring.fit_common_component(vectors)
    expected = np.linalg.svd(vectors.numpy(), full_matrices=False)[2][0]
    assert abs(float(component @ torch.from_numpy(expected))) == pytest.approx(1, abs=1e-5)
    assert component[2] > 0.9  # the sign does not depend on the solver
    assert component.norm().item() == pytest.approx(1, abs=1e-6)


def test_cosine_score_of_zero_is_zero() -> None:
    first = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    second = torch.tensor([[6.0, 8.0], [1.0, 0.0], [-2.0, 0.0]])
    assert scoring.cosine_score(first, second).tolist() == pytest.approx([1.0, 0.0, -1.0])


class TestWordMoversDistance:
    @pytest.fixture(autouse=True)
    def _needs_pot(self) -> None:
        pytest.importorskip("ot", reason="the extra 'wmd' is not installed")

    @settings(max_examples=15)
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
        assert scoring.wmd(first, torch.zeros(1, 3), second, torch.ones(1, 4)).item() == -1  # as far as unrelated words


def test_wmd_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"multifacet\[wmd\]"):
        scoring.wmd(torch.zeros(1, 1, 2), torch.ones(1, 1), torch.zeros(1, 1, 2), torch.ones(1, 1))
