"""Texts and pairs from the command line, a file or standard input."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from facets_client.core.source import InputError

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts.", show_default=False)]
FileOption = Annotated[
    str | None, typer.Option("--file", "-f", help="One text a line (UTF-8); - reads standard input.")
]
ModelOption = Annotated[str, typer.Option(help="Model; the server's default when not given.")]
WordsOption = Annotated[int, typer.Option(help="Nearest words for each facet.", min=1)]


def texts_from(texts: list[str] | None, file: str | None) -> Iterator[str]:
    """The texts of the command line or of a file."""
    if bool(texts) == (file is not None):
        raise typer.BadParameter("expected texts, or --file FILE")
    return iter(texts) if texts else (line.strip() for _, line in _lines(file or "-"))


def text_of_file(name: str) -> str:
    """A whole file as one text; ``-`` is standard input."""
    if name == "-":
        return _decode(sys.stdin.buffer.read(), name)
    with _open(name) as stream:
        return _decode(stream.read(), name)


def pairs_from(first: str | None, second: str | None, file: str | None) -> list[tuple[str, str]]:
    """The pair of the command line or the pairs of a file."""
    if file is None:
        if first is None or second is None:
            raise typer.BadParameter("expected two texts, or --file FILE")
        return [(first, second)]
    if first is not None:
        raise typer.BadParameter("expected two texts or --file FILE, got both")
    pairs = []
    for where, line in _lines(file, blanks=" "):
        fields = line.split("\t")
        if len(fields) != 2:
            raise InputError(f"{where}: expected two texts with a tab between, got {len(fields)} fields")
        for side, text in zip(("first", "second"), fields, strict=True):
            if not text.strip():
                raise InputError(f"{where}: expected a {side} text, got an empty one")
        pairs.append((fields[0], fields[1]))
    return pairs


def _lines(name: str, *, blanks: str | None = None) -> Iterator[tuple[str, str]]:
    """Lines that are not blank with where they stand, one at a time.

    Args:
        name: The file; ``-`` is standard input.
        blanks: Characters of which blank lines consist; None: any white space.

    Raises:
        InputError: The file cannot be read, a line is not UTF-8, or no line has a text.
    """
    stream = sys.stdin.buffer if name == "-" else _open(name)
    is_empty = True
    with stream:
        for number, line in enumerate(stream, start=1):
            text = _decode(line, f"{name}, line {number}").rstrip("\r\n")
            if text.strip(blanks):
                is_empty = False
                yield f"{name}, line {number}", text
    if is_empty:
        raise InputError(f"{name}: expected at least one line with text, got none")


def _open(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: invalid UTF-8: byte 0x{raw[error.start]:02x}") from error
