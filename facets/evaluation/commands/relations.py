"""``facets-eval relations``, ``entailment`` and ``fit-confidence``."""

from pathlib import Path
from typing import Annotated

import typer

from facets.evaluation.commands.options import Baselines, Bootstrap, DataFile, DryRun, Models

__all__ = ["entailment", "fit_confidence", "relations"]


def relations(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Relations of entity pairs: entity, entity, pattern or kb:relation, count, by tabs.

    Example: facets-eval relations webnlg-dev.tsv --baselines
    """
    from facets.relations.evaluation.tasks import RELATIONS

    RELATIONS.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def entailment(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Entailment of patterns: label (> < : N), specific, general pattern, two frequencies, by tabs.

    Example: facets-eval entailment entailment-dev.tsv --baselines
    """
    from facets.relations.evaluation.tasks import ENTAILMENT

    ENTAILMENT.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def fit_confidence(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pairs, as for the command relations.")],
    entailment: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs, as for the command entailment.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The one to fit; the shipped one when none.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Fit thresholds, probabilities and entailment of a relation model, and store them with it.

    Example: facets-eval fit-confidence webnlg-dev.tsv --entailment entailment-dev.tsv
    --model models/facets-relations-en
    """
    from facets.evaluation.task import print_report
    from facets.relations.evaluation.confidence import fit_relation_model

    print_report(fit_relation_model(model, file, entailment=entailment, dry_run=dry_run))
