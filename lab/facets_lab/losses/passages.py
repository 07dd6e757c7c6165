"""Losses of passage models. Shape suffixes: S targets, B passages, K facets, N texts, W width."""

import torch
from torch import Tensor
from torch.nn import functional


def soft_maximum(cosines: Tensor, temperature: float) -> Tensor:
    """Mean of the last axis weighted by the softmax of ``cosines / temperature``; ``-inf`` is left out.

    With a hard maximum a facet that loses once would get no gradient again.
    """
    weights = (cosines / temperature).softmax(dim=-1)
    return (weights * cosines.masked_fill(cosines.isneginf(), 0.0)).sum(dim=-1)


def facet_losses(
    targets_SW: Tensor, owners_S: Tensor, facets_BKW: Tensor, *, ranking_temperature: float, facet_temperature: float
) -> tuple[Tensor, Tensor]:
    """How badly the facets of passages match the sentences and questions that co-occur with them.

    The facets are cluster centres of the targets (Chang 2022, eq. 3.2, assigned softly), and a target must find its own
    passage among those of the batch by its best facet. All vectors are unit vectors; zero rows are no facets. Returns
    the cross-entropy over passages, and 1 minus the soft maximum with the own passage (``owners_S``); each ``[S]``.
    """
    is_facet_BK = facets_BKW.detach().square().sum(dim=2) > 0
    cosines_SBK = torch.einsum("sw,bkw->sbk", targets_SW, facets_BKW).masked_fill(~is_facet_BK, -torch.inf)
    best_SB = soft_maximum(cosines_SBK, facet_temperature)
    ranking_S = functional.cross_entropy(best_SB / ranking_temperature, owners_S, reduction="none")
    return ranking_S, 1 - best_SB.gather(1, owners_S[:, None]).squeeze(1)


def distillation_loss(vectors_NW: Tensor, teacher_NW: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Mean of 1 minus the cosine with a teacher's unit vectors, and mean divergence of the rankings of other texts.

    The Kullback-Leibler divergence is that of rankings of the student's and of the teacher's vectors, because either
    may have encoded the other texts.
    """
    itself = torch.eye(len(vectors_NW), dtype=torch.bool, device=vectors_NW.device)
    teacher_NN = (teacher_NW @ teacher_NW.T / temperature).masked_fill(itself, -1e4).log_softmax(dim=1)
    divergence = vectors_NW.new_zeros(())
    for others_NW in (vectors_NW, teacher_NW):
        student_NN = (vectors_NW @ others_NW.T / temperature).masked_fill(itself, -1e4).log_softmax(dim=1)
        divergence = divergence + functional.kl_div(student_NN, teacher_NN, reduction="batchmean", log_target=True) / 2
    return (1 - (vectors_NW * teacher_NW).sum(dim=1)).mean(), divergence
