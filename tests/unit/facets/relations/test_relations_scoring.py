import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from facets.relations import RelationEngine
from facets.relations.scoring import (
    PatternCache,
    asymmetric_score,
    asymmetric_scores,
    distinct_facets,
    generality_score,
    reference_asymmetric_score,
    symmetric_score,
)


def facets(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_asymmetric_score_equals_the_reference(seed: int, num_first: int, num_second: int) -> None:
    first, second = facets(seed, 3, num_first, 8), facets(seed + 1, 3, num_second, 8)
    slow = [reference_asymmetric_score(a, b) for a, b in zip(first, second, strict=True)]
    assert asymmetric_score(first, second).tolist() == pytest.approx(slow, abs=1e-5)


@given(st.integers(0, 10_000))
def test_the_order_of_facets_and_their_lengths_change_nothing(seed: int) -> None:
    first, second = facets(seed, 2, 4, 8), facets(seed + 1, 2, 3, 8)
    score = asymmetric_score(first, second)
    assert torch.allclose(score, asymmetric_score(first.flip(1) * 3, second.flip(1) * 0.2), atol=1e-5)


def test_covering_more_is_no_entailment_the_other_way_round() -> None:
    both = torch.eye(2).unsqueeze(0)
    one = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    assert asymmetric_score(both, one).item() == pytest.approx(1.0)
    assert asymmetric_score(one, both).item() == pytest.approx(0.5)


def test_one_facet_has_no_direction() -> None:
    first, second = facets(1, 5, 1, 8), facets(2, 5, 1, 8)
    assert torch.equal(asymmetric_score(first, second), asymmetric_score(second, first))


def test_symmetric_score_is_the_mean_of_both_directions() -> None:
    first, second = facets(1, 5, 3, 8), facets(2, 5, 4, 8)
    mean = (asymmetric_score(first, second) + asymmetric_score(second, first)) / 2
    assert torch.allclose(symmetric_score(first, second), mean)
    assert torch.allclose(symmetric_score(second, first), mean)


def symmetric_scores(patterns: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
    """Means of both directions, by the fast way, ``[B, R]``."""
    forward, backward = asymmetric_scores(patterns, *distinct_facets(relations))
    return (forward + backward) / 2


@pytest.mark.parametrize("at_a_time", [1, 50, 16_000_000])
def test_all_pairs_equal_single_pairs_however_they_are_cut(monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    monkeypatch.setattr("facets.relations.scoring.COSINES_AT_A_TIME", at_a_time)
    patterns, relations = facets(1, 7, 3, 8), facets(2, 4, 5, 8)
    expected = torch.stack([symmetric_score(patterns, r.expand(7, 5, 8)) for r in relations], dim=1)
    assert torch.allclose(symmetric_scores(patterns, relations), expected, atol=1e-6)


def test_repeated_facets_count_as_often_as_they_stand_there() -> None:
    patterns, relations = facets(1, 7, 3, 8), facets(2, 4, 5, 8)
    relations[0, 1:4] = relations[0, 0]
    relations[1, :] = relations[1, 2]
    expected = torch.stack([symmetric_score(patterns, r.expand(7, 5, 8)) for r in relations], dim=1)
    assert torch.allclose(symmetric_scores(patterns, relations), expected, atol=1e-6)


def test_no_pattern_gives_no_score() -> None:
    assert symmetric_scores(torch.empty(0, 3, 8), facets(1, 4, 5, 8)).shape == (0, 4)


def test_coverage_is_the_mean_asymmetric_score_towards_others() -> None:
    pattern, others = facets(1, 1, 3, 8), facets(2, 6, 3, 8)
    expected = asymmetric_score(pattern.expand(6, 3, 8), others).mean()
    background = torch.nn.functional.normalize(others, dim=-1).flatten(0, 1)
    assert generality_score(pattern, background).item() == pytest.approx(expected.item(), abs=1e-6)


BORN, MET = ("$ARG1", "was", "born", "in", "$ARG2"), ("$ARG1", "met", "$ARG2")


class Counting:
    """Passes patterns on to a model and counts them."""

    def __init__(self, model) -> None:
        self.model = model
        self.encoded = []

    def encode_patterns(self, patterns):
        self.encoded += patterns
        return self.model.encode_patterns(patterns)


def test_patterns_are_encoded_once_and_stay_what_they_are(engine: RelationEngine) -> None:
    counting = Counting(engine.model)
    cache = PatternCache(counting)
    first, again = cache.encode([BORN, MET, BORN]), cache.encode([MET, BORN])
    assert counting.encoded == [BORN, MET]
    np.testing.assert_allclose(first, engine.model.encode_patterns([BORN, MET, BORN]), atol=1e-5)
    np.testing.assert_array_equal(again, first[[1, 2]])
    first[:] = 0.0
    np.testing.assert_array_equal(cache.encode([MET, BORN]), again)


def test_the_patterns_asked_for_longest_ago_are_forgotten(engine: RelationEngine) -> None:
    counting = Counting(engine.model)
    cache = PatternCache(counting, size=1)
    for pattern in (BORN, MET, MET, BORN):
        cache.encode([pattern])
    assert counting.encoded == [BORN, MET, BORN]
    assert cache.encode([]).shape[0] == 0
