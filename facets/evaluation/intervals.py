"""Confidence intervals by the bootstrap: how much a figure depends on the rows that happen to be in the file."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Metrics", "with_intervals"]

Metrics = dict[str, float | None]

_SEED = 0
_BOUNDS = (2.5, 97.5)  # percent


def with_intervals(
    metrics_of: Callable[..., Metrics], *columns: NDArray[np.generic], num_resamples: int = 0
) -> Metrics:
    """Metrics of all rows and, when asked for, their 95 % percentile intervals.

    Args:
        metrics_of: Metrics of columns of equal length.
        columns: What it is called with, ``[R, ...]`` each, R >= 1; at least one.
        num_resamples: Resamples of R rows with replacement, the same rows of every column; 0 for no intervals. For
            the same R they are the same rows in every call, so that methods are compared on the same resamples.

    Returns:
        ``metrics_of`` all rows; with resamples each metric ``m`` also has ``m_ci95_from`` and ``m_ci95_to``, None
        where the metric is undefined in every resample.

    Example:
        >>> with_intervals(lambda x: {"mean": float(x.mean())}, np.array([0.0, 1.0, 1.0, 1.0]), num_resamples=100)
        {'mean': 0.75, 'mean_ci95_from': 0.25, 'mean_ci95_to': 1.0}

    References:
        Efron and Tibshirani 1993, section 13.3.
    """
    metrics = metrics_of(*columns)
    if num_resamples == 0:
        return metrics
    generator = np.random.default_rng(_SEED)
    num_rows = len(columns[0])
    samples = []
    for _ in range(num_resamples):
        rows = generator.integers(num_rows, size=num_rows)
        samples.append(metrics_of(*(column[rows] for column in columns)))
    result: Metrics = {}
    for name, value in metrics.items():
        defined = [sample for metrics_of_sample in samples if (sample := metrics_of_sample[name]) is not None]
        bounds = np.percentile(defined, _BOUNDS) if defined else (None, None)
        result[name] = value
        for suffix, bound in zip(("from", "to"), bounds, strict=True):
            result[f"{name}_ci95_{suffix}"] = None if bound is None else float(bound)
    return result
