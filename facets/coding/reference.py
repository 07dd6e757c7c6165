"""Slow reference solutions of the coefficient problem, for tests and benchmarks.

Shape suffixes: K facets, N targets, D dimensions.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


def objective(
    facets_KD: NDArray[np.floating],
    targets_ND: NDArray[np.floating],
    coefficients_KN: NDArray[np.floating],
    *,
    l1_weight: float,
) -> float:
    """``||F M - W||^2 + l1_weight * sum(M)`` as Chang 2022, eq. 3.1 writes it."""
    residual_ND = coefficients_KN.T @ facets_KD - targets_ND
    return float((residual_ND**2).sum() + l1_weight * np.abs(coefficients_KN).sum())


def reference_coefficients(
    facets_KD: NDArray[np.floating], targets_ND: NDArray[np.floating], *, l1_weight: float
) -> NDArray[np.float64]:
    """Solves eq. 3.1 one target at a time with SciPy's L-BFGS-B in double precision.

    Args:
        facets_KD: ``[K, D]``.
        targets_ND: ``[N, D]``.
        l1_weight: lambda, >= 0.

    Returns:
        ``[K, N]`` coefficients in ``[0, 1]``.
    """
    facets_KD = facets_KD.astype(np.float64)
    columns = []
    for target_D in targets_ND.astype(np.float64):

        def value_and_gradient(
            m_K: NDArray[np.float64], w_D: NDArray[np.float64] = target_D
        ) -> tuple[float, NDArray[np.float64]]:
            residual_D = m_K @ facets_KD - w_D
            return float(residual_D @ residual_D + l1_weight * m_K.sum()), 2 * facets_KD @ residual_D + l1_weight

        start_K = np.full(len(facets_KD), 0.5)
        solution = minimize(
            value_and_gradient,
            start_K,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(facets_KD),
            options={"ftol": 1e-14, "gtol": 1e-10, "maxiter": 1000},
        )
        columns.append(solution.x)
    return np.stack(columns, axis=1)
