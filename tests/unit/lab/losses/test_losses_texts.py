"""The loss against the formula of eq. 3.1 and 3.2 written with residuals."""

from functools import partial

import pytest
import torch
from facets_lab.losses.texts import nnsc_loss
from torch import Tensor

from facets.coding import gram_and_correlations, kmeans_coefficients, solve_coefficients

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
