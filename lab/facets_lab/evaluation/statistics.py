"""Confidence intervals of metrics, and calibration of confidences.

Shape suffixes: R rows, B resamples, C claims, F features.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from facets.arrays import Bools, Doubles, Vectors

Metrics = dict[str, float | None]

_SEED = 0
_NUM_BINS = 10


def with_intervals(
    metrics_of: Callable[..., Metrics], *columns: NDArray[np.generic], num_resamples: int = 0
) -> Metrics:
    """Metrics of all rows and, with ``num_resamples``, their 95 % percentile bootstrap intervals.

    Rows of the columns, ``[R, ...]`` each, are resampled together. Each metric ``m`` also gets ``m_ci95_from`` and
    ``m_ci95_to``, None where all resamples are undefined (Efron and Tibshirani 1993, section 13.3).
    """
    metrics = metrics_of(*columns)
    if num_resamples == 0:
        return metrics
    rows_BR = np.random.default_rng(_SEED).integers(0, len(columns[0]), (num_resamples, len(columns[0])))
    samples = [metrics_of(*(column[rows_R] for column in columns)) for rows_R in rows_BR]
    result: Metrics = {}
    for name, value in metrics.items():
        defined = [sampled for sample in samples if (sampled := sample[name]) is not None]
        low, high = map(float, np.percentile(defined, (2.5, 97.5))) if defined else (None, None)
        result |= {name: value, f"{name}_ci95_from": low, f"{name}_ci95_to": high}
    return result


def mean_metrics(values: Mapping[str, Doubles], *, num_resamples: int = 0) -> Metrics:
    """Means of metrics given by row, ``[R]`` each, as ``with_intervals`` has them."""

    def means(*columns_R: Doubles) -> Metrics:
        return {name: float(column_R.mean()) for name, column_R in zip(values, columns_R, strict=True)}

    return with_intervals(means, *values.values(), num_resamples=num_resamples)


def expected_calibration_error(confidence_C: Vectors, right_C: Bools, weights_C: Vectors | None = None) -> float:
    """Mean difference between confidence and share of right claims in ten bins of equal width (Guo et al. 2017).

    Example:
        >>> expected_calibration_error(np.array([0.75, 0.75]), np.array([True, False]))
        0.25
    """
    weights_C = np.ones(len(confidence_C)) if weights_C is None else weights_C
    bins_C = np.minimum((np.asarray(confidence_C) * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
    gaps = np.bincount(bins_C, weights_C * (confidence_C - right_C), minlength=_NUM_BINS)
    return float(np.abs(gaps).sum() / (weights_C.sum() or 1.0))


def fit_logistic(features_CF: Vectors, right_C: Bools, weights_C: Vectors, names: Sequence[str]) -> dict[str, float]:
    """Weights of a weakly regularized logistic regression: ``intercept`` and one for each named feature."""
    weights_C = weights_C * len(weights_C) / weights_C.sum()
    model = LogisticRegression(C=100.0, max_iter=5_000).fit(features_CF, right_C, sample_weight=weights_C)
    slopes = {name: float(weight) for name, weight in zip(names, model.coef_[0], strict=True)}
    return {"intercept": float(model.intercept_[0]), **slopes}
