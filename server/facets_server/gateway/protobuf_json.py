"""Messages of the protos as JSON or protobuf bodies."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from google.protobuf import json_format
from google.protobuf.message import Message

from facets.index.config import MAX_PAYLOAD_DEPTH
from facets_server.gateway.errors import bad_request
from facets_server.runtime.config import MAX_VALUES

_SEPARATORS = (b",", b"[", b"{", b":")
_PIECE_BYTES = 2**18
_UNKNOWN_FIELD = re.compile(
    r'has no field named "(.*?)" at "\w+\.?([^"]*)"\.?\s+Available Fields\(.*?\): "\[(.*?)\]"', re.DOTALL
)
_FIELD, _PLACE = re.compile(r"Failed to parse (?:(\w+)|[\[{].{0,200}?) field: "), re.compile(r"\w+\.([\w.\[\]]+)")
_REWORDED = {  # how a message of protobuf about a field begins, and ours
    "Message too deep": f"is nested deeper than {MAX_PAYLOAD_DEPTH} levels, the limit",
    "null is not allowed": "is null, expected a value",
    "repeated field": "must be a list",
    "Expected true or false": "must be true or false",
    "expected string": "must be a string",
    "(invalid literal for int|int\\(|Couldn't parse integer|Bool value)": "must be a whole number",
    "(could not convert string to float|float\\(|Couldn't parse float)": "must be a number",
    "('\\w+' object is not iterable|Struct must be|unhashable|list indices)": "must be an object",
}
_MAX_MESSAGE_CHARS = 300  # protobuf's messages quote the caller's input


def parse_json(body: bytes) -> Any:
    """Parses strict JSON: UTF-8, unique names, finite numbers, a limited number of values; else raises a CallError."""
    _check_num_values(body)
    try:
        values = json.loads(body.decode("utf-8"), object_pairs_hook=_unique_names, parse_constant=_reject_constant)
        if b"\\u" in body:  # only escapes can make unpaired surrogates
            json_line(values)
        return values
    except UnicodeEncodeError as error:
        raise bad_request("a string has an unpaired surrogate, expected Unicode text") from error
    except UnicodeDecodeError as error:
        raise bad_request(f"the body is not UTF-8: byte {error.start} is invalid") from error
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise bad_request(f"the body is not JSON: {error.msg.lower().removesuffix(' at')} at {position}") from error
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {str(error).partition(';')[0]}") from error  # then a hint for Python
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def _check_num_values(body: bytes) -> None:
    """Bounds memory: a value of one or two bytes takes a hundred bytes as a Python object."""
    num_values = is_in_string = 0
    rest = b""
    for start in range(0, len(body), _PIECE_BYTES):  # pieces, because another thread waits for the GIL
        piece = (rest + body[start : start + _PIECE_BYTES]).replace(b"\\\\", b"")
        rest = b"\\" if piece.endswith(b"\\") else b""  # begins an escape that the next piece ends
        parts = piece.replace(b'\\"', b"").split(b'"')
        outside_strings = b"".join(parts[is_in_string::2])
        num_values += sum(map(outside_strings.count, _SEPARATORS))
        if num_values >= MAX_VALUES:
            raise bad_request(f"the body has more than {MAX_VALUES} values, the limit")
        is_in_string ^= len(parts) % 2 == 0


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an object has the same name twice")
    return values


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def json_to_proto(body: bytes, message_type: type[Message]) -> bytes:
    """Converts a body in protobuf's JSON format to a serialized message; raises a CallError if it does not fit."""
    values = parse_json(body)
    if not isinstance(values, dict):
        raise bad_request(f"the body is not a JSON object, expected the fields of {message_type.DESCRIPTOR.name}")
    try:
        return json_format.ParseDict(values, message_type()).SerializeToString()
    except (json_format.ParseError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise bad_request(_explained(error, values, message_type)) from error


def proto_to_json(data: bytes, message_type: type[Message]) -> bytes:
    """Converts a serialized message to one line of JSON."""
    return json_line(json_format.MessageToDict(message_type.FromString(data)))


def json_line(value: object) -> bytes:
    """A value as one line of compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _explained(error: Exception, values: dict[str, Any], message_type: type[Message]) -> str:
    """Protobuf's message, shortened; for an unknown field, lists the valid ones."""
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    found = _UNKNOWN_FIELD.search(str(error))
    if found is None:
        *_, reason = _FIELD.split(str(error))
        for begin, words in _REWORDED.items():
            if re.match(begin, reason):
                place = _PLACE.fullmatch(reason.rstrip(".").rpartition(" at ")[2])
                path = place[1] if place else _path_of(filter(None, _FIELD.findall(str(error))), values, message_type)
                return f"{path} {words}"[:_MAX_MESSAGE_CHARS]
        return f"the body is invalid: {str(error).partition(chr(10))[0].strip().rstrip('.')}"[:_MAX_MESSAGE_CHARS]
    name, path, listed = found.groups()
    value: Any = values
    with suppress(LookupError, ValueError, TypeError):  # protobuf and the caller may spell a name differently
        for step in re.findall(r"\w+", path):
            value = value[int(step) if isinstance(value, list) else step]
    problem = f"has no field {name[:80]!r}, expected"
    if isinstance(value, str | list):
        problem = f"is a {'string' if isinstance(value, str) else 'list'}, expected an object with"
    return f"{path or 'the body'} {problem} some of {listed.replace(chr(39), '')}"[:_MAX_MESSAGE_CHARS]


def _path_of(fields: Iterable[str], values: dict[str, Any], message_type: type[Message]) -> str:
    """The names of nested fields as a path; protobuf does not say which element of a list is wrong."""
    first, *rest = dict.fromkeys(fields)
    items = values.get(first)
    for i, item in enumerate(items if isinstance(items, list) else []):
        try:
            json_format.ParseDict({first: [item]}, message_type())
        except (json_format.ParseError, ValueError, TypeError):
            return ".".join([f"{first}[{i}]", *rest])
    return ".".join([first, *rest])
