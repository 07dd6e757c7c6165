"""Coefficients of non-negative sparse coding, batched, on CPU and GPU.

Shape suffixes: B texts, K facets, N targets, D dimensions.

For every target ``w`` of a text with facets ``F = [c_1 .. c_K]``, this solves the box-constrained quadratic programme
of Chang 2022, eq. 3.1::

    min_m  ||F m - w||^2 + l1_weight * sum(m)      subject to  0 <= m <= 1

It needs only the Gram matrix ``H = F^T F`` and the correlations ``b = F^T w``. Coordinate descent minimises exactly
over one coefficient at a time, so it converges in a few sweeps. All targets of all texts take each step together.
"""

import torch
from torch import Tensor

# A shorter facet counts as zero; its coefficient is undetermined and stays 0.
MIN_SQUARED_NORM = 1e-12
_CHECK_EVERY = 4  # sweeps between two checks of convergence


def gram_and_correlations(facets_BKD: Tensor, targets_BND: Tensor) -> tuple[Tensor, Tensor]:
    """Gram matrix of the facets ``[B, K, K]`` and their inner products with the targets ``[B, K, N]``."""
    return facets_BKD @ facets_BKD.mT, facets_BKD @ targets_BND.mT


@torch.no_grad()
def solve_coefficients(
    gram_BKK: Tensor, correlations_BKN: Tensor, *, l1_weight: float, max_sweeps: int = 100, tolerance: float = 1e-4
) -> Tensor:
    """Optimal coefficients of eq. 3.1, ``[B, K, N]`` in ``[0, 1]``, treated as constants by autograd (algorithm 1).

    ``gram_BKK``, ``correlations_BKN``: see ``gram_and_correlations``. ``l1_weight``: lambda, >= 0. ``max_sweeps``: over
    the K coefficients. ``tolerance``: stops when no projected gradient step moves a coefficient by more.

    Example:
        >>> import torch
        >>> gram, correlations = torch.eye(2)[None], torch.tensor([[[0.9], [0.1]]])
        >>> solve_coefficients(gram, correlations, l1_weight=0.4).flatten().tolist()
        [0.699999988079071, 0.0]
    """
    num_facets = gram_BKK.shape[1]
    threshold_BKN = correlations_BKN - 0.5 * l1_weight
    squared_norms_BK1 = gram_BKK.diagonal(dim1=1, dim2=2).unsqueeze(-1)
    inverse_BK1 = torch.where(squared_norms_BK1 > MIN_SQUARED_NORM, 1.0 / squared_norms_BK1, 0.0)
    # Given the others, the best m_k is clip((b_k - l1 / 2 - sum_{j != k} H_kj m_j) / H_kk, 0, 1). With scaled rows and
    # a zero diagonal this is one small product and one clip.
    offsets_BKN = threshold_BKN * inverse_BK1
    couplings_BKK = gram_BKK * -inverse_BK1
    couplings_BKK.diagonal(dim1=1, dim2=2).zero_()
    coefficients_BKN = torch.zeros_like(offsets_BKN)
    for sweep in range(1, max_sweeps + 1):
        for k in range(num_facets):
            row = slice(k, k + 1)
            best_B1N = torch.baddbmm(offsets_BKN[:, row], couplings_BKK[:, row], coefficients_BKN)
            coefficients_BKN[:, row] = best_B1N.clamp_(0.0, 1.0)
        if num_facets == 1:
            break
        if sweep % _CHECK_EVERY == 0:
            half_gradient_BKN = torch.baddbmm(threshold_BKN, gram_BKK, coefficients_BKN, beta=-1)
            # The moves of a projected gradient step are zero exactly at the optimum.
            moves_BKN = coefficients_BKN - (coefficients_BKN - half_gradient_BKN).clamp_(0.0, 1.0)
            if not moves_BKN.numel() or float(moves_BKN.abs().max()) <= tolerance:
                break
    return coefficients_BKN
