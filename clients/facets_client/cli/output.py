"""Output of the ``facets`` command: tables for people, JSON for programs, progress on standard error."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from facets_client.generated.types import Document, FacetMatch, NearestWord, TokenAttention
from facets_client.texts.results import Explanation

if TYPE_CHECKING:
    from rich.progress import Progress

_PIPED_WIDTH = 120


class _Console(Console):
    """Console that lets the command handle a broken pipe, which has its own exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout() -> Console:
    """Standard output, with a fixed width if it is not a terminal."""
    console = _Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else _Console(highlight=False, width=_PIPED_WIDTH)


def say(message: str) -> None:
    """Prints one line on standard error."""
    typer.echo(clean(message), err=True)


def print_json(value: object) -> None:
    """Prints a JSON value on one line."""
    typer.echo(json.dumps(value, default=_jsonable, allow_nan=False))


def _jsonable(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        return value.astype(np.float64).tolist()
    raise TypeError(f"no JSON for {type(value).__name__}")


def clean(text: str) -> str:
    """The text on one line, without control characters, which could manipulate the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def shortened(text: str, max_chars: int) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(clean(text[: 4 * max_chars]).split())
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), no_wrap: str = ""
) -> None:
    """Prints rows of plain values, without markup, on standard output."""
    stdout().print(table_of(columns, rows, right=right, no_wrap=no_wrap))


def table_of(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), no_wrap: str = ""
) -> Table:
    """A table of plain values, without markup."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        shown.add_column(Text(clean(column)), justify=justify, overflow="fold", no_wrap=column == no_wrap)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(clean(str(cell))) for cell in row))
    return shown


def print_documents(documents: Iterable[Document], *, text_chars: int = 120) -> None:
    """Prints documents as a table: id, beginning of the text, payload."""

    def row(document: Document) -> tuple[str, ...]:
        payload = json.dumps(dict(document.payload), ensure_ascii=False) if document.payload else ""
        return document.id, shortened(document.text, text_chars), shortened(payload, text_chars)

    print_table(("id", "text", "payload"), map(row, documents))


def _in_parentheses(nearest: Sequence[NearestWord]) -> str:
    return f" ({', '.join(word.word for word in nearest)})" if nearest else ""


def match_line(match: FacetMatch, first: str, second: str) -> Text:
    """One line about two facets that matched."""
    line = Text(style="dim")
    line.append(clean(f"{first} facet {match.first_facet}{_in_parentheses(match.first_words)}"))
    line.append(clean(f" matches {second} facet {match.second_facet}{_in_parentheses(match.second_words)}"))
    line.append(f", cosine {match.cosine:.3f}")
    return line


def print_explanations(explanations: Iterable[Explanation]) -> None:
    """Prints tokens shaded by attention, then the facets with their words."""
    console = stdout()
    for explanation in explanations:
        console.print(with_attention(explanation.tokens))
        stats = explanation.token_stats
        truncated = ", the end of the text was not read" if stats.truncated else ""
        note = f"{count_of(stats.num_tokens, 'token')}, {stats.num_unknown_tokens} unknown{truncated}"
        console.print(Text(note, style="dim"))
        rows = [
            (
                facet.facet,
                ", ".join(f"{word.word} ({word.cosine:.2f})" for word in facet.words),
                ", ".join(explanation.tokens[item.token].text for item in facet.tokens),
            )
            for facet in explanation.facets
        ]
        print_table(("facet", "nearest words (cosine)", "attends to"), rows, right=("facet",))


def with_attention(tokens: Sequence[TokenAttention]) -> Text:
    """Tokens, each with its attention or its weight in a score relative to the strongest one, 0 to 9."""
    strengths = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(strengths, default=0.0) or 1.0
    shares = [min(9, int(10 * max(0.0, strength / strongest))) for strength in strengths]
    digits = [str(share) if token.known else "-" for token, share in zip(tokens, shares, strict=True)]
    return Text(" ".join(f"{clean(token.text)}/{digit}" for token, digit in zip(tokens, digits, strict=True)))


def progress_bar(counted: str, *, quiet: bool) -> "Progress":
    """A progress bar, if standard error is a terminal.

    ``counted`` is what is counted, e.g. ``texts``; ``percent`` shows a share of the total and a description.
    """
    from rich import progress

    console = Console(stderr=True, highlight=False)
    columns: list[progress.ProgressColumn] = [progress.MofNCompleteColumn(), progress.TextColumn(counted)]
    if counted == "percent":
        columns = [
            progress.TextColumn("{task.percentage:>3.0f}%"),
            progress.TextColumn("{task.description}", markup=False),
        ]
    columns = [
        progress.SpinnerColumn("line"),
        progress.BarColumn(),
        *columns,
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    ]
    return progress.Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True)


def count_of(number: int, singular: str, plural: str = "") -> str:
    """Such as ``1 document`` or ``1,200 documents``; the default plural adds an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
