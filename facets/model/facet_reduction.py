"""Many facets of a long text to few: those that are like no other, and spherical k-means of the rest.

Centres say what much of the text is about. A sentence about something else would vanish in them, and be what somebody
looks for. Shape suffixes: M facets at hand, K wanted, S set apart, D dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows

__all__ = ["Reduced", "reduce_facets"]

_NUM_STEPS = 8
_APART_OF_WANTED = 4  # a quarter of the wanted facets are single ones at most,
_APART_OF_ALL = 15  # and one of so many at hand


@dataclass(frozen=True, slots=True)
class Reduced:
    """Few facets for many.

    Attributes:
        facets: ``[K, D]`` float32, unit norm.
        closest: The facet that each is closest to, ``[K]`` int64, distinct.
        weights: How much each stands for, ``[K]`` float32; adds up to what it was.
    """

    facets: NDArray[np.float32]
    closest: NDArray[np.int64]
    weights: NDArray[np.float32]


def reduce_facets(facets_MD: NDArray[np.float32], weights_M: NDArray[np.float32], num_facets: int) -> Reduced:
    """Few facets that stand for many.

    Args:
        facets_MD: Unit norm, at least one.
        weights_M: How much each stands for, positive.
        num_facets: K at least 1; all facets come back when there are no more.

    Returns:
        At most K, in the order of what they are closest to.
    """
    if len(facets_MD) <= num_facets:
        return Reduced(facets_MD, np.arange(len(facets_MD)), weights_M)
    apart_S = _unlike_others(facets_MD, min(num_facets // _APART_OF_WANTED, len(facets_MD) // _APART_OF_ALL))
    rest = np.setdiff1d(np.arange(len(facets_MD)), apart_S)
    centres = _centres(facets_MD[rest], weights_M[rest], num_facets - len(apart_S))
    closest_K = np.concatenate([apart_S, rest[centres.closest]])
    order = np.argsort(closest_K)
    facets_KD = np.concatenate([facets_MD[apart_S], centres.facets])
    return Reduced(facets_KD[order], closest_K[order], np.concatenate([weights_M[apart_S], centres.weights])[order])


def _unlike_others(facets_MD: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Farthest-first: the facet that is least like the mean, then always the one that is least like those chosen."""
    chosen: list[int] = []
    likeness_M = facets_MD @ facets_MD.mean(axis=0)
    for _ in range(count):
        chosen.append(int(likeness_M.argmin()))
        to_last_M = facets_MD @ facets_MD[chosen[-1]]
        likeness_M = to_last_M if len(chosen) == 1 else np.maximum(likeness_M, to_last_M)
        likeness_M[chosen] = np.inf
    return np.array(chosen, dtype=np.int64)


def _centres(facets_MD: NDArray[np.float32], weights_M: NDArray[np.float32], num_facets: int) -> Reduced:
    """Spherical k-means; groups that end up empty are left out."""
    starts = np.linspace(0, len(facets_MD) - 1, num_facets).round().astype(np.int64)
    centres_KD = facets_MD[starts]
    for _ in range(_NUM_STEPS):
        groups_M = (facets_MD @ centres_KD.T).argmax(axis=1)
        sums_KD = np.zeros_like(centres_KD)
        np.add.at(sums_KD, groups_M, facets_MD * weights_M[:, None])
        norms_K = np.linalg.norm(sums_KD, axis=1)
        centres_KD = np.where(norms_K[:, None] > 0, unit_rows(sums_KD), centres_KD)
    scores_MK = facets_MD @ centres_KD.T
    groups_M = scores_MK.argmax(axis=1)
    weights_K = np.bincount(groups_M, weights=weights_M, minlength=num_facets).astype(np.float32)
    own_MK: NDArray[np.float32] = np.where(groups_M[:, None] == np.arange(num_facets), scores_MK, -np.inf)
    kept = np.flatnonzero(weights_K > 0)
    closest_K = own_MK.argmax(axis=0)[kept]
    return Reduced(centres_KD[kept], closest_K, weights_K[kept])
