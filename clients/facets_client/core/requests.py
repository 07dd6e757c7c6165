"""Requests: built from the caller's arguments, and cut into parts within the server's limits."""

import math
import re
import warnings
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from facets_proto.codec import message_of
from facets_proto.v1 import filters_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from facets_client.errors import FacetsClientError, FieldViolation, OddFilterWarning
from facets_client.generated.types import Limits, Timings

MessageT = TypeVar("MessageT", bound=Message)
RecordT = TypeVar("RecordT")

# Space for a request's fields other than its items, and for the key and length of an item on the wire.
ENVELOPE_BYTES = 4_096
ITEM_BYTES = 16

_REFUSED = (TypeError, ValueError, OverflowError)
_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


def request_of(message_type: type[MessageT], **values: Any) -> MessageT:
    """A message with these fields; None leaves a field unset. TypeError or ValueError names a field that is wrong."""
    try:
        return message_of(message_type, **values)
    except _REFUSED as error:
        raise _named(error, message_type, values) from error


def request_from(message_type: type[MessageT], arguments: Mapping[str, Any], **others: Any) -> MessageT:
    """A message with the arguments of a method that are its fields, and with ``others``; raises as ``request_of``."""
    names = message_type.DESCRIPTOR.fields_by_name
    return request_of(message_type, **{name: arguments[name] for name in names if name in arguments} | others)


def record_message(record: object, message_type: type[MessageT], **values: Any) -> MessageT:
    """A record as a message; ``values`` replace fields of the record. Raises as ``request_of``."""
    fields = {name: getattr(record, name) for name in message_type.DESCRIPTOR.fields_by_name if hasattr(record, name)}
    return request_of(message_type, **fields | values)


def _named(error: Exception, message_type: type[Message], values: Mapping[str, Any]) -> Exception:
    """The error of the first value that does not fit its field: path of the field, and the rule."""
    for name, value in values.items():
        field = message_type.DESCRIPTOR.fields_by_name[name]
        is_list = field.is_repeated and isinstance(value, list | tuple)
        parts = {f"{name}[{position}]": [item] for position, item in enumerate(value)} if is_list else {name: value}
        for path, part in parts.items():
            try:
                message_of(message_type, **{name: part})
            except _REFUSED as fault:
                kind = TypeError if isinstance(fault, TypeError) else ValueError
                return kind(f"{path} {_rule(field, part[0] if is_list else part, fault)}")
    return error


def _rule(field: Any, value: Any, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"must be valid Unicode, got {error.object[:60]!r}"
    if field.message_type is not None and field.message_type.full_name == "google.protobuf.Struct":
        return f"must be a JSON object, got a value of another type ({error})"
    if "bad argument type" in str(error):
        return f"must be str, got {shown(value)}" if field.type == field.TYPE_STRING else "has a value of a wrong type"
    if isinstance(error, OverflowError):
        return f"must fit a double, got an integer of {int(value).bit_length()} bits"
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        if not isinstance(value, int):
            return f"must be an integer, got {shown(value)}"
        return f"must {f'be {low} to {high}' if low or value > high else 'not be negative'}, got {value}"
    inner = field.message_type
    if inner is not None and len(inner.fields) == 2 and not inner.oneofs and isinstance(value, str | tuple | list):
        return f"must be a pair, got {shown(value)}"
    return str(error)


def check_iterable(name: str, items: object) -> None:
    """Rejects one string where several items are expected, and anything that is not iterable."""
    if isinstance(items, str | bytes):
        raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [{items[:20]!r}]")
    if not isinstance(items, Iterable | AsyncIterable):
        raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [...]")


def shown(value: object) -> str:
    """A value as shown in an error, such as ``float nan`` or ``NoneType``."""
    kind, text = type(value).__name__, repr(value)
    return kind if value is None or len(text) > 20 else f"{kind} {text}"


def slices(sizes: Sequence[int], *, max_items: int, max_bytes: int) -> Iterator[slice]:
    """Cuts a sequence into runs within both limits (0: none); an item that exceeds ``max_bytes`` gets its own run."""
    budget = max_bytes - ENVELOPE_BYTES if max_bytes else 0
    start = used = 0
    for position, size in enumerate(sizes):
        full = (max_items and position - start == max_items) or (budget and used + size + ITEM_BYTES > budget)
        if full and position > start:
            yield slice(start, position)
            start, used = position, 0
        used += size + ITEM_BYTES
    if start < len(sizes):
        yield slice(start, len(sizes))


def wire_bytes(item: str | Message) -> int:
    """Bytes of an item of a repeated field."""
    if isinstance(item, Message):
        return item.ByteSize()
    return len(item) if item.isascii() else len(item.encode("utf-8", "surrogatepass"))


def least(*limits: int) -> int:
    """The smallest limit, where 0 means that there is none."""
    return min((limit for limit in limits if limit), default=0)


def max_together(limit: int, num_results: int) -> int:
    """Maximum items per request, from the limit on the results of all of them and the results of one; 0: no limit.

    ``num_results`` 0 is the server's default, taken to be at most the root of the limit.
    """
    return limit and max(1, limit // (num_results or math.isqrt(limit)))


def max_with_evidence(limits: Limits, request: Any) -> int:
    """Maximum queries, papers or ids per request with ``evidence`` and ``top_k``; 0: no limit."""
    return max_together(limits.max_evidence_hits, request.top_k) if request.evidence else 0


@contextmanager
def moved_indices(field: str, offset: int) -> Iterator[None]:
    """Changes ``texts[3]`` of a part to ``texts[259]`` of the whole input, in an error that the block raises."""

    def moved(path: str) -> str:
        return re.sub(rf"(?<![^.]){field}\[(\d+)\]", lambda step: f"{field}[{int(step[1]) + offset}]", path)

    try:
        yield
    except FacetsClientError as error:
        before = [rule.field for rule in error.field_violations]
        error.field_violations = tuple(FieldViolation(moved(path), text) for path, text in error.field_violations)
        # The server's message begins with the path of a field.
        if path := next((path for path in before if error.details.startswith(f"{path} ")), ""):
            error.details = moved(path) + error.details.removeprefix(path)
            error.args = (f"{error.code.name}: {error.details}",)
        raise


def join(replies: Sequence[RecordT], *, added: Sequence[str] = ()) -> RecordT:
    """Joins the replies to the parts of a call: lists, arrays, timings and ``added``; the rest is of the last reply."""
    if len(replies) == 1:
        return replies[0]
    values = {
        field.name: _joined([getattr(reply, field.name) for reply in replies], is_added=field.name in added)
        for field in fields(replies[0])  # type: ignore[arg-type]
    }
    return type(replies[0])(**values)


def _joined(values: Sequence[Any], *, is_added: bool) -> Any:
    last = values[-1]
    if isinstance(last, Timings):
        return Timings(*map(sum, zip(*map(astuple, values), strict=True)))
    if is_added:
        return sum(values)
    if isinstance(last, np.ndarray):
        return np.concatenate(values)
    return tuple(chain.from_iterable(values)) if isinstance(last, tuple) else last


def warn_of(odd: Iterable[filters_pb2.FilterWarning]) -> None:
    """Warns the caller of a filter that may find nothing, once per message."""
    for text in dict.fromkeys(warning.message for warning in odd):
        warnings.warn(text, OddFilterWarning, stacklevel=3)  # where the client's method is called
