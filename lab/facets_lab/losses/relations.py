"""Losses of relations: facets and the entity pairs they co-occur with, the look-up's ranking, labelled patterns.

Shape suffixes: B patterns or relations, N entity pairs of each, K facets, D dimensions, R relations.
"""

import torch
from torch import Tensor
from torch.nn import functional

_TINY = 1e-8


def closest_facet_distance(facets_BKD: Tensor, pairs_BND: Tensor) -> Tensor:
    """Squared distance of each entity pair from its closest facet, the facet's length being free up to its own.

    ``D = min_k min_(0 <= eta <= 1) ||e - eta s_k||^2``, solved by ``eta = clamp(e.s / ||s||^2, 0, 1)``.

    Args:
        facets_BKD: Facets of patterns or relations, ``[B, K, D]``, any lengths.
        pairs_BND: Unit vectors of entity pairs, ``[B, N, D]``.

    Returns:
        ``[B, N]`` in ``[0, 1]``.

    Example:
        >>> facets = torch.tensor([[[0.5, 0.0], [0.0, 2.0]]])
        >>> closest_facet_distance(facets, torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])).tolist()
        [[0.25, 0.0, 1.0]]

    References:
        Chang 2022, eq. 3.8.
    """
    # [B, N, D] @ [B, D, K] -> [B, N, K]; ||e - eta s||^2 = 1 - 2 eta e.s + eta^2 ||s||^2 needs nothing else
    dots_BNK = pairs_BND @ facets_BKD.mT
    squares_B1K = facets_BKD.square().sum(dim=-1).unsqueeze(1)
    eta_BNK = (dots_BNK.detach() / squares_B1K.detach().clamp_min(_TINY)).clamp(0.0, 1.0)
    distances_BNK = 1.0 - 2.0 * eta_BNK * dots_BNK + eta_BNK.square() * squares_B1K
    return distances_BNK.amin(dim=-1)


def reference_closest_facet_distance(facets_BKD: Tensor, pairs_BND: Tensor, *, num_lengths: int = 1001) -> Tensor:
    """``closest_facet_distance`` by trying lengths one after the other; slow and obvious, for tests."""
    best_BN = torch.full(pairs_BND.shape[:2], float("inf"), dtype=pairs_BND.dtype)
    for eta in torch.linspace(0.0, 1.0, num_lengths).tolist():
        for facet in range(facets_BKD.shape[1]):
            differences_BND = pairs_BND - eta * facets_BKD[:, facet : facet + 1]
            best_BN = torch.minimum(best_BN, differences_BND.square().sum(dim=-1))
    return best_BN


def universal_schema_loss(
    facets_BKD: Tensor,
    positives_BND: Tensor,
    negatives_BND: Tensor,
    *,
    positive_weights_BN: Tensor,
    negative_weights_BN: Tensor,
) -> Tensor:
    """Weighted mean of ``D(own pairs) - D(others' pairs)``.

    Args:
        facets_BKD: ``[B, K, D]``; the gradient flows into them.
        positives_BND: Entity pairs that co-occur with each row, ``[B, N, D]``; normalised here.
        negatives_BND: Entity pairs of other rows, ``[B, N, D]``; normalised here.
        positive_weights_BN: r of each positive, ``[B, N]``, 0 where there is none: 1 / frequency of the pair.
        negative_weights_BN: The same of the negatives.

    Returns:
        A scalar in ``[-1, 1]``; the lower, the better.

    References:
        Chang 2022, eq. 3.9, the weights normalised to a mean of 1 over the batch.
    """
    facets_BKD = facets_BKD.float()
    total = (positive_weights_BN.sum() + negative_weights_BN.sum()).clamp_min(_TINY) / 2
    near_BN = closest_facet_distance(facets_BKD, functional.normalize(positives_BND, dim=-1))
    far_BN = closest_facet_distance(facets_BKD, functional.normalize(negatives_BND, dim=-1))
    return ((positive_weights_BN * near_BN).sum() - (negative_weights_BN * far_BN).sum()) / total


def ranking_loss(
    scores_BR: Tensor, labels_BR: Tensor, similar_RR: Tensor, threshold: Tensor, *, slope: float
) -> Tensor:
    """Cross-entropy of a pattern's relations against all others and against saying none.

    Args:
        scores_BR: Scores of labelled patterns and all relations.
        labels_BR: 1.0 where the pattern says the relation, else 0.0; at least one a pattern.
        similar_RR: True where two relations mean nearly the same: one is no negative of the other.
        threshold: The score of saying none, a scalar.
        slope: Inverse temperature.

    Returns:
        A scalar >= 0.
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

    Args:
        scores_BR: Scores of labelled patterns.
        mirrored_BR: Scores of the same patterns with their arguments exchanged.
        labels_BR: 1.0 where the order decides, 0.0 elsewhere: also at symmetric relations.
        slope: Inverse temperature.
    """
    losses_BR = functional.softplus((mirrored_BR - scores_BR) * slope) * labels_BR
    return losses_BR.sum() / labels_BR.sum().clamp_min(1.0)


def no_relation_loss(scores_BR: Tensor, threshold: Tensor, *, slope: float) -> Tensor:
    """Mean of ``log(1 + exp(slope (best - threshold)))``: patterns that say no relation stay below the threshold."""
    return functional.softplus((scores_BR.amax(dim=1) - threshold) * slope).mean()
