"""Losses of papers: authors and citations as a softmax, and the autoencoder.

Shape suffixes: B papers, K facets, D dimensions, U authors or citing papers of a batch, P positive pairs.
"""

import torch
from torch import Tensor
from torch.nn import functional

_NEVER = -1e4  # a logit that takes no part in a softmax
_ROW_WEIGHT = 0.3


def softmax_loss(
    facets_BKD: Tensor,
    table_UD: Tensor,
    positives_P2: Tensor,
    weights_P: Tensor,
    own_PD: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """Softmax cross-entropy of the scores of eq. 3.13 before the cut at 0, weighted as in eq. 3.12 (Chang 2022); >= 0.

    A positive pair competes with the author's scores of every other paper of the batch (the column) and, with a weight
    of 0.3, with the paper's scores of every other author (the row). Other positives take no part. Facets are scaled by
    their magnitudes (eq. 3.15). ``table_UD`` holds the distinct authors (citing papers) of the batch, ``positives_P2``
    distinct pairs (paper, row of the table), and ``own_PD`` the vectors of these authors without the paper.
    """
    if not len(positives_P2):
        return facets_BKD.sum() * 0.0
    papers_P, columns_P = positives_P2.unbind(dim=1)
    scores_BU = (facets_BKD @ table_UD.T).amax(dim=1)
    own_PK = (facets_BKD[papers_P] @ own_PD.unsqueeze(2)).squeeze(2)
    positive_P = own_PK.amax(dim=1) / temperature
    is_positive_BU = torch.zeros_like(scores_BU, dtype=torch.bool)
    is_positive_BU[papers_P, columns_P] = True
    logits_BU = (scores_BU / temperature).masked_fill(is_positive_BU, _NEVER)
    # -log(e^s / (e^s + sum e^other)) = softplus(logsumexp(other) - s)
    column_P = functional.softplus(logits_BU.logsumexp(dim=0)[columns_P] - positive_P)
    row_P = functional.softplus(logits_BU.logsumexp(dim=1)[papers_P] - positive_P)
    return (weights_P * (column_P + _ROW_WEIGHT * row_P)).sum() / weights_P.sum().clamp_min(1e-6)


def paper_autoencoder_loss(facets_BKD: Tensor, words_BD: Tensor, negatives_B: Tensor) -> Tensor:
    """Mean of ``((p_i . mu_i) - 1)^2 + (p_j . mu_i)^2``, >= 0 (Chang 2022, eq. B.3, without its weight gamma).

    Facets are not scaled; ``words_BD`` is H of the weighted sum of each text's words (eq. B.4).
    """
    mean_BD = facets_BKD.float().mean(dim=1)
    own_B = (words_BD * mean_BD).sum(dim=-1)
    other_B = (words_BD[negatives_B] * mean_BD).sum(dim=-1)
    return ((own_B - 1.0).square() + other_B.square()).mean()
