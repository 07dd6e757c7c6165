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
from facets_client.documents.types import CollectionDiagnosis, Payoff, Reachability, VectorReport

_SERVER = "facets_server"  # the package whose program looks at files


def diagnose(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="COLLECTION|FILE.npy", help="What to look at.", show_default=False)],
    queries: Annotated[
        str | None, typer.Option(help="Questions as people ask them: one a line; vectors [., dim] for a .npy file.")
    ] = None,
    hull: Annotated[bool, typer.Option("--hull", help="Of a file: prove which vectors no query ranks first.")] = False,
) -> None:
    """Tell of a collection, or of vectors in a file: duplicates and hubs, whether facets pay, what is missed.

    With questions of people (not sentences of the documents, which promise too much) it says by how much facets are
    closer to them than one vector, and how many facets are worth their storage. Looking at a file needs the server on
    this machine.

    \b
    Examples:
      facets diagnose news
      facets diagnose news --queries asked.txt
      facets diagnose items.npy --hull
    """
    if source.endswith(".npy"):
        _look_at_file(source, queries, hull=hull, as_json=settings_of(context).json)
    if hull:
        raise typer.BadParameter("--hull is for .npy files: collections are searched by cosine, where all can be first")
    asked = [] if queries is None else list(texts_from(None, queries))
    ask(context, lambda client: client.diagnose_collection(source, asked), _print)


def _look_at_file(source: str, queries: str | None, *, hull: bool, as_json: bool) -> None:
    """Goes on as the server's program; never returns."""
    if importlib.util.find_spec(_SERVER) is None:
        sentence = f"a file is looked at by the server's program, which is not installed: {INSTALL_SERVER}"
        raise CommandError(Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="FAILED_PRECONDITION"))
    options = [
        *(("--queries", queries) if queries else ()),
        *(["--hull"] if hull else []),
        *(["--json"] if as_json else []),
    ]
    os.execv(sys.executable, [sys.executable, "-P", "-m", _SERVER, "diagnose", source, *options])


def _print(found: CollectionDiagnosis) -> None:
    seen = "" if found.num_parts_seen == found.num_parts else f", {found.num_parts_seen:,} of them looked at"
    typer.echo(f"{count_of(found.num_documents, 'document')}, {count_of(found.num_parts, 'part')}{seen}")
    _print_vectors(found.vectors)
    if found.payoff is None or found.reachability is None:
        typer.echo("whether facets pay, and what the index misses, cannot be told without --queries")
        return
    _print_payoff(found.payoff)
    _print_reachability(found.reachability)


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


def _print_payoff(payoff: Payoff) -> None:
    typer.echo(
        f"{count_of(payoff.num_queries, 'question')}: the best facet is closer than the document's own vector by "
        f"{payoff.delta:.3f}; documents stand out most with {payoff.best} facets"
    )
    shown = table(
        "facets", "stands out", "kept a document", "same first", right=("facets", "stands out", "kept a document")
    )
    for choice in payoff.choices:
        kept, same = f"{choice.facets_per_document:.1f}", f"{choice.same_first:.0%}"
        add_row(shown, choice.num_facets, f"{choice.contrast:.2f}", kept, same)
    stdout().print(shown)


def _print_reachability(reached: Reachability) -> None:
    missed = f"; missed: {', '.join(reached.missed_ids)}" if reached.missed_ids else ""
    typer.echo(
        f"the index ({reached.index_kind}) finds {reached.recall:.1%} of what comparing everything finds{missed}"
    )
