"""Relevance of papers to authors and citing papers, and vectors fitted to it (Chang 2022, eq. 3.12, 3.13).

Shape letters: N papers, K facets, D dimensions, J authors or citing papers, P pairs.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_facets", "fit_shared", "fit_vector", "relevance_score"]

_FIT_STEPS = 6


def relevance_score(facets_NKD: NDArray[np.float32], table_JD: NDArray[np.float32]) -> NDArray[np.float32]:
    """``max(0, max_k a_j . p_nk)``, ``[N, J]``, magnitudes kept; in ``[0, inf)``.

    Args:
        facets_NKD: Facets with their magnitudes.
        table_JD: Vectors of authors or citing papers.

    References:
        Chang 2022, eq. 3.13.
    """
    scores = np.zeros((len(facets_NKD), len(table_JD)), dtype=np.float32)
    for facet in range(facets_NKD.shape[1]):  # K products of matrices: no [N, K, J] array
        np.maximum(scores, facets_NKD[:, facet] @ table_JD.T, out=scores)
    return scores


def best_facets(facets_NKD: NDArray[np.float32], vector_D: NDArray[np.float32]) -> NDArray[np.int64]:
    """The facet of each paper with the greatest product, ``[N]``."""
    return np.asarray((facets_NKD @ vector_D).argmax(axis=1), dtype=np.int64)


def fit_vector(
    papers_NKD: NDArray[np.float32],
    others_MKD: NDArray[np.float32],
    *,
    negative_weight: float = 1.0,
    ridge: float = 1.0,
) -> NDArray[np.float32]:
    """The vector of a new author (citing paper) from his or her papers: eq. 3.12 minimised for one column.

    ``min_a sum_n (max_k a.p_nk - 1)^2 + N negative_weight mean_m max(0, max_k a.p_mk)^2 + ridge |a|^2`` by
    alternating between the best facets and the solution for fixed facets, which is a linear system.

    Args:
        papers_NKD: Facets with magnitudes of the author's papers, at least one.
        others_MKD: The same of papers that stand for all others.
        negative_weight: As in training.
        ridge: What keeps the vector small.

    Returns:
        ``[D]`` float32, the best of the steps.
    """
    papers = papers_NKD.astype(np.float64)
    others = others_MKD.astype(np.float64)
    weight = negative_weight * len(papers) / max(1, len(others))
    vector = papers.mean(axis=(0, 1))
    vector /= max(float(vector @ vector), 1e-9)
    best, best_loss = vector, np.inf
    for _ in range(_FIT_STEPS):
        own = np.take_along_axis(papers, (papers @ vector).argmax(axis=1)[:, None, None], axis=1)[:, 0]
        products = others @ vector
        other = np.take_along_axis(others, products.argmax(axis=1)[:, None, None], axis=1)[:, 0]
        other = other[products.max(axis=1) > 0]
        left = own.T @ own + weight * other.T @ other + ridge * np.eye(papers.shape[2])
        vector = np.linalg.solve(left, own.sum(axis=0))
        loss = fit_loss(vector, papers, others, weight, ridge)
        if loss >= best_loss:
            break
        best, best_loss = vector, loss
    return best.astype(np.float32)


def fit_loss(
    vector_D: NDArray[np.float64],
    papers_NKD: NDArray[np.float64],
    others_MKD: NDArray[np.float64],
    weight: float,
    ridge: float,
) -> float:
    """What ``fit_vector`` minimises."""
    own = (papers_NKD @ vector_D).max(axis=1)
    other = np.maximum(0.0, (others_MKD @ vector_D).max(axis=1))
    return float(((own - 1) ** 2).sum() + weight * (other**2).sum() + ridge * vector_D @ vector_D)


def fit_shared(
    facets_PD: NDArray[np.float32],
    columns_P: NDArray[np.int64],
    *,
    num_columns: int,
    second_moment_DD: NDArray[np.floating],
    negative_weight: float = 1.0,
    ridge: float = 1.0,
) -> NDArray[np.float32]:
    """Vectors of many columns at once, for papers of one facet and negatives that are all papers.

    Each column j with papers P_j: ``min_a sum (a.p - 1)^2 + |P_j| negative_weight mean_all (a.p)^2 + ridge |a|^2``.

    Args:
        facets_PD: The paper of each pair.
        columns_P: The column of each pair.
        num_columns: J; a column without a pair gets a zero vector.
        second_moment_DD: Mean of ``p p^T`` over all papers.
        negative_weight: As in training.
        ridge: What keeps the vectors small.

    Returns:
        ``[J, D]`` float32.
    """
    dim = facets_PD.shape[1]
    order = np.argsort(columns_P, kind="stable")
    facets, columns = facets_PD[order], columns_P[order]
    bounds = np.searchsorted(columns, np.arange(num_columns + 1))
    counts = np.diff(bounds)
    result = np.zeros((num_columns, dim), dtype=np.float32)
    # Columns of equal count share all of the left side but their own papers: (A_c + P^T P) a = P^T 1, by
    # the Woodbury identity a = G 1 - G (I + P G)^-1 P G 1 with G = A_c^-1 P^T, systems of |P_j| unknowns.
    for count in np.unique(counts[counts > 0]):
        chosen = np.flatnonzero(counts == count)
        left = count * negative_weight * second_moment_DD + ridge * np.eye(dim)
        inverse = np.linalg.inv(left).astype(np.float32)
        papers_JCD = facets[bounds[chosen][:, None] + np.arange(count)]
        spread_JCD = papers_JCD @ inverse
        gram_JCC = spread_JCD @ papers_JCD.transpose(0, 2, 1)
        ones = np.ones((len(chosen), int(count), 1), dtype=np.float32)
        inner = np.linalg.solve(gram_JCC + np.eye(int(count), dtype=np.float32), ones)
        # (A + P^T P)^-1 P^T 1 = A^-1 P^T (I + P A^-1 P^T)^-1 1
        result[chosen] = (spread_JCD * inner).sum(axis=1)
    return result
