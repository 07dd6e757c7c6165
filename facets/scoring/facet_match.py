"""Cosines of facets with facets and with words.

Shape suffixes: P pairs, Q queries, B documents or texts, L words, K and J facets, D dimensions.
"""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["attention", "best_facet_match", "closest_facet_weight", "max_facet_score", "unit_facets"]

_ABSENT = float("-inf")


def unit_facets(facets_BKD: Tensor) -> Tensor:
    """Facets at unit length, ``[..., D]``; zero facets stay zero.

    References:
        Chang 2022, eq. 3.5 (F_u).
    """
    return functional.normalize(facets_BKD, dim=-1)


def attention(words_BLD: Tensor, facets_BKD: Tensor, mask_BL: Tensor | None = None) -> Tensor:
    """Importance of each word: its positive cosines with the facets of its text, added up.

    Args:
        words_BLD: Unit word vectors, ``[B, L, D]``; a zero vector (unknown word) gets 0.
        facets_BKD: Facets, ``[B, K, D]``, any lengths.
        mask_BL: True at real words, ``[B, L]``; None when nothing is padded.

    Returns:
        ``[B, L]`` in ``[0, K]``; 0 where the mask is False.

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
    """Weight of each word in a score: its positive cosine with the closest facet of its text.

    Where ``attention`` (eq. 3.6) adds up the facets, this asks whether any of them is about the word. A word that
    all facets are a little alike then weighs no more than one that a single facet is made of; scores agree better
    with people (docs/use/similarity.md).

    Args:
        words_BLD: As for ``attention``.
        facets_BKD: As for ``attention``.
        mask_BL: As for ``attention``.

    Returns:
        ``[B, L]`` in ``[0, 1]``; 0 where the mask is False. With one facet the same as ``attention``.

    Example:
        >>> facets = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
        >>> closest_facet_weight(torch.tensor([[[0.6, 0.8], [-0.6, 0.8]]]), facets).tolist()
        [[0.800000011920929, 0.800000011920929]]

    References:
        Chang 2022, eq. 3.6, with the maximum instead of the sum.
    """
    weights_BL = (words_BLD @ unit_facets(facets_BKD).mT).clamp_min(0.0).amax(dim=-1)
    return weights_BL if mask_BL is None else weights_BL.masked_fill(~mask_BL, 0.0)


def max_facet_score(
    query_QKD: Tensor,
    doc_BJD: Tensor,
    *,
    query_mask_QK: Tensor | None = None,
    doc_mask_BJ: Tensor | None = None,
) -> Tensor:
    """Cosine of the best-matching pair of facets, every query against every document.

    Args:
        query_QKD: Facets, ``[Q, K, D]``, any lengths.
        doc_BJD: Facets, ``[B, J, D]``, same dtype.
        query_mask_QK: True at facets that exist, ``[Q, K]``; None when all do.
        doc_mask_BJ: The same for the documents, ``[B, J]``.

    Returns:
        ``[Q, B]`` scores in ``[-1, 1]``; ``-inf`` when one side has no facet at all.

    Example:
        >>> query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> max_facet_score(query, torch.tensor([[[0.0, 3.0]], [[-1.0, -1.0]]])).tolist()
        [[1.0, -0.7071067690849304]]
    """
    # [Q, 1, K, D] @ [1, B, D, J] -> [Q, B, K, J]
    cosines_QBKJ = (unit_facets(query_QKD).unsqueeze(1) @ unit_facets(doc_BJD).mT.unsqueeze(0)).clamp(-1.0, 1.0)
    if query_mask_QK is not None:
        cosines_QBKJ = cosines_QBKJ.masked_fill(~query_mask_QK[:, None, :, None], _ABSENT)
    if doc_mask_BJ is not None:
        cosines_QBKJ = cosines_QBKJ.masked_fill(~doc_mask_BJ[None, :, None, :], _ABSENT)
    return cosines_QBKJ.amax(dim=(2, 3))


def best_facet_match(first_PKD: Tensor, second_PJD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which facets of each pair of texts are closest, and how close.

    Args:
        first_PKD: Facets, ``[P, K, D]``, any lengths; zero facets meet only where a text has no other.
        second_PJD: Facets, ``[P, J, D]``, same dtype.

    Returns:
        Three ``[P]`` tensors: the cosine in ``[-1, 1]`` (``max_facet_score`` of the pair), the first
        text's facet, the second text's facet (int64).
    """
    cosines_PKJ = (unit_facets(first_PKD) @ unit_facets(second_PJD).mT).clamp(-1.0, 1.0)
    exists_PKJ = (first_PKD != 0).any(dim=2)[:, :, None] & (second_PJD != 0).any(dim=2)[:, None]
    positions_P = cosines_PKJ.masked_fill(~exists_PKJ, _ABSENT).flatten(1).argmax(dim=1)
    scores_P = cosines_PKJ.flatten(1).gather(1, positions_P[:, None]).squeeze(1)
    num_second = cosines_PKJ.shape[2]
    return scores_P, torch.div(positions_P, num_second, rounding_mode="floor"), positions_P % num_second
