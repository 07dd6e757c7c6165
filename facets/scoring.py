"""Scores as pure functions; higher is better: of facets, of how well a summary covers words (eq. 3.7), and of words.

Shape suffixes: P pairs, B texts, L words, K and J facets, D dimensions; S sentences, T sentences of a summary or
training texts, U words of a document; M words of the first text, N words of the second.

``weights_BL`` multiplies a method's built-in weights: ones or ``closest_facet_weight``; 0 for padding, unknown words.
"""

import torch
from torch import Tensor
from torch.nn import functional

from facets.arrays import products
from facets.coding import gram_and_correlations, solve_coefficients
from facets.extras import require_extra

ALPHA = 1e-4
_TOLERANCE = 1e-4  # this KKT residual changes an error by about 1e-8, far below displayed precision
_UNRELATED = 1.0  # distance of two orthogonal words, used for texts without words


def unit_facets(facets_BKD: Tensor) -> Tensor:
    """Facets at unit length, ``[..., D]`` (Chang 2022, eq. 3.5, F_u); zero facets stay zero."""
    return functional.normalize(facets_BKD, dim=-1)


def attention(words_BLD: Tensor, facets_BKD: Tensor) -> Tensor:
    """Importance of each word, ``[B, L]`` in ``[0, K]``: the sum of its positive cosines with the facets of its text.

    Chang 2022, eq. 3.6. ``words_BLD``: unit vectors; zero vectors (unknown words) get 0.
    """
    # [B, L, D] @ [B, D, K] -> [B, L, K]
    return (words_BLD @ unit_facets(facets_BKD).mT).clamp_min(0.0).sum(dim=-1)


def closest_facet_weight(words_BLD: Tensor, facets_BKD: Tensor, mask_BL: Tensor | None = None) -> Tensor:
    """Weight of each word in a score, ``[B, L]`` in ``[0, 1]``: its cosine with the closest facet, at least 0.

    Eq. 3.6 sums over facets instead, so a word somewhat similar to all facets gets more weight than one that a single
    facet represents. The maximum agrees better with human judgements (STS). Arguments as for ``attention``.
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
    positions_P = cosines_PKJ.masked_fill(~exists_PKJ, -torch.inf).flatten(1).argmax(dim=1)
    scores_P = cosines_PKJ.flatten(1).gather(1, positions_P[:, None]).squeeze(1)
    num_second = cosines_PKJ.shape[2]
    return scores_P, torch.div(positions_P, num_second, rounding_mode="floor"), positions_P % num_second


def codebook_score(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    """Minus the symmetric distance SC of two codebooks, ``[P]`` in ``[-2, 0]``: ``-(Er(F1, F2) / J + Er(F2, F1) / K)``.

    Chang 2022, eq. 3.5 (SC), eq. 3.1 (Er). Averages instead of the sums of eq. 3.5 make scores of models with different
    K comparable; within one model they only change the scale. Facets may have any length; those of length zero are
    ignored. There is no L1 penalty, so a codebook reconstructs itself without error; this also agrees better with human
    judgements (STS dev).

    Example:
        >>> import torch
        >>> both = torch.eye(2)[None]
        >>> first, second = both[:, :1], both[:, 1:]
        >>> [codebook_score(first, other).item() for other in (first, both, second)]
        [-0.0, -0.5, -2.0]
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


def word_coverage(facets_SKD: Tensor, words_UD: Tensor) -> Tensor:
    """How well each sentence covers each word, ``[S, U]`` in ``[0, 1]``: the cosine with its closest facet, at least 0.

    ``facets_SKD``: of any lengths; or the words of each sentence, padded with zero vectors. ``words_UD``: unit vectors.
    """
    # [S, K, D] @ [D, U] -> [S, K, U]
    return (unit_facets(facets_SKD) @ words_UD.mT).amax(dim=1).clamp_(0.0, 1.0)


def added_coverage(covered_TU: Tensor, repetition: float) -> Tensor:
    """Joint coverage ``[U]`` of each word by several sentences: ``(sum_t c_t ** (1 / repetition)) ** repetition``.

    ``covered_TU``: their ``word_coverage``. ``repetition``: how much covering a word again counts, in ``(0, 1]``: near
    0 almost the maximum (eq. 3.7), 1 the sum.
    """
    return covered_TU.pow(1 / repetition).sum(dim=0).pow(repetition)


