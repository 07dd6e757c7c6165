"""The batched solver against SciPy, its optimality conditions and the cases with a known answer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from facets.coding import (
    gram_and_correlations,
    kkt_residual,
    kmeans_coefficients,
    reconstruction_error,
    solve_coefficients,
)
from facets.coding.reference import objective, reference_coefficients


def _problem(seed: int, num_facets: int, num_targets: int, *, dim: int = 8, batch: int = 1) -> tuple[Tensor, Tensor]:
    """Facets with a common part, so that they resemble each other, and unit targets; float64."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(batch, 1, dim, generator=generator, dtype=torch.float64)
    facets = torch.randn(batch, num_facets, dim, generator=generator, dtype=torch.float64) + 0.5 * common
    targets = torch.randn(batch, num_targets, dim, generator=generator, dtype=torch.float64) + 0.3 * common
    return facets / dim**0.5, targets / targets.norm(dim=-1, keepdim=True)


def _solve(facets: Tensor, targets: Tensor, l1_weight: float, tolerance: float = 1e-9) -> Tensor:
    gram, correlations = gram_and_correlations(facets, targets)
    return solve_coefficients(gram, correlations, l1_weight=l1_weight, tolerance=tolerance, max_sweeps=5000)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_facets=st.integers(1, 7),
    num_targets=st.integers(1, 4),
    l1_weight=st.sampled_from([0.0, 0.1, 0.4, 1.5]),
)
def test_coefficients_match_scipy_reference(seed: int, num_facets: int, num_targets: int, l1_weight: float) -> None:
    facets, targets = _problem(seed, num_facets, num_targets)
    fast = _solve(facets, targets, l1_weight)[0].numpy()
    slow = reference_coefficients(facets[0].numpy(), targets[0].numpy(), l1_weight=l1_weight)
    best = objective(facets[0].numpy(), targets[0].numpy(), slow, l1_weight=l1_weight)
    assert objective(facets[0].numpy(), targets[0].numpy(), fast, l1_weight=l1_weight) <= best + 1e-7
    if num_facets <= 4:  # below the dimension the optimum is unique
        np.testing.assert_allclose(fast, slow, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), num_facets=st.integers(1, 12), l1_weight=st.floats(0.0, 2.0))
def test_coefficients_meet_optimality_conditions_in_float32(seed: int, num_facets: int, l1_weight: float) -> None:
    facets, targets = (x.float() for x in _problem(seed, num_facets, 5, batch=3))
    gram, correlations = gram_and_correlations(facets, targets)
    coefficients = solve_coefficients(gram, correlations, l1_weight=l1_weight, tolerance=1e-4, max_sweeps=5000)
    assert coefficients.min() >= 0 and coefficients.max() <= 1
    # A little more than the tolerance: the running gradient collects rounding errors.
    assert kkt_residual(coefficients, gram, correlations, l1_weight=l1_weight) <= 2e-4


def test_orthonormal_facets_are_soft_thresholded() -> None:
    targets = torch.tensor([[[0.9, 0.1, -0.4], [0.2, 0.6, 0.75]]], dtype=torch.float64)
    expected = (targets.mT - 0.2).clamp(0, 1)
    torch.testing.assert_close(_solve(torch.eye(3, dtype=torch.float64)[None], targets, 0.4), expected)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_collinear_facets_share_a_target_and_reach_the_optimum(scale: float) -> None:
    facet = torch.tensor([0.6, 0.8], dtype=torch.float64)
    facets, targets = torch.stack([facet, scale * facet])[None], facet[None, None]
    coefficients = _solve(facets, targets, 0.0, tolerance=1e-12)
    reconstruction = coefficients.mT @ facets
    torch.testing.assert_close(reconstruction, targets, atol=1e-8, rtol=0)


def test_zero_facets_get_no_coefficient() -> None:
    facets, targets = _problem(5, 3, 4)
    facets[0, 1] = 0.0
    coefficients = _solve(facets, targets, 0.0)
    assert torch.equal(coefficients[0, 1], torch.zeros(4, dtype=torch.float64))
    without = _solve(facets[:, [0, 2]], targets, 0.0)
    torch.testing.assert_close(coefficients[:, [0, 2]], without)


def test_batch_entries_do_not_depend_on_each_other() -> None:
    facets, targets = _problem(11, 4, 6, batch=5)
    together = _solve(facets, targets, 0.2)
    alone = torch.cat([_solve(facets[i : i + 1], targets[i : i + 1], 0.2) for i in range(5)])
    torch.testing.assert_close(together, alone, atol=1e-7, rtol=0)


def test_max_sweeps_limits_the_work() -> None:
    facets, targets = _problem(2, 7, 5)
    gram, correlations = gram_and_correlations(facets, targets)
    rough = solve_coefficients(gram, correlations, l1_weight=0.0, tolerance=1e-12, max_sweeps=1)
    exact = solve_coefficients(gram, correlations, l1_weight=0.0, tolerance=1e-12, max_sweeps=5000)
    residuals = [kkt_residual(c, gram, correlations, l1_weight=0.0) for c in (rough, exact)]
    assert residuals[0] > 1e-3 > 1e-10 > residuals[1]


@pytest.mark.parametrize(
    ("facets_shape", "targets_shape"), [((3, 4), (1, 5, 4)), ((1, 3, 4), (2, 5, 4)), ((1, 3, 4), (1, 5, 6))]
)
def test_shapes_that_do_not_fit_are_refused(facets_shape: tuple[int, ...], targets_shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"facets .*targets"):
        gram_and_correlations(torch.zeros(facets_shape), torch.zeros(targets_shape))


def test_kmeans_picks_the_facet_with_the_smallest_error() -> None:
    facets, targets = _problem(9, 4, 12)
    coefficients = kmeans_coefficients(*gram_and_correlations(facets, targets))[0]
    assert (coefficients > 0).sum(dim=0).max() <= 1
    assert 0 <= coefficients.min() and coefficients.max() <= 1
    for n, target in enumerate(targets[0]):
        errors = [
            min(float((eta * facet - target).square().sum()) for eta in torch.linspace(0, 1, 2001))
            for facet in facets[0]
        ]
        reached = float((coefficients[:, n] @ facets[0] - target).square().sum())
        assert reached == pytest.approx(min(errors), abs=1e-5)


def test_reconstruction_error_equals_the_sum_of_squares() -> None:
    facets, targets = _problem(13, 4, 6, batch=3)
    targets = 1.7 * targets
    weights = torch.rand(3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gram, correlations = gram_and_correlations(facets, targets)
    coefficients = solve_coefficients(gram, correlations, l1_weight=0.2)
    error = reconstruction_error(
        coefficients, gram, correlations, weights_BN=weights, squared_norms_BN=targets.square().sum(dim=-1)
    )
    residuals = coefficients.mT @ facets - targets
    torch.testing.assert_close(error, (weights * residuals.square().sum(dim=-1)).sum(dim=1))


def test_reconstruction_error_has_the_right_gradient() -> None:
    facets, targets = _problem(17, 3, 5, batch=2)
    coefficients = _solve(facets, targets, 0.2)
    weights = torch.tensor([[0.2] * 5, [0.5, 0.5, 0.0, -0.3, 0.1]], dtype=torch.float64)

    def error(facets: Tensor) -> Tensor:
        gram, correlations = gram_and_correlations(facets, targets)
        return reconstruction_error(coefficients, gram, correlations, weights_BN=weights)

    assert torch.autograd.gradcheck(error, facets.requires_grad_())
