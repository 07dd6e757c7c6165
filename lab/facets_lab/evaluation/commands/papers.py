"""``facets-eval recommendation``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.commands.options import Baselines, DataFile, Models

__all__ = ["recommendation"]


def recommendation(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The papers of the training; sentence vectors need their texts.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep sentence vectors here for the next run.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N authors and N citing papers, drawn with a fixed seed."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Find the best mixtures on FILE and store them in the model folders.")
    ] = False,
) -> None:
    """Authors and citations of unseen papers: JSON lines {"id", "title", "abstract", "authors", "cited_by"}.

    Example: facets-eval recommendation dev.jsonl.xz --baselines --train train.jsonl.xz
    """
    from facets_lab.evaluation.task import print_report
    from facets_lab.papers.evaluation.run import PaperRun, run_papers

    run = PaperRun(
        file=file,
        models=models or (),
        baselines=baselines,
        train=train,
        embeddings=embeddings,
        sample=sample,
        tune=tune,
    )
    print_report(run_papers(run))
