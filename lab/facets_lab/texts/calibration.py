"""Fits what similarity scores mean on pairs that people scored, and says how well they then agree.

Shape suffixes: P pairs, B bins, N points of a curve.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.model.contract import TextModel
from facets.model.loading import DEFAULT_MODEL
from facets.model.score_curves import apply_curve, write_score_curves
from facets.model.shipped import find_model
from facets_lab.evaluation.statistics import Metrics
from facets_lab.texts.evaluation import ScoredPairs, read_sts
from facets_lab.texts.systems import FacetPairs, available_methods, load_text_model, method_of

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
        method: fit_curve(scores_P, gold_P, highest=method_of(method).row.range[1])
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
        ``[2, N]``, N <= 33, for ``apply_curve``.

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
    calibrated_P = apply_curve(curve_2N, scores_P) * HIGHEST_GOLD
    return {
        "mae": float(np.abs(calibrated_P - gold_P).mean()),
        "mae_of_mean": float(np.abs(mean - gold_P).mean()),
    }


def calibrate_model(
    name_or_path: str | None,
    file: Path,
    *,
    test: Path | None,
    source: str,
    dry_run: bool,
    methods: Sequence[str] = (),
) -> dict[str, object]:
    """Fits the curves of methods and, unless it is a dry run, stores them with the model.

    Args:
        name_or_path: The model; None is the shipped one.
        file: Pairs to fit on.
        test: Other pairs, to say how well the curves fit.
        source: What ``file`` is, for readers.
        dry_run: Leave the model as it is.
        methods: Of ``PAIR_METHODS``; all that the model and the installed packages allow when none.

    Returns:
        The report: points of each curve, or with ``test`` the errors of each method.
    """
    train = read_sts(file)
    tested = None if test is None else read_sts(test)
    folder = find_model(DEFAULT_MODEL if name_or_path is None else name_or_path)
    model = load_text_model(str(folder))
    fitted = tuple(methods) or available_methods(model)
    curves = fit_curves(model, train, fitted)
    if not dry_run:
        write_score_curves(folder, model.revision, {**model.score_curves, **curves}, source=source)
    report: dict[str, object] = {name: {"points": curve_2N.shape[1]} for name, curve_2N in curves.items()}
    if tested is not None:
        mean = float(train.gold.mean())
        report = {
            method: calibration_error(curves[method], scores_P, tested.gold, mean=mean)
            for method, scores_P in FacetPairs(model.name, model, fitted).scores(tested.pairs)
        }
    return {"data": str(test or file), "rows": len((tested or train).pairs), "models": {model.name: report}}
