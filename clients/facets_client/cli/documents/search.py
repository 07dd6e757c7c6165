"""``facets search`` and ``facets rerank``."""

from collections.abc import Sequence
from functools import partial
from math import floor
from typing import Annotated, Literal

import typer
from rich.console import Group
from typer import Argument, Option

from facets_client.cli.options import (
    CollectionOption,
    FileOption,
    ModelOption,
    Texts,
    TopKOption,
    WhereOption,
    check_is_text,
    parse_where,
    texts_from,
)
from facets_client.cli.output import print_json, print_table, stdout
from facets_client.cli.settings import ask, call_with, settings_of
from facets_client.core.drawing import count_of, line
from facets_client.documents.results import hit_parts, is_sure, shown_part
from facets_client.generated.types import RerankedTexts, SearchMode, SearchResults

_TEXT_CHARS = 300

ModeOption = Annotated[SearchMode | None, Option(help="Rank by facets and words, or by one of them.")]


def search(
    context: typer.Context,
    query: Annotated[str, Argument(help="What to look for.")],
    collection: CollectionOption,
    top_k: TopKOption = None,
    mode: ModeOption = None,
    combine: Annotated[
        Literal["sum", "any"] | None,
        Option(help="sum: all parts of the query count; any: one suffices.  [default: any for several questions]"),
    ] = None,
    min_confidence: Annotated[
        float | None, Option(help="Omit hits below this, 0 to 1.  [default: 0.1; with --json: 0]")
    ] = None,
    diversify: Annotated[float | None, Option(help="Preference for diverse hits, 0 to 1.")] = None,
    where: WhereOption = None,
    exact: Annotated[bool, Option("--exact", help="Compare with every document.")] = False,
    evidence: Annotated[bool, Option(help="Show which facets match.")] = True,
    explain: Annotated[bool, Option("--explain", help="Show all matching facets and where they match.")] = False,
    full: Annotated[bool, Option("--full", help="Show whole texts and payloads.")] = False,
    use_reader: Annotated[
        bool | None, Option("--reader/--no-reader", help="Let the answer reader choose the answers.  [default: reader]")
    ] = None,
    model: Annotated[str, Option(help="Model for the query, from the collection's embedding space.")] = "",
) -> None:
    """Find the documents that answer a query, and show why.

    \b
    Examples:
      facets search "who won the cup" --collection news --top-k 10
      facets search "rate cuts" -c news --where 'year>=2020' --where 'language=en'
    """
    options = locals() | {"where": parse_where(where), "evidence": evidence or explain, "combine": combine or ""}
    settings = settings_of(context)
    check_is_text(query)
    with settings.connect() as client:
        found = call_with(client.search, options, queries=[query])
    if settings.json:
        names = ("index_revision", "exhaustive", "index_kind", "recall", "left_out", "model", "timings", "warnings")
        print_json({"query": query, "hits": found[0].hits, **{name: getattr(found, name) for name in names}})
        return
    console = stdout()
    shown = [hit for hit in found[0].hits if min_confidence is not None or is_sure(hit)]
    for rank, hit in enumerate(shown, start=1):
        console.print(Group(*hit_parts(rank, hit, full=full, explain=explain)))
    console.print(line(_note(found, len(shown), min_confidence)))


def _note(found: SearchResults, num_shown: int, min_confidence: float | None) -> str:
    hits = found[0].hits
    compared = "all matching documents compared" if found.exhaustive else "approximate"
    recall = "" if found.recall is None else f", recent recall {found.recall:.2f}"
    left_out = f"; left out: {found.left_out}" if found.left_out else ""
    how = f"{compared} ({found.index_kind}{recall}), {found.timings.total_ms:.0f} ms{left_out}"
    if hits and not num_shown:
        best = max(hit.confidence or 0.0 for hit in hits)
        surest = f"the surest of {len(hits)} has confidence {floor(100 * best) / 100:.2f} (--min-confidence 0 shows it)"
        return f"nothing relevant: {surest}, {how}"
    if min_confidence and not num_shown:
        return f"nothing relevant: no document has confidence {min_confidence:g}, {how}"
    num_hidden = len(hits) - num_shown
    hidden = f", {count_of(num_hidden, 'less sure hit')} left out" if num_hidden else ""
    is_several_parts = len({hit.id for hit in hits}) < len(hits)
    return f"{count_of(num_shown, 'hit' if is_several_parts else 'document')}{hidden}, {how}"


def rerank(
    context: typer.Context,
    query: Annotated[str, Argument(help="What the texts should answer.")],
    texts: Texts = None,
    file: FileOption = None,
    top_k: TopKOption = None,
    mode: ModeOption = None,
    model: ModelOption = "",
) -> None:
    """Order texts by how well they answer a query.

    Nothing is stored. Scores and confidence are those of a search over just these texts.

    \b
    Examples:
      facets rerank "how fast can a camel run" "Camels reach 65 km/h." "Camels live in deserts."
      facets rerank "rate cuts" --file candidates.txt --top-k 10
    """
    check_is_text(query)
    asked = list(texts_from(texts, file))
    if top_k is not None:
        top_k = min(top_k, len(asked))  # the server rejects a larger value
    ask(
        context,
        lambda client: client.rerank(query, asked, model=model, top_k=top_k, mode=mode),
        partial(_print_reranked, asked),
        lambda found: {
            "query": query,
            **{name: getattr(found, name) for name in ("results", "model", "timings", "num_tokens")},
        },
    )


def _print_reranked(asked: Sequence[str], found: RerankedTexts) -> None:
    rows = []
    for rank, result in enumerate(found.results, start=1):
        text = asked[result.index]
        part = shown_part(text, result.answer, _TEXT_CHARS)
        answer = " ".join(text[part.start : part.end].split())
        rows.append((rank, result.index + 1, result.score, result.confidence, answer))
    print_table(("rank", "text", "score", "confidence", "answer"), rows)
    stdout().print(line(f"{len(found.results)} of {count_of(len(asked), 'text')}, {found.timings.total_ms:.0f} ms"))
