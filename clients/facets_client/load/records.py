"""Rows of an input, JSON lines above all, and how a row becomes a document.

Read in one pass and in bounded memory. What cannot be read becomes a ``Rejection`` with its line number and its
reason, never an exception: one bad line must not stop a million good ones.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from facets_client.load.source import DAMAGED, RecordSource

EXCERPT_CHARS = 200
MAX_ROW_BYTES = 8 * 2**20

_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordFormat:
    """How a row becomes a document.

    Attributes:
        text_fields: Fields that hold the text; several are joined by a blank line.
        id_field: Field that holds the id (a string, or an integer, which becomes a string); empty: automatic ids.
        title_field: Field that becomes ``title`` of the payload; empty: none does.
        payload_fields: Fields of the payload; None: all others.
        convert: Field -> what turns its string into a value of the payload; None: there is none.
        content_ids: Automatic ids are digests of the text, not the place of the row.
        id_prefix: What automatic ids start with: the name of the file.
        numbered: Automatic ids end with the number of the row: the file holds several.
        max_text_bytes: Longer texts (in UTF-8) are rejected; 0 leaves it to the server.
        max_id_bytes: Longer ids (in UTF-8) are rejected; 0 leaves it to the server.
    """

    text_fields: tuple[str, ...] = ("text",)
    id_field: str = "id"
    title_field: str = ""
    payload_fields: tuple[str, ...] | None = None
    convert: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    content_ids: bool = False
    id_prefix: str = ""
    numbered: bool = True
    max_text_bytes: int = 0
    max_id_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A good row: the document it holds and where it stands."""

    id: str
    text: str
    payload: dict[str, object]
    line: int  # 1-based
    end: int  # byte offset after the line, in the uncompressed stream; 0 where rows are found by their number
    file: int = 0  # place of the file among the inputs
    name: str = ""  # of the file, where there are several
    encoded: Mapping[str, Any] = field(default_factory=dict)  # what else of the document is known


@dataclass(frozen=True, slots=True)
class Rejection:
    """A row that holds no usable document, and why; line 0: the whole file."""

    line: int  # 1-based
    end: int  # as of a record
    reason: str  # stable word, e.g. invalid_json
    message: str  # what, expected, got
    id: str = ""  # when the row got that far
    excerpt: str = ""  # first characters of the row
    file: int = 0  # place of the file among the inputs
    name: str = ""  # of the file, where there are several


@dataclass(frozen=True, slots=True)
class Row:
    """Fields of one row, whatever is in them."""

    fields: dict[str, object]
    line: int  # 1-based: line of the file, number of the record, page
    end: int  # byte offset after the line, in the uncompressed stream; 0 where rows are found by their number
    excerpt: str  # first characters of the row


