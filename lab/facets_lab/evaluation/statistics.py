"""How sure a figure is, and whether confidence means what it says.

The bootstrap says how much a figure depends on the rows that happen to be in the file. Shape letters: R rows, B
resamples or bins, M metrics, C claims.
"""

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import DegenerateDataWarning, bootstrap
from scipy.stats import t as student

logger = logging.getLogger(__name__)

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


_NUM_BINS = 10


def reliability(confidence_C: NDArray[np.floating], right_C: NDArray[np.bool_]) -> list[dict[str, float]]:
    """The reliability diagram as a table: ten bins of equal width, those with a claim.

    Args:
        confidence_C: In ``[0, 1]``.
        right_C: Whether each claim holds.

    Returns:
        Of each bin the mean ``confidence``, the share that is ``right``, how many ``claims``; with four digits.

    Example:
        >>> reliability(np.array([0.72, 0.78]), np.array([True, False]))
        [{'confidence': 0.75, 'right': 0.5, 'claims': 2}]
    """
    bin_C = np.minimum((np.asarray(confidence_C) * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
    own = [(confidence_C[bin_C == b], right_C[bin_C == b]) for b in np.unique(bin_C)]
    return [
        {"confidence": round(float(said.mean()), 4), "right": round(float(holds.mean()), 4), "claims": len(said)}
        for said, holds in own
    ]


def expected_calibration_error(
    confidence_C: NDArray[np.floating],
    right_C: NDArray[np.bool_],
    weights_C: NDArray[np.floating] | None = None,
) -> float:
    """Mean distance of confidence and share of right claims over ten bins of equal width, weighed by claims.

    Args:
        confidence_C: In ``[0, 1]``.
        right_C: Whether each claim holds.
        weights_C: Of each claim; None: all the same.

    References:
        Guo et al. 2017, eq. 3.

    Example:
        >>> expected_calibration_error(np.array([0.75, 0.75]), np.array([True, False]))
        0.25
    """
    weights_C = np.ones(len(confidence_C)) if weights_C is None else weights_C
    bin_C = np.minimum((np.asarray(confidence_C) * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
    gaps_B = np.bincount(bin_C, weights_C * (confidence_C - right_C), minlength=_NUM_BINS)
    return float(np.abs(gaps_B).sum() / (weights_C.sum() or 1.0))


def fit_logistic(
    features_CF: NDArray[np.floating],
    right_C: NDArray[np.bool_],
    weights_C: NDArray[np.floating],
    names: Sequence[str],
) -> dict[str, float]:
    """Weights of a logistic curve over claims, hardly regularized: ``intercept``, and that of each feature by name.

    Args:
        features_CF: What is known of each claim.
        right_C: Whether it holds; both must be there.
        weights_C: What it counts, whatever the sum.
        names: Of the features.
    """
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=100.0, max_iter=5_000).fit(
        features_CF, right_C, sample_weight=weights_C * len(weights_C) / weights_C.sum()
    )
    slopes = {name: float(weight) for name, weight in zip(names, fitted.coef_[0], strict=True)}
    return {"intercept": float(fitted.intercept_[0]), **slopes}


def repeated(
    names: Sequence[str], seeds: int, measure: Callable[[str, int], Mapping[str, float]]
) -> dict[str, dict[str, Any]]:
    """Runs what is compared with several seeds.

    Args:
        names: Of what is compared.
        seeds: How many, from 1.
        measure: A name and a seed -> figures.

    Returns:
        Of each name and figure the ``mean`` of the runs, ``ci95``, the half width of a 95 % interval of the mean (None
        of one run), and ``runs``, all of them.
    """
    report: dict[str, dict[str, Any]] = {}
    for name in names:
        runs = [measure(name, seed) for seed in range(1, seeds + 1)]
        logger.info("%s: %s", name, runs)
        report[name] = {}
        for figure in runs[0]:
            values = np.array([run[figure] for run in runs])
            half = student.ppf(0.975, seeds - 1) * values.std(ddof=1) / seeds**0.5 if seeds > 1 else None
            report[name][figure] = {"mean": float(values.mean()), "ci95": half, "runs": values.tolist()}
    return report
