"""The loss of sentence and phrase models: reconstruct the neighbours' words, and not those of another text.

Shape suffixes: B texts, K facets, N targets, D dimensions.
"""

import torch
from torch import Tensor

from facets.coding import MIN_SQUARED_NORM, gram_and_correlations, solve_coefficients


def nnsc_loss(
    facets_BKD: Tensor,
    targets_BND: Tensor,
    target_mask_BN: Tensor,
    negatives_B: Tensor,
    *,
    l1_weight: float,
    tolerance: float = 1e-4,
    max_sweeps: int = 100,
    kmeans: bool = False,
) -> Tensor:
    """Mean of ``Er(F, W(N_t)) - Er(F, W(N_r))``, errors averaged over the words of a text; at least -1.

    The coefficients are solved for the given facets, to a KKT residual of ``tolerance``, and then held constant; with
    ``kmeans`` only the closest facet counts. Targets are unit vectors; a text without targets adds nothing;
    ``negatives_B`` is the row of the batch whose words are the negatives of each text (Chang 2022, eq. 3.1, 3.2 and
    algorithm 1).
    """
    facets_BKD = facets_BKD.float()
    mask_BN = target_mask_BN.to(facets_BKD.dtype)
    weights_BN = mask_BN / mask_BN.sum(dim=1, keepdim=True).clamp_min(1.0)
    both_weights_BN = torch.cat([weights_BN, -weights_BN[negatives_B]], dim=1)
    # Own and negative words share the Gram matrix, so one solve serves both.
    gram_BKK, own_BKN = gram_and_correlations(facets_BKD, targets_BND)
    correlations_BKN = torch.cat([own_BKN, facets_BKD @ targets_BND[negatives_B].mT], dim=2)
    # A padded target has no correlations, hence coefficients of zero.
    correlations_BKN = correlations_BKN * (both_weights_BN != 0).unsqueeze(1)
    if kmeans:
        coefficients_BKN = kmeans_coefficients(gram_BKK.detach(), correlations_BKN.detach())
    else:
        coefficients_BKN = solve_coefficients(
            gram_BKK.detach(),
            correlations_BKN.detach(),
            l1_weight=l1_weight,
            max_sweeps=max_sweeps,
            tolerance=tolerance,
        )
    return reconstruction_error(coefficients_BKN, gram_BKK, correlations_BKN, weights_BN=both_weights_BN).mean()


@torch.no_grad()
def kmeans_coefficients(gram_BKK: Tensor, correlations_BKN: Tensor) -> Tensor:
    """Coefficients of the k-means ablation: each target uses the closest facet, scaled by eta in ``[0, 1]``.

    ``eta_k = clip(b_k / H_kk, 0, 1)`` as in Chang 2022, eq. 3.8; the other coefficients are 0.
    """
    squared_norms_BK1 = gram_BKK.diagonal(dim1=1, dim2=2).unsqueeze(-1).clamp_min(MIN_SQUARED_NORM)
    eta_BKN = (correlations_BKN / squared_norms_BK1).clamp_(0.0, 1.0)
    # ||eta c - w||^2 - ||w||^2
    errors_BKN = eta_BKN * (eta_BKN * squared_norms_BK1 - 2 * correlations_BKN)
    best_B1N = errors_BKN.argmin(dim=1, keepdim=True)
    return torch.zeros_like(eta_BKN).scatter_(1, best_B1N, eta_BKN.gather(1, best_B1N))


def reconstruction_error(
    coefficients_BKN: Tensor, gram_BKK: Tensor, correlations_BKN: Tensor, *, weights_BN: Tensor
) -> Tensor:
    """``sum_n weight_n ||F m_n - w_n||^2`` of unit targets, ``[B]``, differentiable in Gram matrix and correlations.

    Er of Chang 2022, eq. 3.1. Expanding the square avoids every ``[B, N, D]`` temporary. ``weights_BN``: 0 for padding.
    """
    weighted_BKN = coefficients_BKN * weights_BN.unsqueeze(1)
    quadratic_B = ((weighted_BKN @ coefficients_BKN.mT) * gram_BKK).sum(dim=(1, 2))
    linear_B = (weighted_BKN * correlations_BKN).sum(dim=(1, 2))
    return quadratic_B - 2 * linear_B + weights_BN.sum(dim=1)
