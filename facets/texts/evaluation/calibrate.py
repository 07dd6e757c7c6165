"""``facets-eval calibrate``: fits ``calibration.json`` of a model on pairs that people scored."""

import argparse
import importlib.util
from pathlib import Path

from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, find_model, load
from facets.model.score_curves import write_score_curves
from facets.texts.evaluation.calibration import calibration_error, fit_curves
from facets.texts.evaluation.pair_systems import PAIR_METHODS, FacetPairs, method_of
from facets.texts.evaluation.sts import read_sts

__all__ = ["add_calibrate"]

_SOURCE = "STS Benchmark, training pairs (Cer et al. 2017)"


def add_calibrate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "calibrate",
        help="fit what similarity scores mean, and store it with the model: score<TAB>sentence<TAB>sentence",
        epilog="example: facets-eval calibrate stsb-train.tsv --test stsb-dev.tsv --model models/facets-en",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="pairs to fit on, scores 0 to 5; .gz and .xz open too")
    parser.add_argument("--test", type=Path, metavar="FILE", help="other pairs, to tell how well the curves fit")
    parser.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME|PATH", help="default: facets-en")
    parser.add_argument("--source", default=_SOURCE, help=f"what FILE is, for readers; default: {_SOURCE}")
    parser.add_argument("--dry-run", action="store_true", help="leave the model as it is")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> dict[str, object]:
    train = read_sts(options.file)
    test = read_sts(options.test) if options.test else None
    folder = find_model(options.model)
    model = load(folder, FacetModel)
    methods = _methods(model)
    curves = fit_curves(model, train, methods)
    if not options.dry_run:
        write_score_curves(folder, model.revision, curves, source=options.source)
    report: dict[str, object] = {name: {"points": curve_2N.shape[1]} for name, curve_2N in curves.items()}
    if test is not None:
        mean = float(train.gold.mean())
        report = {
            method: calibration_error(curves[method], scores_P, test.gold, mean=mean)
            for method, scores_P in FacetPairs(model.name, model, methods).scores(test.pairs)
        }
    data = str(options.test or options.file)
    return {"data": data, "rows": len((test or train).pairs), "models": {model.name: report}}


def _methods(model: FacetModel) -> tuple[str, ...]:
    """Those that the model and the installed packages allow."""
    names = [str(name) for name in PAIR_METHODS]
    if importlib.util.find_spec("ot") is None:
        names = [name for name in names if method_of(name).row.extra is None]
    if not model.common_components:
        names = [name for name in names if not method_of(name).row.needs_common_component]
    return tuple(names)
