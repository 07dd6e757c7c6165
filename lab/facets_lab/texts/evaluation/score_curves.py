"""Fits what similarity scores mean on pairs that people scored, and says how well they then agree.

Shape suffixes: P pairs, B bins, N points of a curve.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets import scoring
from facets.errors import InvalidInputError
from facets.model.contract import TextModel
from facets_lab.evaluation.intervals import Metrics
from facets_lab.texts.evaluation.pair_systems import FacetPairs, method_of
from facets_lab.texts.evaluation.sts import ScoredPairs

__all__ = ["HIGHEST_GOLD", "calibration_error", "fit_curve", "fit_curves"]

HIGHEST_GOLD = 5.0  # of the STS data sets
_NUM_BINS = 32  # fewer lose shape, more only noise (STS dev)


def fit_curves(model: TextModel, data: ScoredPairs, methods: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """A curve for each method.

    Args:
        model: The model.
        data: Pairs with people's scores in ``[0, 5]``.
        methods: Of ``PAIR_METHODS``.

    Returns:
        Method -> ``[2, N]``, for ``score_curves``.

    Raises:
        InvalidInputError: A score is outside ``[0, 5]``.
        ConfigError: The model lacks what ``sif`` removes, or the package for ``wmd`` is missing.
        ImportError: scikit-learn is not installed.
    """
    if data.gold.min() < 0 or data.gold.max() > HIGHEST_GOLD:
        raise InvalidInputError(
            f"scores must be in [0, {HIGHEST_GOLD:g}], got {data.gold.min():g} to {data.gold.max():g}"
        )
    gold_P = data.gold / HIGHEST_GOLD
    return {
        method: fit_curve(scores_P, gold_P, highest=method_of(method).row.self_score)
        for method, scores_P in FacetPairs(model.name, model, tuple(methods)).scores(data.pairs)
    }


def fit_curve(scores_P: NDArray[np.floating], gold_P: NDArray[np.float64], *, highest: float) -> NDArray[np.float64]:
    """Isotonic regression of people's scores on those of a method.

    Pairs are put into bins of equal size by score; among all maps that never fall, that of the bins' means with the
    least squared error is taken. The highest score a pair can have means 1: a text is equivalent to itself.

    Args:
        scores_P: Of one method, ``[P]``.
        gold_P: People's, in ``[0, 1]``, ``[P]``.
        highest: The score of a text with itself.

    Returns:
        ``[2, N]``, N <= 33, for ``scoring.apply_curve``.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    from sklearn.isotonic import IsotonicRegression

    bins = [rows for rows in np.array_split(np.argsort(scores_P, kind="stable"), _NUM_BINS) if len(rows)]
    scores_B = np.array([np.mean(scores_P[rows], dtype=np.float64) for rows in bins]).round(6)
    gold_B = np.array([gold_P[rows].mean() for rows in bins])
    weights_B = np.array([len(rows) for rows in bins], dtype=np.float64)
    regression = IsotonicRegression(y_min=0.0, y_max=1.0)
    calibrated_B = regression.fit(scores_B, gold_B, sample_weight=weights_B).predict(scores_B).round(6)
    scores_N, first = np.unique(scores_B, return_index=True)
    below = scores_N < highest - 1e-6
    if not below.any():  # nothing is known of pairs that differ
        return np.array([[highest - 1.0, highest], [0.0, 1.0]])
    return np.array([[*scores_N[below], highest], [*calibrated_B[first][below], 1.0]])


def calibration_error(
    curve_2N: NDArray[np.float64], scores_P: NDArray[np.floating], gold_P: NDArray[np.float64], *, mean: float
) -> Metrics:
    """How far calibrated scores are from people's, both on the scale 0 to 5.

    Args:
        curve_2N: Fitted on other pairs.
        scores_P: Of one method.
        gold_P: People's, in ``[0, 5]``.
        mean: People's mean score of the pairs the curve was fitted on: what a predictor that knows nothing says.

    Returns:
        ``mae``, the mean absolute error; ``mae_of_mean``, that of the predictor that knows nothing.
    """
    calibrated_P = scoring.apply_curve(curve_2N, scores_P) * HIGHEST_GOLD
    return {
        "mae": float(np.abs(calibrated_P - gold_P).mean()),
        "mae_of_mean": float(np.abs(mean - gold_P).mean()),
    }
