"""Output of the ``facets`` command: tables for people, JSON for programs, progress on standard error."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime

import numpy as np
import typer
from rich.console import Console

from facets_client.core.drawing import clean, shortened, table_of
from facets_client.generated.types import Document

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


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows of plain values, without markup, on standard output."""
    stdout().print(table_of(columns, rows))


def print_documents(documents: Iterable[Document], *, text_chars: int = 120) -> None:
    """Prints documents as a table: id, beginning of the text, payload."""

    def row(document: Document) -> tuple[str, ...]:
        payload = json.dumps(dict(document.payload), ensure_ascii=False) if document.payload else ""
        return document.id, shortened(document.text, text_chars), shortened(payload, text_chars)

    print_table(("id", "text", "payload"), map(row, documents))
