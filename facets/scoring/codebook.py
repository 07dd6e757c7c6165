"""How well the facets of two texts reconstruct each other.

Shape suffixes: P pairs, K facets of the first text, J facets of the second, D dimensions.
"""

from torch import Tensor

from facets.coding import gram_and_correlations, solve_coefficients
from facets.scoring.facet_match import unit_facets

__all__ = ["codebook_contributions", "codebook_score"]

# Scores are read to three or four digits; a KKT residual of 1e-4 moves an error by about 1e-8.
_TOLERANCE = 1e-4


def codebook_score(first_PKD: Tensor, second_PJD: Tensor, *, l1_weight: float = 0.0) -> Tensor:
    """Minus the symmetric distance SC of two codebooks, each error averaged over the facets it reconstructs.

    ``-(Er(F1, F2) / J + Er(F2, F1) / K)`` on facets of unit length. The averages, instead of eq. 3.5's
    sums, make scores of models with different K comparable; for one model they only change the scale. Facets of
    length zero, which short texts of some models have, count for nothing.

    Args:
        first_PKD: Facets of the first texts, ``[P, K, D]``, floating point, any lengths.
        second_PJD: Facets of the second texts, ``[P, J, D]``, same dtype.
        l1_weight: lambda of eq. 3.1, >= 0. Without shrinking (0) a codebook reconstructs itself without error, so
            that a text is its own best match; it also agrees better with people (STS dev).

    Returns:
        ``[P]`` scores in ``[-2, 0]``; the same in both directions.

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
    forth_P = _directed_error(first_PKD, second_PJD, l1_weight)
    back_P = _directed_error(second_PJD, first_PKD, l1_weight)
    return -(forth_P + back_P)


def codebook_contributions(first_PKD: Tensor, second_PJD: Tensor, *, l1_weight: float = 0.0) -> Tensor:
    """What each meeting of two facets adds to ``codebook_score``: which facet met which.

    A target's reconstruction explains ``||w||^2 - ||F m - w||^2 = sum_k m_k (2 b_k - (H m)_k)`` of it; the
    terms of both directions are added.

    Args:
        first_PKD: As for ``codebook_score``.
        second_PJD: As for ``codebook_score``.
        l1_weight: As for ``codebook_score``.

    Returns:
        ``[P, K, J]``, >= 0; for facets that are not zero the sum over K and J is ``codebook_score + 2``
        (a negative term, which needs facets that point away from each other, counts as 0).
    """
    first_PKD, second_PJD = unit_facets(first_PKD), unit_facets(second_PJD)
    forth_PKJ = _explained(first_PKD, second_PJD, l1_weight) / _num_facets(second_PJD)[:, None, None]
    back_PJK = _explained(second_PJD, first_PKD, l1_weight) / _num_facets(first_PKD)[:, None, None]
    return forth_PKJ.clamp_min(0.0) + back_PJK.clamp_min(0.0).mT


def _directed_error(sources_PKD: Tensor, targets_PJD: Tensor, l1_weight: float) -> Tensor:
    """``[P]``: Er(sources, targets), the mean over the targets, in ``[0, 1]``."""
    explained_PJ = _explained(sources_PKD, targets_PJD, l1_weight).sum(dim=1)
    errors_PJ = (targets_PJD.square().sum(dim=-1) - explained_PJ).clamp(0.0, 1.0)
    return (errors_PJ.sum(dim=1) / _num_facets(targets_PJD)).clamp_max(1.0)


def _num_facets(units_PKD: Tensor) -> Tensor:
    """``[P]``: the facets that are not zero, at least 1."""
    return (units_PKD != 0).any(dim=2).sum(dim=1).clamp_min(1)


def _explained(sources_PKD: Tensor, targets_PJD: Tensor, l1_weight: float) -> Tensor:
    """``[P, K, J]``: what each source facet explains of the squared length of each target."""
    gram_PKK, correlations_PKJ = gram_and_correlations(sources_PKD, targets_PJD)
    coefficients_PKJ = solve_coefficients(gram_PKK, correlations_PKJ, l1_weight=l1_weight, tolerance=_TOLERANCE)
    return coefficients_PKJ * (2 * correlations_PKJ - gram_PKK @ coefficients_PKJ)
