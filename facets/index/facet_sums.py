"""Documents by the sum of their best facets, from what an engine finds for each facet of a query.

Shape letters: C found, N documents.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of_slots", "sum_best_of_slots"]


def best_of_slots(
    slots: NDArray[np.int64], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best score of every slot, best first; negative slots are none."""
    order = np.argsort(-scores, kind="stable")
    order = order[slots[order] >= 0]
    found, first = np.unique(slots[order], return_index=True)
    by_score = np.argsort(first)
    return found[by_score], scores[order][first[by_score]]


def sum_best_of_slots(
    parts: Iterable[tuple[NDArray[np.int64], NDArray[np.float32]]], num_slots: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The sum over the facets of a query of the best score of every document that was found for one of them.

    A document that a facet did not find is taken to answer it as the median of what it did find: guesses above that
    let candidates in that cannot be good, guesses below keep out those that answer all other facets.

    Args:
        parts: For each facet of the query slots ``[C]`` >= 0, one as often as facets of it were found, and scores.
        num_slots: Slots lie below this.

    Returns:
        Slots, ascending, and sums: exact when every facet found every document.

    Example:
        >>> parts = [(np.array([1, 2, 1]), np.array([0.5, 0.25, 0.1])), (np.array([2]), np.array([0.5]))]
        >>> [part.tolist() for part in sum_best_of_slots(parts, 4)]
        [[1, 2], [1.0, 0.75]]
    """
    sums = np.zeros(num_slots, dtype=np.float32)
    found = np.zeros(num_slots, dtype=np.bool_)
    for slots, scores in parts:
        best = np.full(num_slots, -np.inf, dtype=np.float32)
        np.maximum.at(best, slots, scores.astype(np.float32))
        mine = np.isfinite(best)
        found |= mine
        sums += np.where(mine, best, np.float32(np.median(scores)) if len(scores) else np.float32(0))
    slots = np.flatnonzero(found)
    return slots, sums[slots]
