"""Losses of relations: facets and the entity pairs they co-occur with, and labelled patterns.

Shape suffixes: B patterns or relations, N entity pairs of each, K facets, D dimensions, R relations.
"""

import torch
from torch import Tensor
from torch.nn import functional

_TINY = 1e-8


def closest_facet_distance(facets_BKD: Tensor, pairs_BND: Tensor) -> Tensor:
    """Squared distance of each entity pair from its closest facet, which may be shortened, ``[B, N]``.

    ``D = min_k min_(0 <= eta <= 1) ||e - eta s_k||^2``, in ``[0, 1]``, solved by ``eta = clamp(e.s / ||s||^2, 0, 1)``.
    ``pairs_BND`` are unit vectors (Chang 2022, eq. 3.8).
    """
    # ||e - eta s||^2 = 1 - 2 eta e.s + eta^2 ||s||^2; [B, N, D] @ [B, D, K] -> [B, N, K]
    dots_BNK = pairs_BND @ facets_BKD.mT
    squares_B1K = facets_BKD.square().sum(dim=-1).unsqueeze(1)
    eta_BNK = (dots_BNK.detach() / squares_B1K.detach().clamp_min(_TINY)).clamp(0.0, 1.0)
    distances_BNK = 1.0 - 2.0 * eta_BNK * dots_BNK + eta_BNK.square() * squares_B1K
    return distances_BNK.amin(dim=-1)


def universal_schema_loss(
    facets_BKD: Tensor,
    positives_BND: Tensor,
    negatives_BND: Tensor,
    *,
    positive_weights_BN: Tensor,
    negative_weights_BN: Tensor,
) -> Tensor:
    """Weighted mean of ``D(own pairs) - D(pairs of other rows)``, in ``[-1, 1]``.

    Pairs are normalised here. Weights are 1 / frequency of the pair, and 0 where there is no pair; they are normalised
    to a mean of 1 over the batch (Chang 2022, eq. 3.9).
    """
    facets_BKD = facets_BKD.float()
    total = (positive_weights_BN.sum() + negative_weights_BN.sum()).clamp_min(_TINY) / 2
    near_BN = closest_facet_distance(facets_BKD, functional.normalize(positives_BND, dim=-1))
    far_BN = closest_facet_distance(facets_BKD, functional.normalize(negatives_BND, dim=-1))
    return ((positive_weights_BN * near_BN).sum() - (negative_weights_BN * far_BN).sum()) / total


def ranking_loss(
    scores_BR: Tensor, labels_BR: Tensor, similar_RR: Tensor, threshold: Tensor, *, slope: float
) -> Tensor:
    """Cross-entropy of a pattern's relations against all others and against no relation, >= 0.

    ``labels_BR`` has at least one 1.0 per pattern; ``similar_RR`` is true where two relations mean nearly the same, so
    that one is no negative of the other; ``threshold`` is the score of no relation.
    """
    labelled_BR = labels_BR > 0
    spared_BR = ((labels_BR @ similar_RR.to(labels_BR.dtype)) > 0) & ~labelled_BR
    scores_BR = scores_BR.masked_fill(spared_BR, float("-inf"))
    logits_BX = torch.cat([scores_BR, threshold.expand(len(scores_BR), 1)], dim=1) * slope
    shares_BR = labels_BR / labels_BR.sum(dim=1, keepdim=True)
    likelihoods_BR = functional.log_softmax(logits_BX, dim=1)[:, :-1].masked_fill(~labelled_BR, 0.0)
    return -(shares_BR * likelihoods_BR).sum(dim=1).mean()


def direction_loss(scores_BR: Tensor, mirrored_BR: Tensor, labels_BR: Tensor, *, slope: float) -> Tensor:
    """Mean of ``log(1 + exp(slope (mirrored - given)))`` over the labels: the given order of arguments scores higher.

    ``labels_BR`` is 1.0 where the order decides, and 0.0 elsewhere, also for symmetric relations.
    """
    losses_BR = functional.softplus((mirrored_BR - scores_BR) * slope) * labels_BR
    return losses_BR.sum() / labels_BR.sum().clamp_min(1.0)


def no_relation_loss(scores_BR: Tensor, threshold: Tensor, *, slope: float) -> Tensor:
    """Mean of ``log(1 + exp(slope (best - threshold)))`` of patterns that express no relation."""
    return functional.softplus((scores_BR.amax(dim=1) - threshold) * slope).mean()
