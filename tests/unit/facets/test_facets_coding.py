"""The batched solver against SciPy, its optimality conditions and the cases with a known answer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from torch import Tensor

from facets.coding import gram_and_correlations, solve_coefficients


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


def kkt_residual(coefficients: Tensor, gram: Tensor, correlations: Tensor, *, l1_weight: float) -> float:
    """Largest move of a projected gradient step: 0 at the optimum of eq. 3.1."""
    half_gradient = gram @ coefficients - correlations + 0.5 * l1_weight
    return float((coefficients - (coefficients - half_gradient).clamp(0, 1)).abs().max())


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), num_facets=st.integers(1, 4), l1_weight=st.sampled_from([0.0, 0.1, 0.4, 1.5]))
def test_coefficients_match_scipy(seed: int, num_facets: int, l1_weight: float) -> None:
    facets, targets = _problem(seed, num_facets, 3)
    facets_KD = facets[0].numpy()
    # A direction whose product with every facet is 1 turns the L1 penalty into a shift of the target.
    shift_D = np.linalg.pinv(facets_KD) @ np.ones(num_facets)
    for fast, target_D in zip(_solve(facets, targets, l1_weight)[0].T, targets[0].numpy(), strict=True):
        slow = lsq_linear(facets_KD.T, target_D - l1_weight / 2 * shift_D, bounds=(0, 1), tol=1e-13).x
        np.testing.assert_allclose(fast, slow, atol=1e-4)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), num_facets=st.integers(1, 12), l1_weight=st.floats(0.0, 2.0))
def test_coefficients_meet_optimality_conditions_in_float32(seed: int, num_facets: int, l1_weight: float) -> None:
    facets, targets = (x.float() for x in _problem(seed, num_facets, 5, batch=3))
    gram, correlations = gram_and_correlations(facets, targets)
    coefficients = solve_coefficients(gram, correlations, l1_weight=l1_weight, tolerance=1e-4, max_sweeps=5000)
    assert coefficients.min() >= 0 and coefficients.max() <= 1
    # A little more than the tolerance: the running gradient collects rounding errors.
    assert kkt_residual(coefficients, gram, correlations, l1_weight=l1_weight) <= 2e-4


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_collinear_facets_share_a_target_and_reach_the_optimum(scale: float) -> None:
    facet = torch.tensor([0.6, 0.8], dtype=torch.float64)
    facets, targets = torch.stack([facet, scale * facet])[None], facet[None, None]
    reconstruction = _solve(facets, targets, 0.0, tolerance=1e-12).mT @ facets
    torch.testing.assert_close(reconstruction, targets, atol=1e-8, rtol=0)


def test_zero_facets_get_no_coefficient() -> None:
    facets, targets = _problem(5, 3, 4)
    facets[0, 1] = 0.0
    coefficients = _solve(facets, targets, 0.0)
    assert not coefficients[0, 1].any()
    torch.testing.assert_close(coefficients[:, [0, 2]], _solve(facets[:, [0, 2]], targets, 0.0))


def test_batch_entries_do_not_depend_on_each_other() -> None:
    facets, targets = _problem(11, 4, 6, batch=5)
    alone = torch.cat([_solve(facets[i : i + 1], targets[i : i + 1], 0.2) for i in range(5)])
    torch.testing.assert_close(_solve(facets, targets, 0.2), alone, atol=1e-7, rtol=0)
