"""``facets diagnose``: a collection, or vectors in a file, looked at as a whole."""

import importlib.util
import os
import sys
from typing import Annotated

import typer

from facets_client.cli.failures import CommandError, ExitCode, Failure
from facets_client.cli.options import texts_from
from facets_client.cli.output import add_row, count_of, stdout, table
from facets_client.cli.settings import ask, settings_of
from facets_client.core.extras import INSTALL_SERVER
from facets_client.generated.types import CollectionDiagnosis, VectorReport

_SERVER = "facets_server"  # the package whose program looks at files


def diagnose(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="COLLECTION|FILE.npy", help="What to look at.", show_default=False)],
    queries: Annotated[str | None, typer.Option(help="File with questions, one per line.")] = None,
    hull: Annotated[bool, typer.Option("--hull", help="Of a file: prove which vectors no query ranks first.")] = False,
) -> None:
    """Describe a collection, or vectors in a file: duplicates, hubs, and the recall of the index.

    Recall is measured on --queries. Use real questions, not sentences of the documents. Diagnosing a file needs
    facets-server on this machine.

    \b
    Examples:
      facets diagnose news
      facets diagnose news --queries asked.txt
      facets diagnose items.npy --hull
    """
    if source.endswith(".npy"):
        if queries is not None:
            raise typer.BadParameter("--queries is for collections, not for .npy files")
        _look_at_file(source, hull=hull, as_json=settings_of(context).json)
    if hull:
        raise typer.BadParameter("--hull is for .npy files: collections are searched by cosine, where all can be first")
    asked = [] if queries is None else list(texts_from(None, queries))
    ask(context, lambda client: client.diagnose_collection(source, asked), _print)


def _look_at_file(source: str, *, hull: bool, as_json: bool) -> None:
    """Goes on as the server's program; never returns."""
    if importlib.util.find_spec(_SERVER) is None:
        sentence = f"a file is looked at by the server's program, which is not installed: {INSTALL_SERVER}"
        raise CommandError(Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="FAILED_PRECONDITION"))
    options = [
        *(["--hull"] if hull else []),
        *(["--json"] if as_json else []),
    ]
    os.execv(sys.executable, [sys.executable, "-P", "-m", _SERVER, "diagnose", source, *options])


def _print(found: CollectionDiagnosis) -> None:
    seen = "" if found.num_parts_seen == found.num_parts else f", {found.num_parts_seen:,} of them looked at"
    typer.echo(f"{count_of(found.num_documents, 'document')}, {count_of(found.num_parts, 'part')}{seen}")
    _print_vectors(found.vectors)
    if found.recall is None:
        typer.echo("the recall of the index is measured with --queries only")
        return
    missed = f"; missed: {', '.join(found.missed_ids)}" if found.missed_ids else ""
    typer.echo(f"the index ({found.index_kind}) finds {found.recall:.1%} of the hits of an exhaustive search{missed}")


def _print_vectors(vectors: VectorReport) -> None:
    typer.echo(
        f"{vectors.num_rows:,} facets of {vectors.dim} dimensions: {count_of(vectors.num_duplicates, 'duplicate')}, "
        f"effective rank {vectors.effective_rank:.0f}"
    )
    shown = table(
        "by", "find themselves", "near nobody", "largest hub", right=("find themselves", "near nobody", "largest hub")
    )
    for name, near in (("inner product", vectors.dot), ("cosine", vectors.cosine)):
        hub = f"{near.largest_hub:,} of {near.num_queries:,}"
        add_row(shown, name, f"{near.self_first:.1%}", f"{near.unreached:.1%}", hub)
    stdout().print(shown)
    for sentence in vectors.findings:
        typer.echo(f"-> {sentence}")
