"""``facets diagnose``."""

from typing import Annotated

import typer
from typer import Option

from facets_client.cli.options import CollectionOption, texts_from
from facets_client.cli.settings import ask


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
    ask(context, lambda client: client.diagnose_collection(collection, asked))
