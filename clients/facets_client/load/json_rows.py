"""Rows of JSON lines, JSON arrays and JSON objects."""

import json
import re
from typing import TextIO

from facets_client.load.chats import chat_rows
from facets_client.load.pages import read_whole
from facets_client.load.rows import (
    MAX_ROW_BYTES,
    TEXT_NAMES,
    ReadOptions,
    Rejection,
    Row,
    Rows,
    has_undecodable,
    read_line,
    type_name,
)
from facets_client.load.source import DAMAGED, InputError, Source


def read_jsonl(source: Source, options: ReadOptions | None = None) -> Rows:
    """Rows of JSON lines. Blank lines are skipped; damaged data ends the rows with one rejection."""
    line = 0
    while True:
        line += 1
        try:
            raw = read_line(source.stream)
        except DAMAGED as error:
            message = f"the {source.compression} data is cut off or damaged after line {line - 1}: {error}"
            yield Rejection(line, "damaged_input", message)
            return
        if not raw:
            return
        if len(raw) > MAX_ROW_BYTES and not raw.endswith(b"\n"):
            yield Rejection(line, "line_too_long", f"line has too many bytes, the limit is {MAX_ROW_BYTES}")
            continue
        if line == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _json_row(raw, line)


def _json_row(raw: bytes, line: int) -> Row | Rejection:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"invalid UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        return Rejection(line, "invalid_utf8", message)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        cut = "" if raw.endswith(b"\n") else "; the last line has no line end: it may be cut off"
        return Rejection(line, "invalid_json", f"{_json_fault(error)}{cut}")
    return _object_row(value, line)


def _json_fault(error: Exception, start: int = 0) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON: {error.msg.removesuffix(' at')} at column {error.pos - start + 1}"
    # A number with thousands of digits raises a plain ValueError.
    return "JSON is nested too deeply" if isinstance(error, RecursionError) else f"invalid JSON: {error}"


def _object_row(value: object, line: int) -> Row | Rejection:
    if not isinstance(value, dict):
        message = f"expected a JSON object, got {type_name(value)}"
        return Rejection(line, "not_an_object", message)
    return Row(value, line)


def read_json(source: Source, options: ReadOptions) -> Rows:
    """Objects of a JSON array, of the only array of objects in an object, or of JSON lines; chats as conversations."""
    head = source.text_head("JSON").removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"["):
        return chat_rows(_array_rows(source.name, source.text("utf-8-sig")))
    first_line, _, others = head.decode("utf-8", "replace").partition("\n")
    following = others.lstrip()[:1]
    if not head.startswith(b"{"):
        if not head:
            return iter(())
        start = head[:20].decode("ascii", "replace")
        raise InputError(f"{source.name}: expected a JSON array or JSON lines, got {start!r}")
    try:
        json.loads(first_line)
        is_one_object = not following
    except (ValueError, RecursionError):
        is_one_object = following != "{" or _may_precede_object(first_line)
    return chat_rows(_object_rows(source)) if is_one_object else read_jsonl(source)


def _may_precede_object(line: str) -> bool:
    try:
        json.loads(line + "{")
    except (ValueError, RecursionError) as error:
        return getattr(error, "pos", 0) > len(line)
    return False


def _object_rows(source: Source) -> Rows:
    """The objects of the only array of objects in an object without a text; else the object itself."""
    item = _json_row(read_whole(source.stream, source.name).removeprefix(b"\xef\xbb\xbf"), 1)
    arrays = [
        value
        for value in (item.fields.values() if isinstance(item, Row) else ())
        if isinstance(value, list) and value and all(isinstance(element, dict) for element in value)
    ]
    if isinstance(item, Rejection) or len(arrays) != 1 or set(TEXT_NAMES).intersection(item.fields):
        yield item
        return
    for number, element in enumerate(arrays[0], start=1):
        yield Row(element, number)


_SEPARATORS = re.compile(r"[\s,]*")
_CHUNK_CHARS = 2**18
_MAX_ELEMENT_CHARS = 8 * MAX_ROW_BYTES  # held in memory during the search for the end of an element


def _array_rows(name: str, stream: TextIO) -> Rows:
    """The elements of a JSON array, read one at a time; InputError at a broken element."""
    decode = json.JSONDecoder().raw_decode
    damaged = f"{name}: the array is cut off or damaged, and what follows is not read"
    number = 0
    text = stream.read(_CHUNK_CHARS)
    position = text.index("[") + 1
    while True:
        position = _SEPARATORS.match(text, position).end()  # type: ignore[union-attr]  # it also matches nothing
        if position == len(text):
            text, position = stream.read(_CHUNK_CHARS), 0
            if not text:
                raise InputError(f"{damaged}: it does not end")
            continue
        if text[position] == "]":
            if text[position + 1 :].strip() or stream.read(_CHUNK_CHARS).strip():
                raise InputError(f"{damaged}: something follows its end")
            return
        try:
            value, end = decode(text, position)
        except (ValueError, RecursionError) as error:
            # The element may just be incomplete.
            rest = text[position:]
            more = stream.read(max(_CHUNK_CHARS, len(rest))) if len(rest) < _MAX_ELEMENT_CHARS else ""
            if not more or isinstance(error, RecursionError):
                raise InputError(f"{damaged}: record {number + 1}: {_json_fault(error, position)}") from error
            text, position = rest + more, 0
            continue
        number += 1
        raw, position = text[position:end], end
        if len(raw) > MAX_ROW_BYTES:
            rule = f"record has {len(raw)} characters, the limit is {MAX_ROW_BYTES}"
            yield Rejection(number, "row_too_long", rule)
        elif has_undecodable(raw):
            yield Rejection(number, "invalid_utf8", "the record is not UTF-8")
        else:
            yield _object_row(value, number)
