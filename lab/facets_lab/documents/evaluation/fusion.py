"""Two signals made one: how scores of the same documents are put on one scale and summed.

Shape letters: C candidates of one query.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEFAULT_FUSION", "FUSIONS", "Fuse", "convex_sum", "reciprocal_ranks", "z_scores"]

Fuse = Callable[[NDArray[np.floating], NDArray[np.floating]], NDArray[np.float64]]
"""Scores of vectors ``[C]``, lexical scores ``[C]`` -> fused scores ``[C]``."""

_RANK_OFFSET = 60  # Cormack, Clarke and Buettcher 2009


def z_scores(scores_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores less their mean over their standard deviation; zeros when all are the same.

    Example:
        >>> z_scores(np.array([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    values_C = scores_C.astype(np.float64)
    deviation = values_C.std()
    return (values_C - values_C.mean()) / deviation if deviation > 0 else np.zeros_like(values_C)


def convex_sum(
    vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating], *, lexical_weight: float
) -> NDArray[np.float64]:
    """``(1 - w) z(vector) + w z(lexical)`` over the candidates.

    References:
        Bruch, Gai and Ingber 2023, "An analysis of fusion functions for hybrid retrieval".
    """
    return (1 - lexical_weight) * z_scores(vector_C) + lexical_weight * z_scores(lexical_C)


def reciprocal_ranks(vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """``1 / (60 + rank)`` of either signal among the candidates, summed.

    Example:
        >>> reciprocal_ranks(np.array([0.9, 0.1]), np.array([5.0, 7.0])).round(4).tolist()
        [0.0325, 0.0325]

    References:
        Cormack, Clarke and Buettcher 2009.
    """
    total_C = np.zeros(len(vector_C))
    for scores_C in (vector_C, lexical_C):
        total_C[np.argsort(-scores_C, kind="stable")] += 1 / (_RANK_OFFSET + 1 + np.arange(len(scores_C)))
    return total_C


def _convex(lexical_weight: float) -> Fuse:
    return lambda vector_C, lexical_C: convex_sum(vector_C, lexical_C, lexical_weight=lexical_weight)


_WEIGHTS = tuple(tenth / 10 for tenth in range(1, 10))
DEFAULT_FUSION = "z_scores_0.5"
FUSIONS: dict[str, Fuse] = {
    **{f"z_scores_{weight}": _convex(weight) for weight in _WEIGHTS},
    "reciprocal_ranks": reciprocal_ranks,
}
