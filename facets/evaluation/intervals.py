"""Confidence intervals by the bootstrap: how much a figure depends on the rows that happen to be in the file."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Metrics", "with_intervals"]

Metrics = dict[str, float | None]

_SEED = 0
_BOUNDS = (2.5, 97.5)  # percent


def with_intervals(
    metrics_of: Callable[[NDArray[np.int64]], Metrics], num_rows: int, *, num_resamples: int = 0
) -> Metrics:
    """Metrics of all rows and, when asked for, their 95 % percentile intervals.

    Args:
        metrics_of: Metrics of the rows with these numbers, each in ``[0, num_rows)``, repeated ones allowed.
        num_rows: Rows of the data, >= 1.
        num_resamples: Resamples of ``num_rows`` rows with replacement; 0 for no intervals. They are the same ones
            for every call, so that methods are compared on the same resamples.

    Returns:
        ``metrics_of`` all rows; with resamples each metric ``m`` also has ``m_ci95_from`` and ``m_ci95_to``, None
        where the metric is undefined in every resample.

    Example:
        >>> values = np.array([0.0, 1.0, 1.0, 1.0])
        >>> with_intervals(lambda rows: {"mean": float(values[rows].mean())}, 4, num_resamples=100)
        {'mean': 0.75, 'mean_ci95_from': 0.25, 'mean_ci95_to': 1.0}

    References:
        Efron and Tibshirani 1993, section 13.3.
    """
    metrics = metrics_of(np.arange(num_rows))
    if num_resamples == 0:
        return metrics
    generator = np.random.default_rng(_SEED)
    samples = [metrics_of(generator.integers(num_rows, size=num_rows)) for _ in range(num_resamples)]
    result: Metrics = {}
    for name, value in metrics.items():
        defined = [sample for metrics_of_one in samples if (sample := metrics_of_one[name]) is not None]
        bounds = np.percentile(defined, _BOUNDS) if defined else (None, None)
        result[name] = value
        for suffix, bound in zip(("from", "to"), bounds, strict=True):
            result[f"{name}_ci95_{suffix}"] = None if bound is None else float(bound)
    return result
