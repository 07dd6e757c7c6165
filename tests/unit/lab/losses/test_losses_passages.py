"""Losses of sentence encoders."""

import torch
from facets_lab.losses.passages import distillation_loss
from torch.nn.functional import normalize


def test_a_student_that_equals_its_teacher_has_no_loss() -> None:
    vectors = normalize(torch.randn(6, 8), dim=1)
    distance, divergence = distillation_loss(vectors, vectors, temperature=0.05)
    assert abs(float(distance)) < 1e-5
    assert abs(float(divergence)) < 1e-5