def coverage_gain(powers_SU: Tensor, summed_U: Tensor, weights_U: Tensor, *, repetition: float) -> Tensor:
    """Coverage ``[S]``, >= 0, that each candidate sentence would add; it never increases as the summary grows.

    ``powers_SU``: ``word_coverage ** (1 / repetition)`` of the candidates. ``summed_U``: sum of these powers over the
    summary so far. ``weights_U``: of each word, >= 0; in the paper ``alpha / (alpha + p(w))`` times its number of
    occurrences.
    """
    return ((powers_SU + summed_U).pow_(repetition) - summed_U.pow(repetition)).clamp_min_(0.0) @ weights_U


def probability_weights(probabilities: Tensor, *, alpha: float = ALPHA) -> Tensor:
    """``alpha / (alpha + p(w))``, in (0, 1]: frequent words get less weight (Chang 2022, section 3.2.2.3, eq. B.4)."""
    return alpha / (alpha + probabilities)


def average(words_BLD: Tensor, weights_BL: Tensor) -> Tensor:
    """Weighted sum of the words, divided by the number of words with a weight above 0; zero without any.

    ``words_BLD``: unit vectors, finite even where the weight is 0. ``weights_BL``: >= 0.
    """
    # [B, 1, L] @ [B, L, D] -> [B, D]
    sums_BD = (weights_BL.unsqueeze(1) @ words_BLD).squeeze(1)
    return sums_BD / (weights_BL > 0).sum(dim=1, keepdim=True).clamp_min(1)


def fit_common_component(vectors_TD: Tensor) -> Tensor:
    """First principal direction ``[D]`` of uncentred training texts, at unit length; its largest entry is positive.

    Arora et al. 2017, algorithm 1. ``vectors_TD``: ``average`` of training texts with ``probability_weights``, T >= 1.
    """
    # An eigenvector of a [D, D] matrix is cheap for any number of texts.
    scatter_DD = vectors_TD.double().mT @ vectors_TD.double()
    component_D = torch.linalg.eigh(scatter_DD).eigenvectors[:, -1]
    sign = component_D[component_D.abs().argmax()].sign()
    return (component_D * sign).to(vectors_TD.dtype)


def remove_component(vectors_BD: Tensor, component_D: Tensor) -> Tensor:
    """``v - (v . u) u`` for a unit vector ``u``, ``[B, D]``: SIF (Arora et al. 2017, algorithm 1)."""
    return vectors_BD - (vectors_BD @ component_D).unsqueeze(1) * component_D


def cosine_score(first_PD: Tensor, second_PD: Tensor) -> Tensor:
    """Cosine of each pair of vectors, ``[P]`` in ``[-1, 1]``; 0 when a side is zero."""
    first_PD, second_PD = functional.normalize(first_PD, dim=1), functional.normalize(second_PD, dim=1)
    return (first_PD * second_PD).sum(dim=1).clamp(-1.0, 1.0)


def wmd(first_PMD: Tensor, first_weights_PM: Tensor, second_PND: Tensor, second_weights_PN: Tensor) -> Tensor:
    """Minus the word mover's distance of each pair of texts, ``[P]`` in ``[-2, 0]``, with cosine distances of words.

    Kusner et al. 2015; Chang 2022, section 3.2.2.3. The cosine distance ``1 - cos`` agrees better with human judgements
    than the Euclidean distance (STS dev). The weights of a text, >= 0 and 0 for padding, are scaled to sum to 1;
    optimal transport is solved exactly (network simplex of POT). A text without weights scores -1. Word vectors are
    unit vectors, finite also where the weight is 0. Raises ImportError without POT.
    """
    require_extra("wmd", "ot")
    from ot.lp import emd2

    scores_P = torch.full((len(first_PMD),), -_UNRELATED, dtype=torch.float32)
    arrays = first_PMD, first_weights_PM.double(), second_PND, second_weights_PN.double()
    for pair, (from_MD, from_M, to_ND, to_N) in enumerate(zip(*(array.numpy() for array in arrays), strict=True)):
        rows, columns = from_M > 0, to_N > 0
        if rows.any() and columns.any():
            costs_mn = (1.0 - products(from_MD[rows], to_ND[columns]).astype("float64")).clip(min=0.0)
            from_m, to_n = from_M[rows], to_N[columns]
            scores_P[pair] = -emd2(from_m / from_m.sum(), to_n / to_n.sum(), costs_mn)
    return scores_P
