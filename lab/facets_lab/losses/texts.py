"""The loss of sentence and phrase models: reconstruct the neighbours' words, and not those of another text.

Shape suffixes: B texts, K facets, N targets, D dimensions.
"""

import torch
from torch import Tensor

from facets.coding import gram_and_correlations, kmeans_coefficients, reconstruction_error, solve_coefficients


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