class _UnusableError(Exception):
    """Why a line holds no usable document."""

    def __init__(self, reason: str, message: str, *, record_id: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.record_id = record_id


def read_objects(
    source: RecordSource, *, max_line_bytes: int = MAX_ROW_BYTES, line: int = 0, end: int = 0
) -> Iterator[Row | Rejection]:
    """Yields every line after (``line``, ``end``) as a JSON object or a rejection, in order.

    Blank lines are passed over. An input that is cut off or damaged ends with one rejection
    (reason ``damaged_input``) that stands for everything that could not be read.

    Args:
        source: The input; moved to byte ``end`` when it is not 0.
        max_line_bytes: Longer lines are rejected without being held in memory.
        line: Number of lines before the first one to read.
        end: Byte offset (uncompressed) of the first line to read.

    Raises:
        InputError: When the input ends before ``end``.
    """
    for item in _lines(source, max_line_bytes, line=line, end=end):
        if isinstance(item, Rejection):
            yield item
            continue
        yield object_row(*item)


def object_row(raw: bytes, line: int, end: int = 0) -> Row | Rejection:
    """The row of a JSON object, or why there is none."""
    try:
        return Row(_json_object(raw), line, end, excerpt_of(raw))
    except _UnusableError as error:
        return Rejection(line, end, error.reason, error.message, excerpt=excerpt_of(raw))


def _lines(
    source: RecordSource, max_line_bytes: int, *, line: int, end: int
) -> Iterator[tuple[bytes, int, int] | Rejection]:
    """Lines that are not blank, in order, each with its number and end."""
    if end:
        source.skip(end)
    while True:
        line += 1
        try:
            raw, length = _read_line(source, max_line_bytes)
        except DAMAGED as error:
            message = f"the {source.compression} data is cut off or damaged after line {line - 1}: {error}"
            yield Rejection(line, end, "damaged_input", message)
            return
        if not length:
            return
        end += length
        if raw is None:
            message = f"line has {length} bytes, the limit is {max_line_bytes}"
            yield Rejection(line, end, "line_too_long", message)
            continue
        if line == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield raw, line, end


def to_record(row: Row, record_format: RecordFormat) -> Record | Rejection:
    """The document that a row holds, or why there is none; takes the fields out of the row."""
    fields = row.fields
    record_id = ""
    try:
        if record_format.id_field:
            record_id = _take_id(fields, record_format)
        text = _take_text(fields, record_format, record_id)
    except _UnusableError as error:
        return Rejection(row.line, row.end, error.reason, error.message, id=error.record_id, excerpt=row.excerpt)
    record_id = record_id or _automatic_id(text, row.line, record_format)
    return Record(record_id, text, _payload(fields, record_format), row.line, row.end)


def _automatic_id(text: str, line: int, record_format: RecordFormat) -> str:
    if record_format.content_ids:
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{record_format.id_prefix}#{line}" if record_format.numbered else record_format.id_prefix


def _payload(fields: dict[str, object], record_format: RecordFormat) -> dict[str, object]:
    """The payload, title first; what is empty in a table is left out."""
    title = fields.get(record_format.title_field) if record_format.title_field else None
    wanted = record_format.payload_fields
    if wanted is None:
        used = {*record_format.text_fields, record_format.title_field}
        wanted = tuple(name for name in fields if name not in used)
    payload: dict[str, object] = {} if title in (None, "") else {"title": title}
    for name in wanted:
        if name in fields and not (name == "title" and "title" in payload):
            value = fields[name]
            if name in record_format.convert and isinstance(value, str):
                value = record_format.convert[name](value)
                if value is None:
                    continue
            payload[name] = value
    return payload


def excerpt_of(raw: bytes) -> str:
    """The beginning of a line, for people."""
    return raw[: 4 * EXCERPT_CHARS].decode("utf-8", "replace").rstrip("\r\n")[:EXCERPT_CHARS]


def _json_object(raw: bytes) -> dict[str, object]:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        message = f"invalid UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        raise _UnusableError("invalid_utf8", message) from error
    except json.JSONDecodeError as error:
        cut = "" if raw.endswith(b"\n") else "; the last line has no line end: it may be cut off"
        raise _UnusableError("invalid_json", f"invalid JSON: {error.msg} at column {error.colno}{cut}") from error
    except RecursionError as error:
        raise _UnusableError("invalid_json", "JSON is nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise _UnusableError("invalid_json", f"invalid JSON: {error}") from error
    if not isinstance(value, dict):
        raise _UnusableError("not_an_object", f"expected a JSON object, got {_type_name(value)}")
    return value


def _refuse_constant(name: str) -> object:
    raise _UnusableError("invalid_json", f"{name} is not JSON")


def _take_id(fields: dict[str, object], record_format: RecordFormat) -> str:
    name = record_format.id_field
    if name not in fields:
        raise _UnusableError("missing_id", f"field {name!r} is missing")
    value = fields.pop(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise _UnusableError("invalid_id", f"field {name!r} must be a string, got {_type_name(value)}")
    if not value:
        raise _UnusableError("invalid_id", f"field {name!r} is empty")
    num_bytes = len(value.encode("utf-8", "surrogatepass"))
    if record_format.max_id_bytes and num_bytes > record_format.max_id_bytes:
        message = f"id has {num_bytes} bytes, the limit is {record_format.max_id_bytes}"
        raise _UnusableError("id_too_long", message, record_id=value[:EXCERPT_CHARS])
    return value


def _take_text(fields: dict[str, object], record_format: RecordFormat, record_id: str) -> str:
    """The text, of one field or joined from those of several that are there."""
    names = record_format.text_fields
    several = len(names) > 1
    shown = " and ".join(map(repr, names))
    if not any(name in fields for name in names):
        fault = f"fields {shown} are missing" if several else f"field {shown} is missing"
        raise _UnusableError("missing_text", fault, record_id=record_id)
    parts = []
    for name in names:
        value = fields.get(name)
        if several and value is None:
            continue
        if not isinstance(value, str):
            message = f"field {name!r} must be a string, got {_type_name(value)}"
            raise _UnusableError("invalid_text", message, record_id=record_id)
        if value.strip():
            parts.append(value)
    if not parts:
        fault = f"fields {shown} have no text" if several else f"field {shown} has no text"
        raise _UnusableError("empty_text", fault, record_id=record_id)
    text = "\n\n".join(parts)
    num_bytes = len(text.encode("utf-8", "surrogatepass"))
    if record_format.max_text_bytes and num_bytes > record_format.max_text_bytes:
        message = f"text has {num_bytes} bytes, the limit is {record_format.max_text_bytes}"
        raise _UnusableError("text_too_long", message, record_id=record_id)
    return text


def _type_name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _read_line(source: RecordSource, limit: int) -> tuple[bytes | None, int]:
    """One line and its length; None for a line over the limit, whose bytes are dropped as they come."""
    piece = source.readline(limit + 1)
    if len(piece) <= limit or piece.endswith(b"\n"):
        return piece, len(piece)
    length = len(piece)
    while piece and not piece.endswith(b"\n"):
        piece = source.readline(1 << 18)
        length += len(piece)
    return None, length


Rows: TypeAlias = Iterator[Row | Rejection]


def _nobody(sentence: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        encoding: Of texts, as Python names it; empty: found out for each file.
        delimiter: Between the values of a row; empty: found out for each file.
        max_row_bytes: Longer rows are rejected without being held in memory.
        tell: Called with what a person should know about a file.
    """

    encoding: str = ""
    delimiter: str = ""
    max_row_bytes: int = MAX_ROW_BYTES
    tell: Callable[[str], None] = _nobody
