"""Training losses of all tasks: pure functions of tensors.

Shape suffixes: B texts, patterns, relations or papers of a batch, K facets, D dimensions, N targets, entity pairs or
distilled texts, W width of an encoder, R relations, U authors or citing papers, P positive pairs.
"""

import torch
from torch import Tensor
from torch.nn import functional

from facets.coding import MIN_SQUARED_NORM, gram_and_correlations, solve_coefficients

_TINY = 1e-8
_NEVER = -1e4  # a logit that takes no part in a softmax
_ROW_WEIGHT = 0.3


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


def distillation_loss(vectors_NW: Tensor, teacher_NW: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Mean of 1 minus the cosine with a teacher's unit vectors, and mean divergence of the rankings of other texts.

    The Kullback-Leibler divergence is that of rankings of the student's and of the teacher's vectors, because either
    may have encoded the other texts.
    """
    itself = torch.eye(len(vectors_NW), dtype=torch.bool, device=vectors_NW.device)
    teacher_NN = (teacher_NW @ teacher_NW.T / temperature).masked_fill(itself, _NEVER).log_softmax(dim=1)
    divergence = vectors_NW.new_zeros(())
    for others_NW in (vectors_NW, teacher_NW):
        student_NN = (vectors_NW @ others_NW.T / temperature).masked_fill(itself, _NEVER).log_softmax(dim=1)
        divergence = divergence + functional.kl_div(student_NN, teacher_NN, reduction="batchmean", log_target=True) / 2
    return (1 - (vectors_NW * teacher_NW).sum(dim=1)).mean(), divergence


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


def softmax_loss(
    facets_BKD: Tensor, table_UD: Tensor, positives_P2: Tensor, weights_P: Tensor, own_PD: Tensor, *, temperature: float
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
