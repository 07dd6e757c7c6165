"""Rows of an input, and the records and rejections made from them. Reads JSON lines and JSON arrays.

One bad row must not stop a million good ones: a row that cannot be read becomes a ``Rejection`` with its line and its
reason, never an exception.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Generic, Literal, TextIO, TypeAlias, TypeVar

from facets_client.load.source import DAMAGED, InputError, Source

ItemT = TypeVar("ItemT")
# fmt: off
FormatName = Literal[
    "jsonl", "json", "csv", "tsv", "parquet", "text", "markdown", "rst", "html", "pdf", "docx", "pptx", "sheets",
    "opendocument", "epub", "eml", "mbox", "msg", "subtitles", "zip", "slack",
]
# fmt: on

# Names of columns that hold a text, in lower case, best first. The playground uses the same ones.
TEXT_NAMES = (
    *("text", "body", "content", "contents", "abstract", "passage", "article", "description", "message", "summary"),
    *("note", "notes", "comment", "comments", "details"),
)
EXCERPT_CHARS = 200
MAX_EXACT_INTEGER = 2**53  # above it, a double cannot represent every integer
MAX_OBJECT_BYTES = 64 * 2**20  # of a file that is one JSON object
MAX_ROW_BYTES = 8 * 2**20  # longer rows are rejected without being held in memory
_MAX_ID_CHARS = 512
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What reading one file may take."""

    time_s: int = 120  # processor time of a file, or of the next row of a table
    memory_bytes: int = 2**30  # of the process that reads
    unpacked_bytes: int = 4 * 2**30  # of an archive, and of a compressed file that must be unpacked before reading
    num_members: int = 100_000  # files in an archive


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files are read; what is not set is detected for each file. ``note`` is called with notes for the user."""

    format: FormatName | None = None
    encoding: str = ""
    delimiter: str = ""
    text: tuple[str, ...] = ()  # columns that hold a text: a sheet with one of them is a table of rows
    limits: Limits = field(default=Limits())
    note: Callable[[str], None] = field(default=lambda sentence: None)


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row."""

    fields: dict[str, Any]
    line: int  # 1-based: line of the file, number of the record, or page
    excerpt: str  # first characters
    key: str = ""  # ends the document's id instead of the line


@dataclass(frozen=True, slots=True)
class Part:
    """Announces that the next rows are a table of their own."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """A file within the file, such as one of an archive or an attachment."""

    name: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A row that cannot be used, and why."""

    line: int  # as in ``Row``; 0: the whole file
    reason: str  # a stable word, e.g. invalid_json
    message: str  # what, expected, got
    id: str = ""
    excerpt: str = ""
    file: int = 0  # index of the file among the inputs
    name: str = ""  # label of the file


@dataclass(frozen=True, slots=True)
class Record(Generic[ItemT]):
    """A valid row: its item, and its position in the input."""

    item: ItemT
    id: str
    line: int
    excerpt: str
    num_bytes: int = 0  # on the wire
    file: int = 0
    name: str = ""  # label of the file

    def rejected(self, reason: str, message: str) -> Rejection:
        """The rejection of this record."""
        return Rejection(self.line, reason, message, self.id[:_MAX_ID_CHARS], self.excerpt, self.file, self.name)


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Follows the last record of each file."""

    file: int  # index of the file among the inputs
    name: str  # label of the file, as in its records
    is_complete: bool  # no part of the file was damaged or unreadable: what it did not yield, it does not contain


Rows: TypeAlias = Iterator[Row | Rejection]
Items: TypeAlias = Iterator[Row | Rejection | Part | Member]
# Reasons of rejections that stand for an unknown number of records.
LOSSES = frozenset(
    ("changed", "damaged_input", "file_too_long", "invalid_encoding", "locked", "no_text", "unreadable_file")
)


def read_jsonl(source: Source, options: ReadOptions | None = None) -> Rows:
    """Rows of JSON lines. Blank lines are skipped; damaged data ends the rows with one rejection."""
    line = 0
    while True:
        line += 1
        try:
            raw, num_bytes = _read_line(source)
        except DAMAGED as error:
            message = f"the {source.compression} data is cut off or damaged after line {line - 1}: {error}"
            yield Rejection(line, "damaged_input", message)
            return
        if not num_bytes:
            return
        if raw is None:
            yield Rejection(line, "line_too_long", f"line has {num_bytes} bytes, the limit is {MAX_ROW_BYTES}")
            continue
        if line == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _json_row(raw, line)


def _read_line(source: Source) -> tuple[bytes | None, int]:
    """A line and its length; None instead of a line over the limit."""
    piece = source.stream.readline(MAX_ROW_BYTES + 1)
    if len(piece) <= MAX_ROW_BYTES or piece.endswith(b"\n"):
        return piece, len(piece)
    num_bytes = len(piece)
    while piece and not piece.endswith(b"\n"):
        piece = source.stream.readline(2**18)
        num_bytes += len(piece)
    return None, num_bytes


def _json_row(raw: bytes, line: int) -> Row | Rejection:
    excerpt = raw[: 4 * EXCERPT_CHARS].decode("utf-8", "replace").rstrip("\r\n")[:EXCERPT_CHARS]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"invalid UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        return Rejection(line, "invalid_utf8", message, excerpt=excerpt)
    constants: list[str] = []
    try:
        value = json.loads(text, parse_constant=constants.append)
    except (ValueError, RecursionError) as error:
        cut = "" if raw.endswith(b"\n") else "; the last line has no line end: it may be cut off"
        return Rejection(line, "invalid_json", f"{_json_fault(error)}{cut}", excerpt=excerpt)
    return _object_row(value, constants, line, excerpt)


def _json_fault(error: Exception, start: int = 0) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON: {error.msg} at column {error.pos - start + 1}"
    # A number with thousands of digits raises a plain ValueError.
    return "JSON is nested too deeply" if isinstance(error, RecursionError) else f"invalid JSON: {error}"


def _object_row(value: object, constants: list[str], line: int, excerpt: str) -> Row | Rejection:
    if constants:
        return Rejection(line, "invalid_json", f"{constants[0]} is not JSON", excerpt=excerpt)
    if not isinstance(value, dict):
        message = f"expected a JSON object, got {type_name(value)}"
        return Rejection(line, "not_an_object", message, excerpt=excerpt)
    return Row(value, line, excerpt)


def type_name(value: object) -> str:
    """The type of a JSON value, for messages."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def read_json(source: Source, options: ReadOptions) -> Rows:
    """Objects of a JSON array, of the only array of objects in an object, or of JSON lines in a file named ``.json``.

    Messages of a chat become conversations.
    """
    from facets_client.load.chats import chat_rows

    head = source.text_head("JSON").removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"["):
        return chat_rows(_array_rows(source.text("utf-8-sig")))
    first_line, _, others = head.partition(b"\n")
    if not head.startswith(b"{"):
        if not head:
            return iter(())
        start = head[:20].decode("ascii", "replace")
        raise InputError(f"{source.name}: expected a JSON array or JSON lines, got {start!r}")
    try:
        json.loads(first_line)
        is_one_object = not others.strip()
    except (ValueError, RecursionError):
        is_one_object = not others.lstrip().startswith(b"{")
    return chat_rows(_object_rows(source)) if is_one_object else read_jsonl(source)


