"""Scores of facets: which facets of two texts match, and how well the facets of two texts reconstruct each other.

Shape suffixes: P pairs, B texts, L words, K and J facets, D dimensions.
"""

import torch
from torch import Tensor
from torch.nn import functional

from facets.coding import gram_and_correlations, solve_coefficients

_ABSENT = float("-inf")


def unit_facets(facets_BKD: Tensor) -> Tensor:
    """Facets at unit length, ``[..., D]`` (Chang 2022, eq. 3.5, F_u); zero facets stay zero."""
    return functional.normalize(facets_BKD, dim=-1)


def attention(words_BLD: Tensor, facets_BKD: Tensor, mask_BL: Tensor | None = None) -> Tensor:
    """Importance of each word, ``[B, L]`` in ``[0, K]``: the sum of its positive cosines with the facets of its text.

    ``words_BLD``: unit vectors; zero vectors (unknown words) get 0. ``mask_BL``: False at padding, which gets 0.

    Example:
        >>> facets = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
        >>> attention(torch.tensor([[[1.0, 0.0], [-0.6, 0.8]]]), facets).tolist()
        [[1.0, 0.800000011920929]]

    References:
        Chang 2022, eq. 3.6.
    """
    # [B, L, D] @ [B, D, K] -> [B, L, K]
    attention_BL = (words_BLD @ unit_facets(facets_BKD).mT).clamp_min(0.0).sum(dim=-1)
    return attention_BL if mask_BL is None else attention_BL.masked_fill(~mask_BL, 0.0)


def closest_facet_weight(words_BLD: Tensor, facets_BKD: Tensor, mask_BL: Tensor | None = None) -> Tensor:
    """Weight of each word in a score, ``[B, L]`` in ``[0, 1]``: its cosine with the closest facet, at least 0.

    Eq. 3.6 sums over facets instead, so a word somewhat similar to all facets gets more weight than one that a single
    facet represents. The maximum agrees better with human judgements (STS). Arguments as for ``attention``.

    Example:
        >>> facets = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
        >>> closest_facet_weight(torch.tensor([[[0.6, 0.8], [-0.6, 0.8]]]), facets).tolist()
        [[0.800000011920929, 0.800000011920929]]
    """
    weights_BL = (words_BLD @ unit_facets(facets_BKD).mT).clamp_min(0.0).amax(dim=-1)
    return weights_BL if mask_BL is None else weights_BL.masked_fill(~mask_BL, 0.0)


def best_facet_match(first_PKD: Tensor, second_PJD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The closest facets of each pair of texts.

    Facets may have any length; zero facets are chosen only if a text has no others. Returns three ``[P]`` tensors: the
    cosine in ``[-1, 1]``, the facet of the first text, that of the second (int64).
    """
    cosines_PKJ = (unit_facets(first_PKD) @ unit_facets(second_PJD).mT).clamp(-1.0, 1.0)
    exists_PKJ = (first_PKD != 0).any(dim=2)[:, :, None] & (second_PJD != 0).any(dim=2)[:, None]
    positions_P = cosines_PKJ.masked_fill(~exists_PKJ, _ABSENT).flatten(1).argmax(dim=1)
    scores_P = cosines_PKJ.flatten(1).gather(1, positions_P[:, None]).squeeze(1)
    num_second = cosines_PKJ.shape[2]
    return scores_P, torch.div(positions_P, num_second, rounding_mode="floor"), positions_P % num_second


# A KKT residual of 1e-4 changes an error by about 1e-8, far below displayed precision.
_TOLERANCE = 1e-4


def codebook_score(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    """Minus the symmetric distance SC of two codebooks, ``[P]`` in ``[-2, 0]``: ``-(Er(F1, F2) / J + Er(F2, F1) / K)``.

    Averages instead of the sums of eq. 3.5 make scores of models with different K comparable; within one model they
    only change the scale. Facets may have any length; those of length zero are ignored. There is no L1 penalty, so a
    codebook reconstructs itself without error; this also agrees better with human judgements (STS dev).

    Example:
        >>> import torch
        >>> both = torch.eye(2)[None]
        >>> first, second = both[:, :1], both[:, 1:]
        >>> [codebook_score(first, other).item() for other in (first, both, second)]
        [-0.0, -0.5, -2.0]

    References:
        Chang 2022, eq. 3.5 (SC), eq. 3.1 (Er).
    """
    first_PKD, second_PJD = unit_facets(first_PKD), unit_facets(second_PJD)
    forth_P = _directed_error(first_PKD, second_PJD)
    back_P = _directed_error(second_PJD, first_PKD)
    return -(forth_P + back_P)


def codebook_contributions(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    """Contribution of each pair of facets to ``codebook_score``, ``[P, K, J]``, >= 0.

    The reconstruction of a target explains ``||w||^2 - ||F m - w||^2 = sum_k m_k (2 b_k - (H m)_k)`` of its squared
    length; the terms of both directions are added. For nonzero facets, the sum over K and J is ``codebook_score + 2``,
    except that negative terms, which occur only for facets at obtuse angles, count as 0.
    """
    first_PKD, second_PJD = unit_facets(first_PKD), unit_facets(second_PJD)
    forth_PKJ = _explained(first_PKD, second_PJD) / _num_facets(second_PJD)[:, None, None]
    back_PJK = _explained(second_PJD, first_PKD) / _num_facets(first_PKD)[:, None, None]
    return forth_PKJ.clamp_min(0.0) + back_PJK.clamp_min(0.0).mT


def _directed_error(sources_PKD: Tensor, targets_PJD: Tensor) -> Tensor:
    """``[P]``: Er(sources, targets), the mean over the targets, in ``[0, 1]``."""
    explained_PJ = _explained(sources_PKD, targets_PJD).sum(dim=1)
    errors_PJ = (targets_PJD.square().sum(dim=-1) - explained_PJ).clamp(0.0, 1.0)
    return (errors_PJ.sum(dim=1) / _num_facets(targets_PJD)).clamp_max(1.0)


def _num_facets(units_PKD: Tensor) -> Tensor:
    """``[P]``: number of nonzero facets, at least 1."""
    return (units_PKD != 0).any(dim=2).sum(dim=1).clamp_min(1)


def _explained(sources_PKD: Tensor, targets_PJD: Tensor) -> Tensor:
    """``[P, K, J]``: part of each target's squared length that each source facet explains."""
    gram_PKK, correlations_PKJ = gram_and_correlations(sources_PKD, targets_PJD)
    coefficients_PKJ = solve_coefficients(gram_PKK, correlations_PKJ, l1_weight=0.0, tolerance=_TOLERANCE)
    return coefficients_PKJ * (2 * correlations_PKJ - gram_PKK @ coefficients_PKJ)
