"""Word mover's distance: the cheapest way to move the words of one text onto the words of another.

Shape suffixes: P pairs, M words of the first text, N words of the second, D dimensions.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from facets.extras import require_extra
from facets.scoring.averages import probability_weights

__all__ = ["probability_wmd", "wmd"]

# Distance of two orthogonal words: what a text without words is from every other text.
_UNRELATED = 1.0
# Distances of one block of pairs, 8 bytes each.
_COSTS_AT_A_TIME = 4_000_000


def wmd(first_PMD: Tensor, first_weights_PM: Tensor, second_PND: Tensor, second_weights_PN: Tensor) -> Tensor:
    """Minus the word mover's distance of each pair of texts, with the cosine distance between words.

    The cosine distance ``1 - cos``, half the squared Euclidean distance of unit vectors, agrees better with people
    than the Euclidean distance itself (STS dev). The weights of a text are scaled to sum 1; optimal transport is
    solved exactly (network simplex of POT).

    Args:
        first_PMD: Unit word vectors, ``[P, M, D]``; finite also where the weight is 0.
        first_weights_PM: ``[P, M]``, >= 0; ones or ``closest_facet_weight``, 0 for padding.
        second_PND: ``[P, N, D]``.
        second_weights_PN: ``[P, N]``.

    Returns:
        ``[P]`` float32 scores in ``[-2, 0]``; 0 for the same words in any order. A text without weights
        is as far as orthogonal words from every other: -1.

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

    Args:
        first_PMD: As for ``wmd``.
        first_weights_PM: As for ``wmd``.
        second_PND: As for ``wmd``.
        second_weights_PN: As for ``wmd``.
        first_probabilities_PM: p(w) of each word, ``[P, M]``.
        second_probabilities_PN: ``[P, N]``.

    Returns:
        ``[P]`` scores, as ``wmd``.

    Raises:
        ImportError: POT is not installed.

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
    """Blocks of pairs: the number of the first pair, cosine distances ``[B, M, N]`` float64."""
    block = max(1, _COSTS_AT_A_TIME // max(1, first_PMD.shape[1] * second_PND.shape[1]))
    for start in range(0, len(first_PMD), block):
        cosines_BMN = first_PMD[start : start + block] @ second_PND[start : start + block].mT
        yield start, (1 - cosines_BMN.double()).clamp_min_(0.0)
