"""The formats that can be read, known by a file's name or its first bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, get_args

from facets_client.core.records import read_objects
from facets_client.core.source import InputError, RecordSource
from facets_client.documents.readers import arrays, columnar, pages, separated
from facets_client.documents.readers.options import ReadOptions, Rows

__all__ = ["FORMATS", "Format", "FormatName", "format_of", "format_of_name", "suffixes"]

FormatName = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow", "text", "markdown", "html", "pdf"]
_COMPRESSED = (".gz", ".xz", ".zst")


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: As people say it.
        suffixes: Of file names, in lower case.
        read: Rows of an opened input.
        holds: A table, whose columns the owner named; pages of one document; or one text.
        jumps: Is read from several places, so that reading it again from its beginning costs nothing.
        typed: Values are strings, whose types are to be found out.
    """

    name: FormatName
    suffixes: tuple[str, ...]
    read: Callable[[RecordSource, ReadOptions], Rows]
    holds: Literal["table", "pages", "text"] = "table"
    jumps: bool = False
    typed: bool = True


def _read_jsonl(source: RecordSource, options: ReadOptions) -> Rows:
    return read_objects(source, max_line_bytes=options.max_row_bytes)


FORMATS: dict[str, Format] = {
    found.name: found
    for found in (
        Format(name="jsonl", suffixes=(".jsonl", ".ndjson", ".jl"), read=_read_jsonl),
        Format(name="json", suffixes=(".json",), read=arrays.read_json),
        Format(name="csv", suffixes=(".csv",), read=separated.read_csv, typed=False),
        Format(name="tsv", suffixes=(".tsv", ".tab"), read=separated.read_tsv, typed=False),
        Format(name="parquet", suffixes=(".parquet", ".pq"), read=columnar.read_parquet, jumps=True),
        Format(name="arrow", suffixes=(".arrow", ".feather", ".ipc"), read=columnar.read_arrow, jumps=True),
        Format(name="text", suffixes=(".txt", ".text"), read=pages.read_text, holds="text"),
        Format(name="markdown", suffixes=(".md", ".markdown"), read=pages.read_markdown, holds="text"),
        Format(name="html", suffixes=(".html", ".htm", ".xhtml"), read=pages.read_html, holds="text"),
        Format(name="pdf", suffixes=(".pdf",), read=pages.read_pdf, holds="pages", jumps=True),
    )
}
assert set(FORMATS) == set(get_args(FormatName))
_BY_SUFFIX = {suffix: found for found in FORMATS.values() for suffix in found.suffixes}
# First bytes, white space aside.
_BY_HEAD = {b"{": "jsonl", b"[": "json", b"%PDF": "pdf", b"PAR1": "parquet", b"ARROW1": "arrow", b"<": "html"}


def suffixes() -> str:
    """All suffixes in one line."""
    return " ".join(_BY_SUFFIX)


def format_of_name(name: str) -> Format | None:
    """What a file's name says, a suffix of compression aside; None when it says nothing."""
    path = PurePath(name.lower())
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return _BY_SUFFIX.get(path.suffix)


def format_of(source: RecordSource, asked: FormatName | None) -> Format:
    """The format of an opened input.

    Args:
        source: At its beginning.
        asked: What the caller says it is; None: found out.

    Raises:
        InputError: Neither name nor content say what it is.
    """
    if asked is not None:
        return FORMATS[asked]
    named = format_of_name(source.name)
    if named is not None:
        return named
    head = source.head(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, name in _BY_HEAD.items():
        if head.startswith(magic):
            return FORMATS[name]
    if not head:
        raise InputError(f"{'standard input' if source.name == '-' else source.name}: is empty")
    what = "standard input" if source.name == "-" else source.name
    raise InputError(
        f"{what}: cannot tell its format: say --format, one of {', '.join(FORMATS)}",
        hint="save sheets and office documents as CSV, text, HTML or PDF",
    )
