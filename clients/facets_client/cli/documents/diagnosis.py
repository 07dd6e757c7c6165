"""``facets diagnose``."""

from typing import Annotated

import typer
from typer import Option

from facets_client.cli.options import CollectionOption, texts_from
from facets_client.cli.output import count_of, print_table
from facets_client.cli.settings import ask
from facets_client.generated.types import CollectionDiagnosis


def diagnose(
    context: typer.Context,
    collection: CollectionOption,
    queries: Annotated[str | None, Option(help="File with questions, one per line.")] = None,
) -> None:
    """Report duplicates, hubs and recall of a collection.

    Recall is measured on --queries. Use real questions, not sentences from the documents.

    \b
    Examples:
      facets diagnose -c news
      facets diagnose -c news --queries asked.txt
    """
    asked = [] if queries is None else list(texts_from(None, queries))
    ask(context, lambda client: client.diagnose_collection(collection, asked), _print)


def _print(found: CollectionDiagnosis) -> None:
    sampled = "" if found.num_parts_seen == found.num_parts else f", {found.num_parts_seen:,} of them examined"
    typer.echo(f"{count_of(found.num_documents, 'document')}, {count_of(found.num_parts, 'part')}{sampled}")
    vectors = found.vectors
    typer.echo(
        f"{vectors.num_rows:,} facets of {vectors.dim} dimensions: {count_of(vectors.num_duplicates, 'duplicate')}, "
        f"effective rank {vectors.effective_rank:.0f}"
    )
    numbers, near = ("find themselves", "near no query", "largest hub"), vectors.cosine
    row = f"{near.self_first:.1%}", f"{near.unreached:.1%}", f"{near.largest_hub:,} of {near.num_queries:,}"
    print_table(numbers, [row], right=numbers)
    for sentence in vectors.findings:
        typer.echo(f"-> {sentence}")
    if found.recall is None:
        typer.echo("the recall of the index is measured with --queries only")
    else:
        missed = f"; missed: {', '.join(found.missed_ids)}" if found.missed_ids else ""
        typer.echo(
            f"the index ({found.index_kind}) finds {found.recall:.1%} of the hits of an exhaustive search{missed}"
        )
