"""Many facets to few: groups become centres, what is like nothing else stays, and none is there twice.

Centres alone say what much of a text is about; a sentence about something else would vanish in them, and be what
somebody looks for.

Shape suffixes: B texts, K facets, M facets at hand, S set apart, D dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows

ALIKE = 0.95
"""Two facets of a text with a higher cosine say the same: of what they say beside what all facets of it share, 0.9."""


def merge_alike(facets_BKD: NDArray[np.float32], weights_BK: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which facets become one: the two that are most alike, again and again, as long as they are too much so.

    A group is its weighted mean at unit length, so what is merged of them has no pair above the bound either.

    ``facets_BKD``: unit norm; what weighs nothing is none. ``weights_BK``: how much each stands for, not negative.
    Returns ``[B, K, K]``: row k of a text holds the members of its group k, k among them the first; empty for what went
    into another group or was none.

    Example:
        >>> facets = np.array([[[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.98, 0.199]]], dtype=np.float32)
        >>> merge_alike(facets, np.ones((1, 4), np.float32)).astype(int).tolist()
        [[[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]]
    """
    num_facets = facets_BKD.shape[1]
    used_BK = weights_BK > 0
    members_BKK = np.eye(num_facets, dtype=np.bool_) & used_BK[:, None]
    sums_BKD = facets_BKD * weights_BK[:, :, None]
    # Inner products of the sums of all groups tell everything about their means.
    products_BKK = sums_BKD @ sums_BKD.transpose(0, 2, 1)
    left_B = np.arange(len(facets_BKD))
    while len(left_B):
        pairs_BKK = _cosines(products_BKK[left_B], used_BK[left_B]).reshape(len(left_B), -1)
        best_B = pairs_BKK.argmax(axis=1)
        goes_on_B = pairs_BKK[np.arange(len(left_B)), best_B] > ALIKE
        left_B = left_B[goes_on_B]
        first_B, second_B = np.divmod(best_B[goes_on_B], num_facets)
        first_B, second_B = np.minimum(first_B, second_B), np.maximum(first_B, second_B)
        members_BKK[left_B, first_B] |= members_BKK[left_B, second_B]
        members_BKK[left_B, second_B] = False
        used_BK[left_B, second_B] = False
        products_BKK[left_B, first_B] += products_BKK[left_B, second_B]
        products_BKK[left_B, :, first_B] += products_BKK[left_B, :, second_B]
    return members_BKK


def _cosines(products_BKK: NDArray[np.float32], used_BK: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Of all pairs of groups, minus infinity for what is none."""
    norms_BK = np.sqrt(np.maximum(np.diagonal(products_BKK, axis1=1, axis2=2), 1e-12))
    is_pair_BKK = used_BK[:, :, None] & used_BK[:, None] & ~np.eye(used_BK.shape[1], dtype=np.bool_)
    cosines_BKK = products_BKK / (norms_BK[:, :, None] * norms_BK[:, None])
    return np.where(is_pair_BKK, cosines_BKK, np.float32(-np.inf))


_NUM_STEPS = 8
_APART_OF_WANTED = 4  # a quarter of the wanted facets are single ones at most,
_APART_OF_ALL = 15  # and one of so many at hand


@dataclass(frozen=True, slots=True)
class Reduced:
    """Few facets for many."""

    facets: NDArray[np.float32]  # `[K, D]` float32, unit norm
    closest: NDArray[np.int64]  # the facet that each is closest to, `[K]` int64, distinct
    weights: NDArray[np.float32]  # how much each stands for, `[K]` float32; adds up to what it was


def reduce_facets(facets_MD: NDArray[np.float32], weights_M: NDArray[np.float32], num_facets: int) -> Reduced:
    """Few facets that stand for many.

    ``facets_MD``: unit norm, at least one. ``weights_M``: how much each stands for, positive. ``num_facets``: K at
    least 1; all facets come back when there are no more. Returns at most K, in the order of what they are closest to.
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
