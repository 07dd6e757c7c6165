"""Losses of passage models against loops."""

import math

import torch
from facets_lab.losses.passages import distillation_loss, facet_losses, soft_maximum
from torch.nn.functional import normalize


def test_facet_losses_are_those_of_a_loop() -> None:
    torch.manual_seed(1)
    targets, owners = normalize(torch.randn(5, 8), dim=1), torch.tensor([0, 2, 1, 2, 0])
    facets = normalize(torch.randn(3, 4, 8), dim=2)
    facets[1, 2:] = 0  # two facets only
    ranking, fit = facet_losses(targets, owners, facets, ranking_temperature=0.1, facet_temperature=0.05)
    for target, owner, rank, distance in zip(targets, owners.tolist(), ranking, fit, strict=True):
        best = []
        for passage in facets:
            cosines = [float(target @ facet) for facet in passage if facet.norm() > 0]
            weights = [math.exp(cosine / 0.05) for cosine in cosines]
            best.append(sum(w * c for w, c in zip(weights, cosines, strict=True)) / sum(weights))
        expected = -math.log(math.exp(best[owner] / 0.1) / sum(math.exp(score / 0.1) for score in best))
        assert math.isclose(float(rank), expected, rel_tol=1e-4)
        assert math.isclose(float(distance), 1 - best[owner], rel_tol=1e-4)


def test_a_facet_that_loses_still_gets_a_gradient() -> None:
    cosines = torch.tensor([0.9, 0.8, -torch.inf], requires_grad=True)
    soft_maximum(cosines, 0.03).backward()
    assert cosines.grad is not None
    assert cosines.grad[1].abs() > 1e-3
    assert cosines.grad[2] == 0


def test_a_student_that_equals_its_teacher_has_no_loss() -> None:
    vectors = normalize(torch.randn(6, 8), dim=1)
    distance, divergence = distillation_loss(vectors, vectors, temperature=0.05)
    assert abs(float(distance)) < 1e-5
    assert abs(float(divergence)) < 1e-5
