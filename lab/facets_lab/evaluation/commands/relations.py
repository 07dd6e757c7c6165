"""``facets-eval relations``, ``entailment``, ``fit-confidence`` and ``fit-entailment``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.commands.options import Baselines, Bootstrap, DataFile, DryRun, Models

__all__ = ["entailment", "fit_confidence", "fit_entailment", "relations"]


def relations(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Relations of entity pairs: entity, entity, pattern or kb:relation, count, by tabs.

    Example: facets-eval relations webnlg-dev.tsv --baselines
    """
    from facets_lab.relations.evaluation.tasks import RELATIONS

    RELATIONS.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def entailment(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Entailment of patterns: label (> < : N), specific, general pattern, two frequencies, by tabs.

    Example: facets-eval entailment entailment-dev.tsv --baselines
    """
    from facets_lab.relations.evaluation.tasks import ENTAILMENT

    ENTAILMENT.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def fit_confidence(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pairs, as for the command relations.")],
    model: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The one to fit; the shipped one when none.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=-1.0, max=1.0, help="Accept scores from here on, instead of where F1 is best.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Fit the threshold and the probabilities of a relation model, and store them with it.

    Example: facets-eval fit-confidence webnlg-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.evaluation.task import print_report
    from facets_lab.relations.evaluation.confidence import fit_relation_model

    print_report(fit_relation_model(model, file, threshold=threshold, dry_run=dry_run))


def fit_entailment(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Sources of pairs, as for the command entailment.")
    ],
    model: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The one to fit; the shipped one when none.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Fit what features count for entailment, each source weighing alike, and store it with the model.

    Reports each source with weights of the others (across) and of all (inside).

    Example: facets-eval fit-entailment entailment-dev.tsv levy_holt-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.evaluation.task import print_report
    from facets_lab.relations.evaluation.entailment_fitting import fit_entailment_model

    print_report(fit_entailment_model(model, files, dry_run=dry_run))
