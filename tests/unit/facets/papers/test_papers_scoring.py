"""Relevance scores and the choice of the best, against slow references."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from facets.papers.scoring import best_columns, relevance_score


def facets(num_papers: int, num_facets: int = 3, dim: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_papers, num_facets, dim)).astype(np.float32)


def reference_relevance(papers: np.ndarray, table: np.ndarray) -> np.ndarray:
    """``relevance_score`` computed pair by pair."""
    return np.array([[max(0.0, *(float(facet @ vector) for facet in own)) for vector in table] for own in papers])


def test_relevance_equals_the_reference() -> None:
    papers, table = facets(5), facets(7, 1, seed=1)[:, 0]
    assert_allclose(relevance_score(papers, table), reference_relevance(papers, table), atol=1e-5)


@given(
    st.lists(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=6, max_size=6), max_size=4),
    st.permutations(range(6)),
    st.integers(1, 8),
)
def test_best_columns_are_those_of_sorting(rows: list[list[float]], ranks: list[int], top_k: int) -> None:
    scores = np.array(rows, dtype=np.float32).reshape(-1, 6)
    columns, best = best_columns(scores, top_k, ranks=lambda: np.array(ranks))
    for row, own in enumerate(rows):
        expected = sorted((c for c in range(6) if own[c] > -np.inf), key=lambda c: (-own[c], ranks[c]))[:top_k]
        assert [column for column in columns[row] if column >= 0] == expected
        assert best[row, : len(expected)].tolist() == [own[column] for column in expected]
