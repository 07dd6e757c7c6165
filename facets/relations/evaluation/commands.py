"""``facets-eval relations``, ``entailment`` and ``calibrate-relations``."""

import argparse
from pathlib import Path

from facets.evaluation.intervals import Metrics
from facets.model.loading import TASKS, find_model
from facets.relations.evaluation.calibration import fit_entailment, fit_relations, with_calibration
from facets.relations.evaluation.entailment import entailment_systems, evaluate_entailment, read_entailment
from facets.relations.evaluation.relations import RelationSystem, evaluate_relations, read_pairs
from facets.relations.evaluation.systems import FacetRelations, load_relation_models, relation_baselines
from facets.relations.tables import write_tables

__all__ = ["add_calibrate_relations", "run_entailment", "run_relations"]


def run_relations(options: argparse.Namespace) -> dict[str, object]:
    """Relations of entity pairs."""
    data = read_pairs(options.file)
    models = load_relation_models(options.models or [None], baselines=options.baselines)
    systems: list[RelationSystem] = [FacetRelations(model) for model in models]
    if options.baselines:
        systems += relation_baselines(models[0])
    results = {s.name: evaluate_relations(s, data, num_resamples=options.bootstrap) for s in systems}
    return {"data": str(options.file), "rows": data.num_rows, "models": results}


def run_entailment(options: argparse.Namespace) -> dict[str, object]:
    """Entailment of patterns."""
    data = read_entailment(options.file)
    models = load_relation_models(options.models or [None], baselines=options.baselines)
    results: dict[str, dict[str, Metrics]] = {
        system.name: evaluate_entailment(system, data, num_resamples=options.bootstrap)
        for system in entailment_systems(models, baselines=options.baselines)
    }
    return {"data": str(options.file), "rows": len(data.labels), "models": results}


def add_calibrate_relations(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "calibrate-relations",
        help="fit thresholds, probabilities and entailment of a relation model, and store them with it",
        epilog="example: facets-eval calibrate-relations webnlg-dev.tsv --entailment entailment-dev.tsv "
        "--model models/facets-relations-en",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="pairs, as for the command relations")
    parser.add_argument("--entailment", type=Path, metavar="FILE", help="pairs, as for the command entailment")
    parser.add_argument("--model", default=TASKS["relations"].default, metavar="NAME|PATH", help="the one to calibrate")
    parser.add_argument("--dry-run", action="store_true", help="leave the model as it is")
    parser.set_defaults(run=_run_calibrate)


def _run_calibrate(options: argparse.Namespace) -> dict[str, object]:
    data = read_pairs(options.file)
    folder = find_model(options.model)
    [model] = load_relation_models([str(folder)], baselines=False)
    model = with_calibration(model, fit_relations(model, data))
    if options.entailment:
        model = with_calibration(model, fit_entailment(model, read_entailment(options.entailment)))
    if not options.dry_run:
        write_tables(folder, model.relations, model.table)
    results = evaluate_relations(FacetRelations(model), data)
    return {"data": str(options.file), "rows": data.num_rows, "models": {model.name: results}}
