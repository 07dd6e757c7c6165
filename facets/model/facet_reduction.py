"""Many facets of a long text to few: spherical k-means.

Shape suffixes: M facets at hand, K wanted, D dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.words.vectors import unit_rows

__all__ = ["Reduced", "reduce_facets"]

_NUM_STEPS = 8


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
    """Centres of facets in groups of alike ones.

    Args:
        facets_MD: Unit norm, at least one.
        weights_M: How much each stands for, positive.
        num_facets: K at least 1; all facets come back when there are no more.

    Returns:
        At most K, in the order of what they are closest to.
    """
    if len(facets_MD) <= num_facets:
        return Reduced(facets_MD, np.arange(len(facets_MD)), weights_M)
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
    own_MK = np.where(groups_M[:, None] == np.arange(num_facets), scores_MK, -np.inf)
    kept = np.flatnonzero(weights_K > 0)
    closest_K = own_MK.argmax(axis=0)[kept]
    order = np.argsort(closest_K)
    return Reduced(centres_KD[kept][order], closest_K[order], weights_K[kept][order])
