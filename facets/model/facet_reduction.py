"""Reduces many facets of a text to few, and merges near-duplicate facets.

Groups of similar facets are replaced by their centres. Facets unlike all others stay unchanged: centres alone would
lose the one sentence about something else.

Shape suffixes: B texts, K facets, M facets before the reduction, S facets set apart, D dimensions.
"""

from typing import NamedTuple

import numpy as np

from facets.arrays import Bools, Floats, Ints
from facets.language.vectors import unit_rows

# Two facets of a text with a higher cosine are near-duplicates, where unrelated texts have a cosine of about 0.
ALIKE = 0.95


class Merged(NamedTuple):
    """Facets without near-duplicates, in the order of ``closest``."""

    facets: Floats  # `[B, K, D]` float32, unit norm; zero rows at the end
    members: Bools  # the facets that each was merged from, `[B, K, K]`
    closest: Ints  # the original facet that each is closest to, `[B, K]`


def merged_facets(facets_BKD: Floats, weights_BK: Floats, *, alike: float = ALIKE) -> Merged:
    """Merges facets whose cosine is above ``alike``; a merged facet is the weighted mean, at unit length.

    ``facets_BKD``: unit norm. ``weights_BK``: how much each stands for, >= 0; 0 marks an unused facet.
    """
    members_BKK = merge_alike(facets_BKD, weights_BK, alike)
    if members_BKK.any(axis=2).sum() == (weights_BK > 0).sum():
        own_BK = np.broadcast_to(np.arange(facets_BKD.shape[1]), weights_BK.shape)
        return Merged(facets_BKD, members_BKK, own_BK)
    sums_BKD = (members_BKK * weights_BK[:, None]) @ facets_BKD
    merged_BKD = unit_rows(sums_BKD.reshape(-1, facets_BKD.shape[2])).reshape(facets_BKD.shape)
    cosines_BKK = np.where(members_BKK, merged_BKD @ facets_BKD.transpose(0, 2, 1), -np.inf)
    is_group_BK = members_BKK.any(axis=2)
    closest_BK = np.where(is_group_BK, cosines_BKK.argmax(axis=2), facets_BKD.shape[1])
    order_BK = np.argsort(closest_BK, axis=1, kind="stable")
    closest_BK = np.take_along_axis(np.where(is_group_BK, closest_BK, 0), order_BK, axis=1)
    order_BK1 = order_BK[:, :, None]
    return Merged(
        np.take_along_axis(merged_BKD, order_BK1, axis=1),
        np.take_along_axis(members_BKK, order_BK1, axis=1),
        closest_BK,
    )


def merge_alike(facets_BKD: Floats, weights_BK: Floats, alike: float) -> Bools:
    """Groups near-duplicate facets: merges the two most similar groups while their cosine is above ``alike``.

    A group is represented by its weighted mean at unit length, so merged facets stay below the bound too. Arguments as
    for ``merged_facets``. Returns ``[B, K, K]``: row k holds the members of group k, of which k is the first; it is
    empty where facet k is unused or belongs to another group.
    """
    num_facets = facets_BKD.shape[1]
    used_BK = weights_BK > 0
    members_BKK = np.eye(num_facets, dtype=np.bool_) & used_BK[:, None]
    sums_BKD = facets_BKD * weights_BK[:, :, None]
    # The cosines of group means need only the inner products of group sums.
    products_BKK = sums_BKD @ sums_BKD.transpose(0, 2, 1)
    left_B = np.arange(len(facets_BKD))
    while len(left_B):
        pairs_BKK = _cosines(products_BKK[left_B], used_BK[left_B]).reshape(len(left_B), -1)
        best_B = pairs_BKK.argmax(axis=1)
        goes_on_B = pairs_BKK[np.arange(len(left_B)), best_B] > alike
        left_B = left_B[goes_on_B]
        first_B, second_B = np.divmod(best_B[goes_on_B], num_facets)
        first_B, second_B = np.minimum(first_B, second_B), np.maximum(first_B, second_B)
        members_BKK[left_B, first_B] |= members_BKK[left_B, second_B]
        members_BKK[left_B, second_B] = False
        used_BK[left_B, second_B] = False
        products_BKK[left_B, first_B] += products_BKK[left_B, second_B]
        products_BKK[left_B, :, first_B] += products_BKK[left_B, :, second_B]
    return members_BKK


def _cosines(products_BKK: Floats, used_BK: Bools) -> Floats:
    """Cosines of all pairs of groups; minus infinity for invalid pairs."""
    norms_BK = np.sqrt(np.maximum(np.diagonal(products_BKK, axis1=1, axis2=2), 1e-12))
    is_pair_BKK = used_BK[:, :, None] & used_BK[:, None] & ~np.eye(used_BK.shape[1], dtype=np.bool_)
    cosines_BKK = products_BKK / (norms_BK[:, :, None] * norms_BK[:, None])
    return np.where(is_pair_BKK, cosines_BKK, np.float32(-np.inf))


_NUM_STEPS = 8
# At most a quarter of the reduced facets, and one in 15 of the original ones, are kept as single facets.
_REDUCED_PER_APART = 4
_ORIGINAL_PER_APART = 15


class Reduced(NamedTuple):
    """Few facets that stand for many, in the order of ``closest``."""

    facets: Floats  # `[K, D]` float32, unit norm
    closest: Ints  # the original facet that each is closest to, `[K]`, distinct
    weights: Floats  # how much each stands for, `[K]`; they sum to the same total as the original weights


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
