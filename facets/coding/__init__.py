"""Non-negative sparse coding: the coefficient solver and the k-means ablation."""

from facets.coding.coefficients import (
    gram_and_correlations,
    kkt_residual,
    kmeans_coefficients,
    reconstruction_error,
    solve_coefficients,
)

__all__ = [
    "gram_and_correlations",
    "kkt_residual",
    "kmeans_coefficients",
    "reconstruction_error",
    "solve_coefficients",
]
