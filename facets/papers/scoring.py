"""Relevance of papers to authors and citing papers, and vectors fitted to it (Chang 2022, eq. 3.12, 3.13).

Shape letters: N papers, K facets, D dimensions, J authors or citing papers.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_vector", "reference_relevance", "relevance_score", "spread_matrix"]

_FIT_STEPS = 8
_SPREAD_POWER = 0.5
_SPREAD_FLOOR = 0.02  # of the mean variance, for directions that facets hardly use


def relevance_score(facets_NKD: NDArray[np.float32], table_JD: NDArray[np.float32]) -> NDArray[np.float32]:
    """``max(0, max_k a_j . p_nk)``, ``[N, J]``, magnitudes kept; in ``[0, inf)``.

    Args:
        facets_NKD: Facets with their magnitudes.
        table_JD: Vectors of authors or citing papers.

    References:
        Chang 2022, eq. 3.13.

    Example:
        >>> facets = np.array([[[1.0, 0.0], [0.0, 2.0]]], dtype=np.float32)
        >>> relevance_score(facets, np.array([[0.5, 0.5], [-1.0, 0.0]], dtype=np.float32)).tolist()
        [[1.0, 0.0]]
    """
    scores = np.zeros((len(facets_NKD), len(table_JD)), dtype=np.float32)
    for facet in range(facets_NKD.shape[1]):  # K products of matrices: no [N, K, J] array
        np.maximum(scores, facets_NKD[:, facet] @ table_JD.T, out=scores)
    return scores


def reference_relevance(facets_NKD: NDArray[np.floating], table_JD: NDArray[np.floating]) -> NDArray[np.float64]:
    """``relevance_score`` the slow, obvious way, for tests."""
    scores = np.zeros((len(facets_NKD), len(table_JD)))
    for paper, facets_KD in enumerate(facets_NKD.astype(np.float64)):
        for column, vector_D in enumerate(table_JD.astype(np.float64)):
            scores[paper, column] = max(0.0, *(float(facet_D @ vector_D) for facet_D in facets_KD))
    return scores


def fit_vector(
    papers_NKD: NDArray[np.float32], *, length: float, spread_DD: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """The vector of a new author (citing paper) from his or her papers, by the rule of the training.

    ``max_a sum_n max_k a . p_nk`` over all a of the given length: the sum of the facets that the papers offer, each
    its best one, brought to that length; alternated with the choice of the facets until it stands.

    Args:
        papers_NKD: Facets with magnitudes of the papers, at least one.
        length: That of the trained vectors.
        spread_DD: What the sum is multiplied by in the end (``spread_matrix``); None: nothing.

    Returns:
        ``[D]`` float32.

    References:
        Chang 2022, eq. 3.12, for one column and facets that are spread evenly.
    """
    # The first choice: the facet nearest to all facets together.
    vector_D = papers_NKD.sum(axis=(0, 1), dtype=np.float64)
    chosen_N = np.full(len(papers_NKD), -1)
    for _ in range(_FIT_STEPS):
        best_N = (papers_NKD @ vector_D).argmax(axis=1)
        if (best_N == chosen_N).all():
            break
        chosen_N = best_N
        vector_D = papers_NKD[np.arange(len(papers_NKD)), chosen_N].sum(axis=0, dtype=np.float64)
    if spread_DD is not None:
        vector_D = spread_DD @ vector_D
    norm = float(np.linalg.norm(vector_D))
    return (vector_D * (length / norm) if norm > 0 else vector_D).astype(np.float32)


def spread_matrix(facets_PD: NDArray[np.float32]) -> NDArray[np.float32]:
    """``C^(-1/2)`` of the second moment ``C`` of facets, ``[D, D]``: takes weight from what all papers share.

    Where facets are not spread evenly, the vector that minimises eq. 3.12 is ``(C + ...)^-1`` times the sum of the
    matched facets. The full inverse trusts rare directions too much; of the powers 0, 1/4, 1/2, 3/4 and 1 the
    half did best on development data.

    Args:
        facets_PD: Facets with magnitudes of many papers.
    """
    if not len(facets_PD):
        return np.eye(facets_PD.shape[1], dtype=np.float32)
    variances, axes = np.linalg.eigh(facets_PD.T @ facets_PD / len(facets_PD))
    variances = np.maximum(variances, 0.0) / max(float(variances.mean()), 1e-12) + _SPREAD_FLOOR
    return ((axes * variances**-_SPREAD_POWER) @ axes.T).astype(np.float32)
