"""Losses of sentence encoders. Shape suffixes: N texts, W width."""

import torch
from torch import Tensor
from torch.nn import functional


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
