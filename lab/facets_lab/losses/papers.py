"""Losses of papers: authors and citations (Chang 2022, eq. 3.12, 3.13), squared or as a softmax, and the autoencoder.

Shape suffixes: B papers, K facets, D dimensions, U authors or citing papers of a batch, P positive pairs. Both losses
of pairs have the arguments

- ``facets_BKD``: facets scaled by their magnitudes (eq. 3.15);
- ``table_UD``: vectors of the distinct authors (citing papers) of the batch;
- ``positives_P2``: distinct pairs (paper of the batch, row of ``table_UD``), int64;
- ``weights_P``: r of eq. 3.12; 0 leaves a pair out;
- ``own_PD``: vectors of the positive pairs: those of the authors without this paper.
"""

import torch
from torch import Tensor
from torch.nn import functional

_NEVER = -1e4  # a logit that takes no part in a softmax
_ROW_WEIGHT = 0.3


def best_products(facets_BKD: Tensor, table_UD: Tensor) -> Tensor:
    """``max over k of a_u . p_k``, ``[B, U]``: eq. 3.13 before the cut at 0."""
    return (facets_BKD @ table_UD.T).amax(dim=1)  # [B, K, D] x [D, U] -> [B, K, U] -> [B, U]


def squared_loss(
    facets_BKD: Tensor,
    table_UD: Tensor,
    positives_P2: Tensor,
    weights_P: Tensor,
    own_PD: Tensor,
    *,
    negative_weight: float,
) -> Tensor:
    """Weighted squared error of the scores of a batch, averaged over its positive pairs by their weights; >= 0.

    The paper draws one random paper as the negative of a positive pair. Here every other paper of the batch is one, and
    together they have ``negative_weight`` (1 in the paper): the same expectation without the noise of a draw. A
    positive pair is scored before the cut at 0 of eq. 3.13, which has no gradient there (Chang 2022, eq. 3.12, 3.13).
    """
    if not len(positives_P2):
        return facets_BKD.sum() * 0.0
    papers_P, columns_P = positives_P2.unbind(dim=1)
    scores_BU = best_products(facets_BKD, table_UD)
    positive_P = _own_scores(facets_BKD[papers_P], own_PD)
    is_negative_BU = torch.ones_like(scores_BU)
    is_negative_BU[papers_P, columns_P] = 0.0
    weights_U = weights_P.new_zeros(len(table_UD)).index_add(0, columns_P, weights_P)
    weights_U = weights_U / is_negative_BU.sum(dim=0).clamp_min(1.0)
    positive = (weights_P * (positive_P - 1.0).square()).sum()
    negative = (weights_U * is_negative_BU * scores_BU.clamp_min(0.0).square()).sum()
    return (positive + negative_weight * negative) / weights_P.sum().clamp_min(1e-6)


def softmax_loss(
    facets_BKD: Tensor,
    table_UD: Tensor,
    positives_P2: Tensor,
    weights_P: Tensor,
    own_PD: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """Softmax cross-entropy of the same scores, >= 0; it trains the order of papers for an author, which is measured.

    A positive pair competes with the author's scores of every other paper of the batch (the column) and, with a weight
    of 0.3, with the paper's scores of every other author (the row). Other positives take no part. Scores are
    those of eq. 3.13 before the cut at 0, weights those of eq. 3.12 (Chang 2022).
    """
    if not len(positives_P2):
        return facets_BKD.sum() * 0.0
    papers_P, columns_P = positives_P2.unbind(dim=1)
    scores_BU = best_products(facets_BKD, table_UD)
    positive_P = _own_scores(facets_BKD[papers_P], own_PD) / temperature
    is_positive_BU = torch.zeros_like(scores_BU, dtype=torch.bool)
    is_positive_BU[papers_P, columns_P] = True
    logits_BU = (scores_BU / temperature).masked_fill(is_positive_BU, _NEVER)
    # -log(e^s / (e^s + sum e^other)) = softplus(logsumexp(other) - s)
    column_P = functional.softplus(logits_BU.logsumexp(dim=0)[columns_P] - positive_P)
    row_P = functional.softplus(logits_BU.logsumexp(dim=1)[papers_P] - positive_P)
    return (weights_P * (column_P + _ROW_WEIGHT * row_P)).sum() / weights_P.sum().clamp_min(1e-6)


def _own_scores(facets_PKD: Tensor, own_PD: Tensor) -> Tensor:
    return (facets_PKD @ own_PD.unsqueeze(2)).squeeze(2).amax(dim=1)


def paper_autoencoder_loss(facets_BKD: Tensor, words_BD: Tensor, negatives_B: Tensor) -> Tensor:
    """Mean of ``((p_i . mu_i) - 1)^2 + (p_j . mu_i)^2``, >= 0 (Chang 2022, eq. B.3, without its weight gamma).

    Facets are not scaled; ``words_BD`` is H of the weighted sum of each text's words (eq. B.4).
    """
    mean_BD = facets_BKD.float().mean(dim=1)
    own_B = (words_BD * mean_BD).sum(dim=-1)
    other_B = (words_BD[negatives_B] * mean_BD).sum(dim=-1)
    return ((own_B - 1.0).square() + other_B.square()).mean()
