"""``facets search`` and ``facets rerank``."""

from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from facets_client.cli.options import AS_TEXT, FileOption, ModelOption, WhereOption, no_file, parse_where, texts_from
from facets_client.cli.output import add_row, clean, count_of, match_line, print_json, shortened, stdout, table
from facets_client.cli.settings import settings_of
from facets_client.core.html import pieces
from facets_client.documents.results import SearchResults, field_line, in_text, is_sure, path_of, shown_part
from facets_client.generated.types import SearchHit, SearchMode

_ANSWER, _WORD = "yellow", "bold"
_LEFT_OUT = "..."


def excerpt(hit: SearchHit, max_chars: int) -> Text:
    """The sentences around the answer in one line, or the beginning of the text where no part of it answers.

    About ``max_chars`` are shown, the answer's beginning among them; answer and words of the query have styles.
    """
    found, words = in_text(hit)
    shown = shown_part(hit.text, found, max_chars)
    line = Text(f"{_LEFT_OUT} " if shown.start > 0 else "")
    for part, in_answer, in_word in pieces(hit.text, shown, found, words):
        piece = " ".join(f"|{clean(part)}|".split())[1:-1]
        if line.plain.endswith(" "):
            piece = piece.removeprefix(" ")
        line.append(piece, style=" ".join([_ANSWER] * in_answer + [_WORD] * in_word))
    if shown.end < len(hit.text):
        line.rstrip()
        line.append(f" {_LEFT_OUT}")
    return line


_TEXT_CHARS = 300
_TITLE_CHARS = 80


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to look.", show_default=False)],
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Documents to find.", min=1)] = 10,
    mode: Annotated[SearchMode, typer.Option("--mode", help="What ranks: both, or one side.")] = "hybrid",
    combine: Annotated[
        Literal["sum", "any"] | None,
        typer.Option(help="Answer all that is asked, or any of it.  [default: any of several questions]"),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(help="Leave out less sure hits, 0 to 1.  [default: 0.1; with --json: 0]", min=0, max=1),
    ] = None,
    diversify: Annotated[float, typer.Option(help="Prefer hits that differ, 0 to 1.", min=0, max=1)] = 0.0,
    where: WhereOption = None,
    exact: Annotated[bool, typer.Option("--exact", help="Compare with every document.")] = False,
    evidence: Annotated[bool, typer.Option(help="Show which facet met which.")] = True,
    explain: Annotated[bool, typer.Option("--explain", help="Show every facet that met, and where it stands.")] = False,
    num_words: Annotated[int, typer.Option(help="Nearest words for each facet shown.", min=1)] = 5,
    full: Annotated[bool, typer.Option("--full", help="Whole texts and payloads.")] = False,
    parts: Annotated[bool, typer.Option("--parts", help="Find parts of long documents, each a hit.")] = False,
    model: Annotated[str, typer.Option(help="Model for the query, of the collection's space.")] = "",
    min_revision: Annotated[int, typer.Option(help="Wait for this index revision.", min=0)] = 0,
) -> None:
    """Find the documents that answer the query best, by its facets and its words, and show why.

    \b
    Examples:
      facets search "who won the cup" --collection news --top-k 10
      facets search "rate cuts" -c news --where 'year>=2020' --where 'language=en'
      facets search 'error AB-1234 "out of memory"' -c tickets --mode lexical
      facets search "effects of the reform" -c news --diversify 0.5 --min-confidence 0.5
      facets --json search "rate cuts" -c news --exact
    """
    settings = settings_of(context)
    no_file(query, AS_TEXT)
    with settings.connect() as client:
        found = client.search(
            collection,
            [query],
            top_k=top_k,
            mode=mode,
            combine=combine or "",
            where=parse_where(where),
            exact=exact,
            min_revision=min_revision,
            evidence=evidence or explain,
            num_words=num_words,
            min_confidence=min_confidence,
            diversify=diversify,
            group=not parts,
            model=model,
        )
    if settings.json:
        _print_json(query, found)
    else:
        _print_hits(found, min_confidence, full=full, explain=explain)


def _print_json(query: str, found: SearchResults) -> None:
    print_json(
        {
            "query": query,
            "hits": found[0].hits,
            "index_revision": found.index_revision,
            "exhaustive": found.exhaustive,
            "index_kind": found.index_kind,
            "recall": found.recall,
            "left_out": found.left_out,
            "model": found.model,
            "timings": found.timings,
            "warnings": found.warnings,
        }
    )


def _print_hits(found: SearchResults, min_confidence: float | None, *, full: bool, explain: bool) -> None:
    console = stdout()
    shown = [hit for hit in found[0].hits if min_confidence is not None or is_sure(hit)]
    for rank, hit in enumerate(shown, start=1):
        _print_hit(console, rank, hit, full=full, explain=explain)
    console.print(Text(_note(found, len(shown), min_confidence), style="dim"))