def _object_rows(source: Source) -> Rows:
    """The objects of the only array of objects in an object without a text; else the object itself."""
    data = source.stream.read(MAX_OBJECT_BYTES + 1)
    if len(data) > MAX_OBJECT_BYTES:
        raise InputError(
            f"{source.name}: one JSON object has more than {MAX_OBJECT_BYTES:,} bytes",
            hint="take the array out of it, or write each object on one line",
        )
    item = _json_row(data.removeprefix(b"\xef\xbb\xbf"), 1)
    arrays = [
        value
        for value in (item.fields.values() if isinstance(item, Row) else ())
        if isinstance(value, list) and value and all(isinstance(element, dict) for element in value)
    ]
    if isinstance(item, Rejection) or len(arrays) != 1 or set(TEXT_NAMES).intersection(item.fields):
        yield item
        return
    for number, element in enumerate(arrays[0], start=1):
        yield Row(element, number, json.dumps(element, ensure_ascii=False)[:EXCERPT_CHARS])


_SEPARATORS = re.compile(r"[\s,]*")
_UNDECODABLE = re.compile("[\udc80-\udcff]")
_CHUNK_CHARS = 2**18
_MAX_ELEMENT_CHARS = 8 * MAX_ROW_BYTES  # held in memory during the search for the end of an element


def _array_rows(stream: TextIO) -> Rows:
    """The elements of a JSON array, read one at a time, up to its end or a broken element."""
    constants: list[str] = []
    decode = json.JSONDecoder(parse_constant=constants.append).raw_decode
    number = 0
    try:
        text = stream.read(_CHUNK_CHARS)
        position = text.index("[") + 1
        while True:
            position = _SEPARATORS.match(text, position).end()  # type: ignore[union-attr]  # it also matches nothing
            if position == len(text):
                text, position = stream.read(_CHUNK_CHARS), 0
                if not text:
                    raise EOFError("it does not end")
                continue
            if text[position] == "]":
                if text[position + 1 :].strip() or stream.read(_CHUNK_CHARS).strip():
                    raise EOFError("something follows its end")
                return
            number += 1
            constants.clear()
            try:
                value, end = decode(text, position)
            except (ValueError, RecursionError) as error:
                # The element may just be incomplete.
                rest = text[position:]
                more = stream.read(max(_CHUNK_CHARS, len(rest))) if len(rest) < _MAX_ELEMENT_CHARS else ""
                if not more or isinstance(error, RecursionError):
                    raise EOFError(f"record {number}: {_json_fault(error, position)}") from error
                text, position, number = rest + more, 0, number - 1
                continue
            raw, position = text[position:end], end
            if len(raw) > MAX_ROW_BYTES:
                rule = f"record has {len(raw)} characters, the limit is {MAX_ROW_BYTES}"
                yield Rejection(number, "row_too_long", rule, excerpt=raw[:EXCERPT_CHARS])
            elif has_undecodable(raw):
                yield Rejection(number, "invalid_utf8", "the record is not UTF-8")
            else:
                yield _object_row(value, constants, number, raw[:EXCERPT_CHARS])
    except DAMAGED as error:
        message = f"the array is cut off or damaged, and what follows is not read: {error}"
        yield Rejection(max(number, 1), "damaged_input", message)


def has_undecodable(text: str) -> bool:
    """Whether a text has bytes that are invalid in its encoding."""
    return not text.isascii() and _UNDECODABLE.search(text) is not None
