"""``facets-eval retrieval``."""

from pathlib import Path
from typing import Annotated

import typer

from facets.evaluation.commands.options import Baselines, Bootstrap, Models

__all__ = ["retrieval"]


def retrieval(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="corpus.jsonl, queries.jsonl, qrels/test.tsv; .gz and .xz too."),
    ],
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    k: Annotated[
        int, typer.Option("--k", min=1, metavar="K", help="Facets of a document in the baseline sentence-kmeans.")
    ] = 8,
    limit_queries: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only N queries of each folder, drawn with the seed.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the embeddings of the baselines here for the next run.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawn queries and of k-means.")] = 0,
) -> None:
    """Search, through the engine that serves: folders in BEIR's layout.

    Example: facets-eval retrieval data/retrieval/squad data/retrieval/bioasq --baselines --cache runs/embeddings
    """
    from facets.documents.evaluation.retrieval import RetrievalRun, run_retrieval
    from facets.evaluation.task import print_report

    run = RetrievalRun(
        folders=folders,
        models=models or (),
        baselines=baselines,
        num_queries=limit_queries,
        num_facets=k,
        cache=cache,
        seed=seed,
        num_resamples=bootstrap,
    )
    print_report(run_retrieval(run))
