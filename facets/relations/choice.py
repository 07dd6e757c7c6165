"""One answer a pair: of both directions and all relations between two entities the best are asserted, no more.

Shape suffixes: M mentions (ordered pairs), R relations, C candidates.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of_pairs", "partners_of"]


def partners_of(keys: Sequence[tuple[object, ...]], mirrored_keys: Sequence[tuple[object, ...]]) -> NDArray[np.int64]:
    """Place of each item's mirror image, ``[M]``; its own place where there is none."""
    places = {key: place for place, key in enumerate(keys)}
    return np.fromiter(
        (places.get(key, place) for place, key in enumerate(mirrored_keys)), dtype=np.int64, count=len(keys)
    )


def best_of_pairs(
    accepted_MR: NDArray[np.bool_],
    probabilities_MR: NDArray[np.float32],
    partners_M: NDArray[np.int64],
    *,
    most: int | None,
) -> NDArray[np.bool_]:
    """Which of the accepted relations are asserted.

    Args:
        accepted_MR: Relations that could hold; False where a mention asserts nothing.
        probabilities_MR: How sure each is.
        partners_M: Place of the mention of the same two entities the other way round, see ``partners_of``.
        most: Relations of two entities at most, both directions together; None: all.

    Returns:
        ``[M, R]``, the most probable ones of each two entities; ties go to the earlier mention and relation.

    Example:
        >>> accepted, probable = np.array([[True, True], [True, False]]), np.array([[0.7, 0.9], [0.8, 0.1]])
        >>> best_of_pairs(accepted, probable, np.array([1, 0]), most=1).tolist()
        [[False, True], [False, False]]
    """
    if most is None:
        return accepted_MR
    mentions_C, relations_C = np.nonzero(accepted_MR)
    pairs_C = np.minimum(mentions_C, partners_M[mentions_C])
    order_C = np.lexsort((relations_C, mentions_C, -probabilities_MR[mentions_C, relations_C], pairs_C))
    sorted_C = pairs_C[order_C]
    # Place among the candidates of the same pair: how many stand since its first.
    places_C = np.arange(len(sorted_C)) - np.searchsorted(sorted_C, sorted_C)
    kept_C = order_C[places_C < most]
    best_MR = np.zeros_like(accepted_MR)
    best_MR[mentions_C[kept_C], relations_C[kept_C]] = True
    return best_MR
