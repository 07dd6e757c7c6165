"""``facets search``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from facets_client.cli.output import clean, match_line, print_json, shortened, stdout
from facets_client.cli.settings import settings_of
from facets_client.cli.where import WhereOption, parse_where
from facets_client.documents.convert import SearchMode
from facets_client.documents.results import SearchHit

_TEXT_CHARS = 300


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to look.", show_default=False)],
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Documents to find.", min=1)] = 10,
    mode: Annotated[SearchMode, typer.Option("--mode", help="What ranks: both, or one side.")] = "hybrid",
    where: WhereOption = None,
    exact: Annotated[bool, typer.Option("--exact", help="Compare with every document.")] = False,
    evidence: Annotated[bool, typer.Option(help="Show which facet met which.")] = True,
    num_words: Annotated[int, typer.Option(help="Nearest words for each facet shown.", min=1)] = 5,
    full: Annotated[bool, typer.Option("--full", help="Whole texts and payloads.")] = False,
    min_revision: Annotated[int, typer.Option(help="Wait for this index revision.", min=0)] = 0,
) -> None:
    """Find the documents that answer the query best, by its facets and its words, and show why.

    \b
    Examples:
      facets search "who won the cup" --collection news --top-k 10
      facets search "rate cuts" -c news --where 'year>=2020' --where 'language=en'
      facets search 'error AB-1234 "out of memory"' -c tickets --mode lexical
      facets --json search "rate cuts" -c news --exact
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.search(
            collection,
            [query],
            top_k=top_k,
            mode=mode,
            where=parse_where(where),
            exact=exact,
            min_revision=min_revision,
            evidence=evidence,
            num_words=num_words,
        )
    if settings.json:
        print_json(
            {
                "query": query,
                "hits": found.hits[0],
                "index_revision": found.index_revision,
                "exhaustive": found.exhaustive,
                "index_kind": found.index_kind,
                "model": found.model,
                "timings": found.timings,
            }
        )
        return
    console = stdout()
    for rank, hit in enumerate(found.hits[0], start=1):
        _print_hit(console, rank, hit, full=full)
    compared = "all matching documents compared" if found.exhaustive else "approximate"
    note = f"{len(found.hits[0])} documents, {compared} ({found.index_kind}), {found.timings.total_ms:.0f} ms"
    console.print(Text(note, style="dim"))


def _print_hit(console: Console, rank: int, hit: SearchHit, *, full: bool) -> None:
    head = Text(f"{rank:>2}  ")
    head.append(f"{hit.score:.4f}", style="bold")
    head.append(f"  {clean(hit.id)}", style="cyan")
    console.print(head)
    text = " ".join(clean(hit.text).split()) if full else shortened(hit.text, _TEXT_CHARS)
    lines = [Text(text)]
    if full and hit.payload:
        lines.append(Text(clean(", ".join(f"{name}: {value}" for name, value in hit.payload.items()))))
    if hit.matched_words:
        lines.append(Text(clean(f"words: {', '.join(hit.matched_words)}"), style="dim"))
    if hit.score not in (hit.facets_score, hit.lexical_score):
        lines.append(Text(f"facets {hit.facets_score:.3f}, words {hit.lexical_score:.2f}", style="dim"))
    lines += [match_line(match, "query", "document") for match in hit.evidence]
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 4)))
    console.print()
