"""Fits ``calibration.json`` of a model on pairs that people scored."""

from collections.abc import Sequence
from pathlib import Path

from facets.model.loading import DEFAULT_MODEL
from facets.model.score_curves import write_score_curves
from facets.model.shipped import find_model
from facets_lab.texts.evaluation.pair_systems import FacetPairs
from facets_lab.texts.evaluation.score_curves import calibration_error, fit_curves
from facets_lab.texts.evaluation.sts import read_sts
from facets_lab.texts.evaluation.systems import available_methods, load_text_model

__all__ = ["calibrate_model"]


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
        write_score_curves(folder, model.revision, curves, source=source)
    report: dict[str, object] = {name: {"points": curve_2N.shape[1]} for name, curve_2N in curves.items()}
    if tested is not None:
        mean = float(train.gold.mean())
        report = {
            method: calibration_error(curves[method], scores_P, tested.gold, mean=mean)
            for method, scores_P in FacetPairs(model.name, model, fitted).scores(tested.pairs)
        }
    return {"data": str(test or file), "rows": len((tested or train).pairs), "models": {model.name: report}}
