"""Reduces many facets of a text to few, and merges near-duplicate facets.

Groups of similar facets are replaced by their centres. Facets unlike all others stay unchanged: centres alone would
lose the one sentence about something else.
Shape suffixes: K facets, M facets before the reduction, S facets set apart, D dimensions.
"""

from typing import NamedTuple

import numpy as np

from facets.arrays import Floats, Ints
from facets.language.vectors import unit_rows

# Two facets of a text with a higher cosine are near-duplicates, where unrelated texts have a cosine of about 0.
ALIKE = 0.95


class Reduced(NamedTuple):
    """Few facets that stand for many, in the order of ``closest``."""

    facets: Floats  # `[K, D]` float32, unit norm
    closest: Ints  # the original facet that each is closest to, `[K]`, distinct
    weights: Floats  # how much each stands for, `[K]`; they sum to the same total as the original weights


def merge_alike(facets_MD: Floats, weights_M: Floats, alike: float = ALIKE) -> Reduced:
    """Merges near-duplicate facets: the two most similar groups, while their cosine is above ``alike``.

    ``facets_MD``: unit norm. ``weights_M``: how much each stands for, > 0. A group is represented by its weighted mean
    at unit length, so merged facets stay below the bound too.
    """
    members_MM = np.eye(len(facets_MD), dtype=np.bool_)
    sums_MD = facets_MD * weights_M[:, None]
    # The cosines of group means need only the inner products of group sums.
    products_MM = sums_MD @ sums_MD.T
    while True:
        norms_M = np.sqrt(np.maximum(products_MM.diagonal(), 1e-12))
        cosines_MM = products_MM / (norms_M[:, None] * norms_M)
        np.fill_diagonal(cosines_MM, -1.0)
        if cosines_MM.max(initial=-1.0) <= alike:
            break
        first, second = sorted(divmod(int(cosines_MM.argmax()), len(cosines_MM)))
        members_MM[first] |= members_MM[second]
        products_MM[first] += products_MM[second]
        products_MM[:, first] += products_MM[:, second]
        members_MM[second] = products_MM[second] = products_MM[:, second] = 0
    members_KM = members_MM[members_MM.any(axis=1)]
    if len(members_KM) == len(facets_MD):
        return Reduced(facets_MD, np.arange(len(facets_MD)), weights_M)
    merged_KD = unit_rows((members_KM * weights_M) @ facets_MD)
    closest_K = np.where(members_KM, merged_KD @ facets_MD.T, -np.inf).argmax(axis=1)
    order_K = np.argsort(closest_K)
    return Reduced(merged_KD[order_K], closest_K[order_K], (members_KM @ weights_M)[order_K])


_NUM_STEPS = 8
# At most a quarter of the reduced facets, and one in 15 of the original ones, are kept as single facets.
_REDUCED_PER_APART = 4
_ORIGINAL_PER_APART = 15


def reduce_facets(facets_MD: Floats, weights_M: Floats, num_facets: int) -> Reduced:
    """Reduces unit facets of weights > 0 to at most ``num_facets`` (>= 1); unchanged if there are already that few."""
    if len(facets_MD) <= num_facets:
        return Reduced(facets_MD, np.arange(len(facets_MD)), weights_M)
    apart_S = _unlike_others(facets_MD, min(num_facets // _REDUCED_PER_APART, len(facets_MD) // _ORIGINAL_PER_APART))
    rest = np.setdiff1d(np.arange(len(facets_MD)), apart_S)
    centres = _centres(facets_MD[rest], weights_M[rest], num_facets - len(apart_S))
    closest_K = np.concatenate([apart_S, rest[centres.closest]])
    order = np.argsort(closest_K)
    facets_KD = np.concatenate([facets_MD[apart_S], centres.facets])
    return Reduced(facets_KD[order], closest_K[order], np.concatenate([weights_M[apart_S], centres.weights])[order])


def _unlike_others(facets_MD: Floats, count: int) -> Ints:
    """Farthest-first: the facet least like the mean, then repeatedly the facet least like those chosen."""
    chosen: list[int] = []
    likeness_M = facets_MD @ facets_MD.mean(axis=0)
    for _ in range(count):
        chosen.append(int(likeness_M.argmin()))
        to_last_M = facets_MD @ facets_MD[chosen[-1]]
        likeness_M = to_last_M if len(chosen) == 1 else np.maximum(likeness_M, to_last_M)
        likeness_M[chosen] = np.inf
    return np.array(chosen, dtype=np.int64)


def _centres(facets_MD: Floats, weights_M: Floats, num_facets: int) -> Reduced:
    """Spherical k-means, without groups that end up empty."""
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
    own_MK: Floats = np.where(groups_M[:, None] == np.arange(num_facets), scores_MK, -np.inf)
    kept = np.flatnonzero(weights_K > 0)
    closest_K = own_MK.argmax(axis=0)[kept]
    return Reduced(centres_KD[kept], closest_K, weights_K[kept])
