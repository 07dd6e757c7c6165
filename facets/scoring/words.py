"""Scores of words: cosines of weighted averages of word vectors, and word mover's distance.

Shape suffixes: B texts, L words, D dimensions, P pairs, T training texts, M words of the first text, N words of the
second.

``weights_BL`` multiplies a method's built-in weights: ones or ``closest_facet_weight``; 0 for padding, unknown words.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from facets.extras import require_extra

ALPHA = 1e-4


def probability_weights(probabilities: Tensor, *, alpha: float = ALPHA) -> Tensor:
    """``alpha / (alpha + p(w))``, in (0, 1]: frequent words get less weight (Chang 2022, section 3.2.2.3)."""
    return alpha / (alpha + probabilities)


def average(words_BLD: Tensor, weights_BL: Tensor) -> Tensor:
    """Weighted sum of the words, divided by the number of words with a weight above 0; zero without any.

    ``words_BLD``: unit vectors, finite even where the weight is 0. ``weights_BL``: >= 0.
    """
    # [B, 1, L] @ [B, L, D] -> [B, D]
    sums_BD = (weights_BL.unsqueeze(1) @ words_BLD).squeeze(1)
    return sums_BD / (weights_BL > 0).sum(dim=1, keepdim=True).clamp_min(1)


def probability_average(words_BLD: Tensor, probabilities_BL: Tensor, weights_BL: Tensor) -> Tensor:
    """``average`` with every word's weight multiplied by ``alpha / (alpha + p(w))``.

    References:
        Chang 2022, section 3.2.2.3 (Prob_avg).
    """
    return average(words_BLD, weights_BL * probability_weights(probabilities_BL))


def sif(words_BLD: Tensor, probabilities_BL: Tensor, weights_BL: Tensor, *, common_component_D: Tensor) -> Tensor:
    """``probability_average`` with the direction that all texts share removed.

    ``common_component_D``: result of ``fit_common_component`` for training texts with the same weights.

    References:
        Chang 2022, section 3.2.2.3 (SIF); Arora et al. 2017, algorithm 1.
    """
    return remove_component(probability_average(words_BLD, probabilities_BL, weights_BL), common_component_D)


def fit_common_component(vectors_TD: Tensor) -> Tensor:
    """First principal direction ``[D]`` of uncentred training texts, at unit length; its largest entry is positive.

    ``vectors_TD``: ``probability_average`` of training texts, T >= 1.

    References:
        Arora et al. 2017, algorithm 1.
    """
    # An eigenvector of a [D, D] matrix is cheap for any number of texts.
    scatter_DD = vectors_TD.double().mT @ vectors_TD.double()
    component_D = torch.linalg.eigh(scatter_DD).eigenvectors[:, -1]
    sign = component_D[component_D.abs().argmax()].sign()
    return (component_D * sign).to(vectors_TD.dtype)


def remove_component(vectors_BD: Tensor, component_D: Tensor) -> Tensor:
    """``v - (v . u) u`` for a unit vector ``u``, ``[B, D]``."""
    return vectors_BD - (vectors_BD @ component_D).unsqueeze(1) * component_D


def cosine_score(first_PD: Tensor, second_PD: Tensor) -> Tensor:
    """Cosine of each pair of vectors, ``[P]`` in ``[-1, 1]``; 0 when a side is zero."""
    first_PD, second_PD = functional.normalize(first_PD, dim=1), functional.normalize(second_PD, dim=1)
    return (first_PD * second_PD).sum(dim=1).clamp(-1.0, 1.0)


# Distance of two orthogonal words, used for texts without words.
_UNRELATED = 1.0
# Most distances in one block of pairs, 8 bytes each.
_COSTS_AT_A_TIME = 4_000_000


def wmd(first_PMD: Tensor, first_weights_PM: Tensor, second_PND: Tensor, second_weights_PN: Tensor) -> Tensor:
    """Minus the word mover's distance of each pair of texts, ``[P]`` in ``[-2, 0]``, with cosine distances of words.

    The cosine distance ``1 - cos`` agrees better with human judgements than the Euclidean distance (STS dev). The
    weights of a text, >= 0 and 0 for padding, are scaled to sum to 1; optimal transport is solved exactly (network
    simplex of POT). A text without weights scores -1. Word vectors are unit vectors, finite also where the weight is 0.

    Raises:
        ImportError: POT is not installed.

    References:
        Kusner et al. 2015; Chang 2022, section 3.2.2.3.
    """
    require_extra("wmd", "ot")
    from ot.lp import emd2

    scores_P = torch.full((len(first_PMD),), -_UNRELATED, dtype=torch.float32)
    for start, costs_BMN in _costs(first_PMD, second_PND):
        pairs = slice(start, start + len(costs_BMN))
        costs = costs_BMN.numpy()
        first_BM, second_BN = first_weights_PM[pairs].double().numpy(), second_weights_PN[pairs].double().numpy()
        for row, (from_M, to_N, cost_MN) in enumerate(zip(first_BM, second_BN, costs, strict=True), start=start):
            rows, columns = from_M > 0, to_N > 0
            if rows.any() and columns.any():
                from_m, to_n = from_M[rows], to_N[columns]
                cost_mn = cost_MN[rows][:, columns].copy(order="C")
                scores_P[row] = -emd2(from_m / from_m.sum(), to_n / to_n.sum(), cost_mn)
    return scores_P


def probability_wmd(
    first_PMD: Tensor,
    first_weights_PM: Tensor,
    second_PND: Tensor,
    second_weights_PN: Tensor,
    *,
    first_probabilities_PM: Tensor,
    second_probabilities_PN: Tensor,
) -> Tensor:
    """``wmd`` with every word's weight multiplied by ``alpha / (alpha + p(w))``.

    References:
        Chang 2022, section 3.2.2.3 (Prob_WMD).
    """
    return wmd(
        first_PMD,
        first_weights_PM * probability_weights(first_probabilities_PM),
        second_PND,
        second_weights_PN * probability_weights(second_probabilities_PN),
    )


def _costs(first_PMD: Tensor, second_PND: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Blocks of pairs: the index of the first pair, and cosine distances ``[B, M, N]`` float64."""
    block = max(1, _COSTS_AT_A_TIME // max(1, first_PMD.shape[1] * second_PND.shape[1]))
    for start in range(0, len(first_PMD), block):
        cosines_BMN = first_PMD[start : start + block] @ second_PND[start : start + block].mT
        yield start, (1 - cosines_BMN.double()).clamp_min_(0.0)
