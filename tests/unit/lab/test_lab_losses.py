"""The loss against the formula of eq. 3.1 and 3.2 written with residuals."""

from functools import partial

import pytest
import torch
from facets_lab.losses import (
    closest_facet_distance,
    distillation_loss,
    kmeans_coefficients,
    nnsc_loss,
    paper_autoencoder_loss,
    softmax_loss,
)
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import normalize

from facets.coding import gram_and_correlations, solve_coefficients

L1_WEIGHT = 0.2
sparse_loss = partial(nnsc_loss, l1_weight=L1_WEIGHT, tolerance=1e-6, max_sweeps=2000)


def _batch(seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Facets ``[4, 3, 8]``, targets ``[4, 6, 8]``, their mask (one text without any), negatives."""
    generator = torch.Generator().manual_seed(seed)
    facets = torch.randn(4, 3, 8, generator=generator) / 3
    targets = torch.nn.functional.normalize(torch.randn(4, 6, 8, generator=generator), dim=-1)
    mask = torch.arange(6) < torch.tensor([6, 3, 0, 1])[:, None]
    return facets, targets, mask, torch.tensor([1, 2, 3, 0])


def _naive_loss(facets: Tensor, targets: Tensor, mask: Tensor, negatives: Tensor, *, kmeans: bool) -> Tensor:
    total = torch.zeros(())
    for text, negative in enumerate(negatives.tolist()):
        for row, sign in ((text, 1.0), (negative, -1.0)):
            words = targets[row][mask[row]]
            if len(words):
                gram, correlations = gram_and_correlations(facets[text : text + 1], words[None])
                solve = (
                    kmeans_coefficients if kmeans else partial(solve_coefficients, l1_weight=L1_WEIGHT, tolerance=1e-6)
                )
                residuals = solve(gram, correlations)[0].T @ facets[text] - words
                total = total + sign * residuals.square().sum() / len(words)
    return total / len(facets)


@pytest.mark.parametrize("kmeans", [False, True])
def test_loss_equals_the_naive_formula(kmeans: bool) -> None:
    batch = _batch()
    loss = sparse_loss(*batch, kmeans=kmeans)
    torch.testing.assert_close(loss, _naive_loss(*batch, kmeans=kmeans), atol=1e-5, rtol=1e-5)


def test_kmeans_picks_the_facet_with_the_smallest_error() -> None:
    facets, targets, *_ = _batch()
    coefficients = kmeans_coefficients(*gram_and_correlations(facets, targets))[0]
    assert (coefficients > 0).sum(dim=0).max() <= 1 and 0 <= coefficients.min() and coefficients.max() <= 1
    scaled = torch.linspace(0, 1, 2001)[:, None, None, None] * facets[0, :, None]
    best = (scaled - targets[0]).square().sum(dim=3).amin(dim=(0, 1))
    reached = (coefficients.T @ facets[0] - targets[0]).square().sum(dim=1)
    torch.testing.assert_close(reached, best, atol=1e-5, rtol=0)


def test_gradient_is_that_of_constant_coefficients() -> None:
    facets, targets, mask, negatives = _batch()
    facets.requires_grad_()
    sparse_loss(facets, targets, mask, negatives).backward()
    gradient = facets.grad
    facets.grad = None
    _naive_loss(facets, targets, mask, negatives, kmeans=False).backward()
    assert gradient is not None and facets.grad is not None
    torch.testing.assert_close(gradient, facets.grad, atol=1e-5, rtol=1e-4)
    assert gradient.abs().sum() > 0


def values(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def slow_distance(facets_BKD: torch.Tensor, pairs_BND: torch.Tensor) -> torch.Tensor:
    """Tries lengths of each facet one after the other."""
    best_BN = torch.full(pairs_BND.shape[:2], float("inf"))
    for eta in torch.linspace(0.0, 1.0, 1001).tolist():
        for facet in range(facets_BKD.shape[1]):
            differences_BND = pairs_BND - eta * facets_BKD[:, facet : facet + 1]
            best_BN = torch.minimum(best_BN, differences_BND.square().sum(dim=-1))
    return best_BN


def test_distance_equals_the_reference() -> None:
    facets = values(1, 4, 3, 6) * torch.tensor([0.2, 1.0, 3.0])[None, :, None]
    pairs = functional.normalize(values(2, 4, 5, 6), dim=-1)
    slow = slow_distance(facets, pairs)
    assert torch.allclose(closest_facet_distance(facets, pairs), slow, atol=1e-3)


def test_an_opposite_facet_is_ignored_and_not_pulled() -> None:
    facets = torch.tensor([[[-1.0, 0.0]]], requires_grad=True)
    distance = closest_facet_distance(facets, torch.tensor([[[1.0, 0.0]]]))
    distance.sum().backward()
    assert distance.item() == pytest.approx(1.0)
    assert torch.equal(facets.grad, torch.zeros_like(facets))


def example(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    facets = torch.randn(4, 3, 5, generator=generator, dtype=dtype)
    table = torch.randn(3, 5, generator=generator, dtype=dtype)
    positives = torch.tensor([[0, 0], [1, 0], [2, 1], [0, 2]])
    weights = torch.tensor([0.5, 0.5, 1.0, 2.0], dtype=dtype)
    return facets, table, positives, weights


def test_softmax_loss_equals_a_loop_over_pairs() -> None:
    facets, table, positives, weights = example()
    scores = torch.stack([torch.stack([(paper @ vector).max() for vector in table]) for paper in facets]) / 0.5
    right = {(int(i), int(j)) for i, j in positives}
    total = torch.zeros(())
    for (i, j), weight in zip(positives.tolist(), weights.tolist(), strict=True):
        column = [scores[row, j] for row in range(len(facets)) if (row, j) not in right]
        row = [scores[i, other] for other in range(len(table)) if (i, other) not in right]
        for share, others in ((1.0, column), (0.3, row)):
            total += share * weight * -torch.log_softmax(torch.stack([scores[i, j], *others]), dim=0)[0]
    found = softmax_loss(facets, table, positives, weights, table[positives[:, 1]], temperature=0.5)
    torch.testing.assert_close(found, total / weights.sum())


def test_paper_autoencoder_is_zero_at_its_target() -> None:
    facets = torch.eye(2).unsqueeze(1)
    assert paper_autoencoder_loss(facets, torch.eye(2), torch.tensor([1, 0])).item() == pytest.approx(0.0)


def test_a_student_that_equals_its_teacher_has_no_loss() -> None:
    vectors = normalize(torch.randn(6, 8), dim=1)
    distance, divergence = distillation_loss(vectors, vectors, temperature=0.05)
    assert abs(float(distance)) < 1e-5
    assert abs(float(divergence)) < 1e-5
