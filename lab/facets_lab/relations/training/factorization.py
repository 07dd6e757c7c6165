"""Universal schema by matrix factorization: one embedding a row and an entity pair, ranked by BPR.

It is the look-up model of the paper's table 3.5.

Shape suffixes: B cells, N negatives, D dimensions.
"""

import logging

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from facets_lab.relations.training.config import FactorizationConfig
from facets_lab.relations.training.data import RelationMatrix

__all__ = ["factorize"]

logger = logging.getLogger(__name__)

_EPSILON = 1e-8


@torch.no_grad()
def factorize(
    matrix: RelationMatrix, config: FactorizationConfig, *, seed: int, show_progress: bool = True
) -> tuple[Tensor, Tensor]:
    """Embeddings of rows ``[P + R, D]`` and entity pairs ``[N, D]``.

    The gradient of ``bpr_loss`` is written out: only the embeddings of a batch are touched.

    Args:
        matrix: The cells.
        config: D, epochs, rates.
        seed: Of the start and of the order.
        show_progress: Show a progress bar on standard error.
    """
    dim = config.dim
    generator = torch.Generator().manual_seed(seed)
    num_rows = len(matrix.offsets) - 1
    rows_D = torch.randn(num_rows, dim, generator=generator) * dim**-0.5
    pairs_D = torch.randn(matrix.num_pairs, dim, generator=generator) * dim**-0.5
    row_squares, pair_squares = torch.zeros(num_rows, 1), torch.zeros(matrix.num_pairs, 1)
    row_of = torch.from_numpy(np.repeat(np.arange(num_rows), matrix.row_sizes))
    pair_of = torch.from_numpy(matrix.pairs.astype(np.int64))
    num_cells = len(pair_of)
    for epoch in tqdm(range(config.num_epochs), disable=not show_progress, desc="factorization"):
        order = torch.randperm(num_cells, generator=generator)
        total = 0.0
        for batch in torch.split(order, config.batch_size):
            row_B, pair_B = row_of[batch], pair_of[batch]
            # Drawn among the cells, so that a pair is a negative as often as it is a positive.
            other_BN = pair_of[torch.randint(num_cells, (len(batch), config.num_negatives), generator=generator)]
            rows_BD, own_BD, other_BND = rows_D[row_B], pairs_D[pair_B], pairs_D[other_BN]
            margins_BN = torch.einsum("bd,bnd->bn", rows_BD, own_BD.unsqueeze(1) - other_BND)
            total += float(-torch.nn.functional.logsigmoid(margins_BN).sum())
            # d/dx of -log sigmoid(x)
            slopes_BN = torch.sigmoid(-margins_BN) / config.num_negatives
            slope_B1 = slopes_BN.sum(dim=1, keepdim=True)
            mixed_BD = torch.einsum("bn,bnd->bd", slopes_BN, other_BND)
            decay = config.l2_weight
            _adagrad(rows_D, row_squares, row_B, mixed_BD - slope_B1 * own_BD + decay * rows_BD, config.learning_rate)
            _adagrad(
                pairs_D,
                pair_squares,
                torch.cat([pair_B, other_BN.flatten()]),
                torch.cat(
                    [
                        decay * own_BD - slope_B1 * rows_BD,
                        (slopes_BN.unsqueeze(-1) * rows_BD.unsqueeze(1)).flatten(0, 1),
                    ]
                ),
                config.learning_rate,
            )
        logger.info("factorization epoch %d: BPR loss %.4f", epoch + 1, total / num_cells / config.num_negatives)
    return rows_D, pairs_D


def _adagrad(values_D: Tensor, squares: Tensor, rows_B: Tensor, gradients_BD: Tensor, rate: float) -> None:
    """One step of Adagrad with one rate a row, in place."""
    squares.index_add_(0, rows_B, gradients_BD.square().mean(dim=1, keepdim=True))
    steps_B1 = rate * gradients_BD.shape[1] ** -0.5 / (squares[rows_B].sqrt() + _EPSILON)
    values_D.index_add_(0, rows_B, -steps_B1 * gradients_BD)
