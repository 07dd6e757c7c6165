"""Confidence intervals by the bootstrap: how much a figure depends on the rows that happen to be in the file.

Shape letters: R rows, B resamples, M metrics.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import DegenerateDataWarning, bootstrap

__all__ = ["Metrics", "with_intervals"]

Metrics = dict[str, float | None]

_SEED = 0
_BOUNDS = (2.5, 97.5)  # percent
_BATCH = 256  # resamples whose rows are in memory together


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
    names = list(metrics)

    def of_resamples(rows_BR: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        """Metrics of resamples given as rows, ``[M, B]``; NaN where undefined."""
        samples = [metrics_of(*(column[rows_R] for column in columns)) for rows_R in np.moveaxis(rows_BR, axis, -1)]
        return np.array([[np.nan if sample[name] is None else sample[name] for sample in samples] for name in names])

    rows = np.arange(len(columns[0]))
    options: dict[str, Any] = {"n_resamples": num_resamples, "method": "percentile", "rng": _SEED, "batch": _BATCH}
    if len(rows) == 1:  # nothing to draw; SciPy refuses it
        values_MB = of_resamples(rows[None], -1)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)  # of an interval that is not used, see below
            drawn = bootstrap((rows,), of_resamples, vectorized=True, **options)
        values_MB = drawn.bootstrap_distribution
    result: Metrics = {}
    for name, values_B in zip(names, values_MB, strict=True):
        # SciPy's own interval would be undefined where a single resample is.
        defined = values_B[~np.isnan(values_B)]
        bounds = np.percentile(defined, _BOUNDS) if len(defined) else (None, None)
        result[name] = metrics[name]
        for suffix, bound in zip(("from", "to"), bounds, strict=True):
            result[f"{name}_ci95_{suffix}"] = None if bound is None else float(bound)
    return result