def _note(found: SearchResults, num_shown: int, min_confidence: float | None) -> str:
    """How many hits there are, what was left out, how they were found."""
    hits = found[0].hits
    compared = "all matching documents compared" if found.exhaustive else "approximate"
    recall = "" if found.recall is None else f", recall of late {found.recall:.2f}"
    without = f"; left out: {found.left_out}" if found.left_out else ""
    how = f"{compared} ({found.index_kind}{recall}), {found.timings.total_ms:.0f} ms{without}"
    if hits and not num_shown:
        best = max(hit.confidence or 0.0 for hit in hits)
        surest = f"the surest of {len(hits)} has confidence {best:.2f} (--min-confidence 0 shows it)"
        return f"nothing relevant: {surest}, {how}"
    if min_confidence and not num_shown:
        return f"nothing relevant: no document has confidence {min_confidence:g}, {how}"
    less = f", {len(hits) - num_shown} less sure ones left out" if len(hits) > num_shown else ""
    what = "hit" if len({hit.id for hit in hits}) < len(hits) else "document"
    return f"{count_of(num_shown, what)}{less}, {how}"


def _print_hit(console: Console, rank: int, hit: SearchHit, *, full: bool, explain: bool) -> None:
    head = Text(f"{rank:>2}  ")
    head.append(f"{hit.score:.4f}" if hit.confidence is None else f"confidence {hit.confidence:.2f}", style="bold")
    head.append(f"  {clean(hit.id)}", style="cyan")
    path = path_of(hit)
    if path:
        head.append(f"  {shortened(path, _TITLE_CHARS)}", style="bold")
    console.print(head)
    lines = [excerpt(hit, len(hit.text) if full else _TEXT_CHARS)] if hit.text else []
    if hit.answer and hit.answer.field:
        lines.insert(0, Text(shortened(clean(field_line(hit.answer)), _TEXT_CHARS), style=_ANSWER))
    if full and hit.payload:
        lines.append(Text(clean(", ".join(f"{name}: {value}" for name, value in hit.payload.items()))))
    why = _why(hit)
    if why:
        lines.append(Text(clean(why), style="dim"))
    for match in hit.evidence if explain else hit.evidence[:1]:
        line = match_line(match, "query", "document")
        if explain and match.second_span is not None:
            place = f" of {clean(match.second_span.field)}" if match.second_span.field else ""
            line.append(f", characters {match.second_span.start} to {match.second_span.end}{place}")
        lines.append(line)
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 4)))
    console.print()


def _why(hit: SearchHit) -> str:
    """The parts of the score, and the words that matched."""
    parts = [] if hit.confidence is None else [f"score {hit.score:.3f}"]
    if hit.facets_score:
        parts.append(f"facets {hit.facets_score:.3f}")
    if hit.lexical_score:
        parts.append(f"words {hit.lexical_score:.2f}: {', '.join(hit.matched_words)}")
    return ", ".join(parts)


def rerank(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What the texts shall answer.", show_default=False)],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts.", show_default=False)] = None,
    file: FileOption = None,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="Only so many of the best.", min=1)] = None,
    mode: Annotated[SearchMode, typer.Option("--mode", help="What ranks: both, or one side.")] = "hybrid",
    model: ModelOption = "",
) -> None:
    """Put texts in the order in which they answer a query; nothing is stored.

    Scores and confidence are those of a search of just these texts.

    \b
    Examples:
      facets rerank "how fast can a camel run" "Camels reach 65 km/h." "Camels live in deserts."
      facets rerank "rate cuts" --file candidates.txt --top-k 10
      facets --json rerank "rate cuts" --file - < candidates.txt
    """
    settings = settings_of(context)
    no_file(query, AS_TEXT)
    given = list(texts_from(texts, file))
    with settings.connect() as client:
        wanted = None if top_k is None else min(top_k, len(given))
        found = client.rerank(query, given, top_k=wanted, mode=mode, model=model)
    if settings.json:
        parts = {name: getattr(found, name) for name in ("results", "model", "timings", "num_tokens")}
        print_json({"query": query, **parts})
        return
    measure = "score" if any(one.confidence is None for one in found.results) else "confidence"
    shown = table("rank", "text", measure, "answer", right=("rank", "text", measure))
    for rank, one in enumerate(found.results, start=1):
        part = shown_part(given[one.index], one.answer, _TEXT_CHARS)
        sure = f"{one.score:.4f}" if one.confidence is None else f"{one.confidence:.2f}"
        add_row(shown, rank, one.index + 1, sure, " ".join(given[one.index][part.start : part.end].split()))
    stdout().print(shown)
    note = f"{len(found.results)} of {count_of(len(given), 'text')}, {found.timings.total_ms:.0f} ms"
    stdout().print(Text(note, style="dim"))
