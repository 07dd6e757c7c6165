"""Fits what similarity scores mean on pairs with human scores (``facets-eval calibrate-similarity``).

Shape suffixes: P pairs, B bins, N points of a curve.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.model.loading import DEFAULT_MODEL
from facets.model.score_curves import apply_curve, write_score_curves
from facets.model.shipped import find_model
from facets_lab.evaluation.comparison import Report, load_text_model
from facets_lab.evaluation.options import CalibratedModel, DataFile, DryRun, Source
from facets_lab.texts.pairs import available_methods, method_of, model_scores, read_sts

HIGHEST_GOLD = 5.0  # of the STS data sets
_NUM_BINS = 32  # fewer bins lose shape, more add noise (STS dev)


def fit_curve(scores_P: NDArray[np.floating], gold_P: NDArray[np.float64], *, highest: float) -> NDArray[np.float64]:
    """Isotonic regression of human scores in ``[0, 1]`` on a method's, up to ``highest``, ``[2, N]``, N <= 33."""
    from sklearn.isotonic import IsotonicRegression

    bins = [rows for rows in np.array_split(np.argsort(scores_P, kind="stable"), _NUM_BINS) if len(rows)]
    scores_B = np.array([np.mean(scores_P[rows], dtype=np.float64) for rows in bins]).round(6)
    gold_B = np.array([gold_P[rows].mean() for rows in bins])
    weights_B = np.array([len(rows) for rows in bins], dtype=np.float64)
    regression = IsotonicRegression(y_min=0.0, y_max=1.0)
    calibrated_B = regression.fit(scores_B, gold_B, sample_weight=weights_B).predict(scores_B).round(6)
    scores_N, first = np.unique(scores_B, return_index=True)
    below = scores_N < highest - 1e-6
    if not below.any():  # all pairs score as identical, so nothing is known about others
        return np.array([[highest - 1.0, highest], [0.0, 1.0]])
    return np.array([[*scores_N[below], highest], [*calibrated_B[first][below], 1.0]])


def calibrate_similarity(
    file: DataFile,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Other pairs, used to measure the curves.")] = None,
    name_or_path: CalibratedModel = None,
    source: Source = "STS Benchmark, training pairs (Cer et al. 2017)",
    dry_run: DryRun = False,
) -> Report:
    """Fit what similarity scores mean. Tab-separated columns: score 0 to 5, sentence, sentence.

    Example: facets-eval calibrate-similarity stsb-train.tsv --test stsb-dev.tsv --model models/facets-en
    """
    train = read_sts(file)
    tested = None if test is None else read_sts(test)
    low, high = train.gold.min(), train.gold.max()
    if low < 0 or high > HIGHEST_GOLD:
        raise InvalidInputError(f"scores must be in [0, {HIGHEST_GOLD:g}], got {low:g} to {high:g}")
    folder = find_model(name_or_path or DEFAULT_MODEL)
    model = load_text_model(str(folder))
    names = available_methods(model)
    curves = {
        name: fit_curve(scores_P, train.gold / HIGHEST_GOLD, highest=method_of(name).row.range[1])
        for name, scores_P in model_scores(model, train.pairs, names)
    }
    if not dry_run:
        write_score_curves(folder, model.revision, {**model.score_curves, **curves}, source=source or "")
    report: dict[str, object] = {name: {"points": curve_2N.shape[1]} for name, curve_2N in curves.items()}
    if tested is not None:
        of_mean = float(np.abs(train.gold.mean() - tested.gold).mean())  # of always predicting the mean
        for name, scores_P in model_scores(model, tested.pairs, names):
            calibrated_P = apply_curve(curves[name], scores_P) * HIGHEST_GOLD
            report[name] = {"mae": float(np.abs(calibrated_P - tested.gold).mean()), "mae_of_mean": of_mean}
    return {"data": str(test or file), "rows": len((tested or train).pairs), "models": {model.name: report}}
