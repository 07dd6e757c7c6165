"""Records of a JSONL file, read in one pass and in bounded memory: plain, gzip, xz, or standard input.

A record is one line, a JSON object with an id, a text and whatever else belongs to the document.
What cannot be read becomes a ``Rejection`` with its line number and its reason, never an exception:
one bad line must not stop a million good ones.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from facets_client.core.source import DAMAGED, RecordSource

__all__ = [
    "JsonLine",
    "Record",
    "RecordFormat",
    "Rejection",
    "read_objects",
    "read_records",
]

EXCERPT_CHARS = 200
_MAX_LINE_BYTES = 8 * 2**20

_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordFormat:
    """How a line becomes a document.

    Attributes:
        id_field: Name of the field that holds the id (a string, or an integer, which becomes a string).
        text_field: Name of the field that holds the text.
        max_line_bytes: Longer lines are rejected without being held in memory.
        max_text_bytes: Longer texts (in UTF-8) are rejected; 0 leaves it to the server.
        max_id_bytes: Longer ids (in UTF-8) are rejected; 0 leaves it to the server.
    """

    id_field: str = "id"
    text_field: str = "text"
    max_line_bytes: int = _MAX_LINE_BYTES
    max_text_bytes: int = 0
    max_id_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A good line: the document it holds and where the line ends."""

    id: str
    text: str
    payload: dict[str, object]
    line: int  # 1-based
    end: int  # byte offset after the line, in the uncompressed stream


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line that holds no usable document, and why."""

    line: int  # 1-based
    end: int  # byte offset after the line, in the uncompressed stream
    reason: str  # stable word, e.g. invalid_json
    message: str  # what, expected, got
    id: str = ""  # when the line got that far
    excerpt: str = ""  # first characters of the line


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line that holds a JSON object, whatever is in it."""

    fields: dict[str, object]
    line: int  # 1-based
    end: int  # byte offset after the line, in the uncompressed stream
    excerpt: str  # first characters of the line


class _UnusableError(Exception):
    """Why a line holds no usable document."""

    def __init__(self, reason: str, message: str, *, record_id: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.record_id = record_id


def read_records(
    source: RecordSource, record_format: RecordFormat, *, line: int = 0, end: int = 0
) -> Iterator[Record | Rejection]:
    """Yields every line after (``line``, ``end``) as a record or a rejection, in order.

    Blank lines are passed over. An input that is cut off or damaged ends with one rejection
    (reason ``damaged_input``) that stands for everything that could not be read.

    Args:
        source: The input; moved to byte ``end`` when it is not 0.
        record_format: Names of the fields, limits.
        line: Number of lines before the first one to read.
        end: Byte offset (uncompressed) of the first line to read.

    Raises:
        InputError: When the input ends before ``end``.
    """
    for item in _lines(source, record_format.max_line_bytes, line=line, end=end):
        yield item if isinstance(item, Rejection) else _parse(item.raw, record_format, line=item.line, end=item.end)


def read_objects(
    source: RecordSource, *, max_line_bytes: int = _MAX_LINE_BYTES, line: int = 0, end: int = 0
) -> Iterator[JsonLine | Rejection]:
    """Yields every line after (``line``, ``end``) as a JSON object or a rejection, as ``read_records``.

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
        try:
            yield JsonLine(_json_object(item.raw), item.line, item.end, _excerpt(item.raw))
        except _UnusableError as error:
            yield Rejection(item.line, item.end, error.reason, error.message, excerpt=_excerpt(item.raw))


@dataclass(frozen=True, slots=True)
class _RawLine:
    raw: bytes
    line: int
    end: int


def _lines(source: RecordSource, max_line_bytes: int, *, line: int, end: int) -> Iterator[_RawLine | Rejection]:
    """Lines that are not blank, in order."""
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
            yield _RawLine(raw, line, end)


def _parse(raw: bytes, record_format: RecordFormat, *, line: int, end: int) -> Record | Rejection:
    """Turns one line into a record, or says why not."""
    try:
        fields = _json_object(raw)
        record_id = _take_id(fields, record_format)
        text = _take_text(fields, record_format, record_id)
    except _UnusableError as error:
        return Rejection(line, end, error.reason, error.message, id=error.record_id, excerpt=_excerpt(raw))
    return Record(record_id, text, fields, line, end)


def _excerpt(raw: bytes) -> str:
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
    name = record_format.text_field
    if name not in fields:
        raise _UnusableError("missing_text", f"field {name!r} is missing", record_id=record_id)
    value = fields.pop(name)
    if not isinstance(value, str):
        message = f"field {name!r} must be a string, got {_type_name(value)}"
        raise _UnusableError("invalid_text", message, record_id=record_id)
    if not value.strip():
        raise _UnusableError("empty_text", f"field {name!r} has no text", record_id=record_id)
    num_bytes = len(value.encode("utf-8", "surrogatepass"))
    if record_format.max_text_bytes and num_bytes > record_format.max_text_bytes:
        message = f"text has {num_bytes} bytes, the limit is {record_format.max_text_bytes}"
        raise _UnusableError("text_too_long", message, record_id=record_id)
    return value


def _type_name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _TYPE_NAMES[type(value)]


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
