"""``facets-eval retrieval`` and ``calibrate-search``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.commands.options import Baselines, Bootstrap, DryRun, Models

__all__ = ["calibrate_search", "retrieval"]

_Folders = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="corpus.jsonl, queries.jsonl, qrels/test.tsv; .gz and .xz too."),
]


def retrieval(
    folders: _Folders,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    k: Annotated[
        int, typer.Option("--k", min=1, metavar="K", help="Facets of a document in the baseline sentence-kmeans.")
    ] = 8,
    limit_queries: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only N queries of each folder, drawn with the seed.")
    ] = None,
    limit_documents: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N documents of each folder, the judged ones among them."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the embeddings of the baselines here for the next run.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep what is measured here, system by system, and go on from there."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawn queries and of k-means.")] = 0,
) -> None:
    """Search, through the engine that serves: folders in BEIR's layout.

    Example: facets-eval retrieval data/retrieval/squad data/retrieval/bioasq --baselines --cache runs/embeddings
    """
    from facets_lab.documents.evaluation.retrieval import RetrievalRun, run_retrieval
    from facets_lab.evaluation.task import print_report

    run = RetrievalRun(
        folders=folders,
        models=models or (),
        baselines=baselines,
        num_queries=limit_queries,
        num_documents=limit_documents,
        num_facets=k,
        cache=cache,
        results=results,
        seed=seed,
        num_resamples=bootstrap,
    )
    print_report(run_retrieval(run))


def calibrate_search(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR|FILE...", help="Folders in BEIR's layout, or files of pairs: query, positive."),
    ],
    model: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The one to calibrate; that of collections when none.")
    ] = None,
    limit_queries: Annotated[int, typer.Option(min=1, metavar="N", help="N queries of each folder.")] = 300,
    limit_documents: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N documents of each folder, the judged ones among them."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="What the folders are, for readers.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    dry_run: DryRun = False,
) -> None:
    """Fit how probable it is that a hit is relevant, and store it with the model.

    Each folder or file is also measured by the curves of the others.

    Example: facets-eval calibrate-search squad covid-qa bioasq quora --model models/facets-passages-small-en
    """
    from facets_lab.documents.evaluation.calibrate import CalibrationRun, calibrate_search
    from facets_lab.evaluation.task import print_report

    run = CalibrationRun(
        folders=folders,
        model=model,
        num_queries=limit_queries,
        num_documents=limit_documents,
        source=source,
        seed=seed,
        dry_run=dry_run,
    )
    print_report(calibrate_search(run))
