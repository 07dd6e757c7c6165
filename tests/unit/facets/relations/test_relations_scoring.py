import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from facets.relations.scoring import (
    asymmetric_score,
    asymmetric_scores,
    symmetric_score,
)


def facets(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_asymmetric_score_equals_the_reference(seed: int, num_first: int, num_second: int) -> None:
    first, second = facets(seed, 3, num_first, 8), facets(seed + 1, 3, num_second, 8)
    slow = [
        sum(max(float(cosine_similarity(one, other, dim=0)) for one in a) for other in b) / len(b)
        for a, b in zip(first, second, strict=True)
    ]
    assert asymmetric_score(first, second).tolist() == pytest.approx(slow, abs=1e-5)


@pytest.mark.parametrize("at_a_time", [1, 50, 16_000_000])
def test_all_pairs_equal_single_pairs_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    monkeypatch.setattr("facets.relations.scoring.COSINES_AT_A_TIME", at_a_time)
    patterns, relations = facets(1, 7, 3, 8), facets(2, 4, 5, 8)
    forward, backward = asymmetric_scores(patterns, relations)
    for column, relation in enumerate(relations):
        expanded = relation.expand(7, 5, 8)
        assert torch.allclose(forward[:, column], asymmetric_score(patterns, expanded), atol=1e-6)
        assert torch.allclose(backward[:, column], asymmetric_score(expanded, patterns), atol=1e-6)
        mean = (forward[:, column] + backward[:, column]) / 2
        assert torch.allclose(mean, symmetric_score(patterns, expanded), atol=1e-6)
    assert asymmetric_scores(torch.empty(0, 3, 8), relations)[0].shape == (0, 4)
