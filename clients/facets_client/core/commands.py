"""What an operation may ask of a client: calls and stream steps, as plain values.

An operation is a generator. It yields a command, is sent the answer, and returns its result
(``Operation``) or emits items on its way (``StreamOperation``). It neither blocks nor awaits, so that
the blocking and the asyncio client run the same one.
"""

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from facets_client.core.rpc import RequestT, ResponseT, Rpc
from facets_client.errors import FacetsClientError, FieldViolation, UnavailableError

T = TypeVar("T")
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT, ResponseT]):
    """Send the request, answer with the reply."""

    rpc: Rpc[RequestT, ResponseT]
    request: RequestT


@dataclass(frozen=True, slots=True)
class Open:
    """Open a stream; nothing to answer."""

    rpc: Rpc[Any, Any]


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message on the open stream; nothing to answer."""

    message: Message


@dataclass(frozen=True, slots=True)
class Receive:
    """Answer with the next message of the open stream, None at its end."""


@dataclass(frozen=True, slots=True)
class HalfClose:
    """Say that nothing more will be sent; nothing to answer."""


@dataclass(frozen=True, slots=True)
class TakeInput:
    """Answer with a list of the next items of the caller's input, at most this many; empty at its end."""

    num_items: int


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Hand an item to the caller; nothing to answer."""

    item: T


# A unary operation returns its result; a stream operation emits items.
Operation = Generator[Call[Any, Any], Any, T]
Command = Call[Any, Any] | Open | Send | Receive | HalfClose | TakeInput
StreamOperation = Generator[Command | Emit[T], Any, None]


def call(rpc: Rpc[RequestT, ResponseT], request: RequestT) -> Operation[ResponseT]:
    """One unary call."""
    reply: ResponseT = yield Call(rpc, request)
    return reply


def call_part(rpc: Rpc[RequestT, ResponseT], request: RequestT, *, field: str, offset: int) -> Operation[ResponseT]:
    """One unary call with a part of the caller's items: an error names items by their place in the whole."""
    try:
        return (yield from call(rpc, request))
    except FacetsClientError as error:
        move_indices(error, field, offset)
        raise


def move_indices(error: FacetsClientError, field: str, offset: int) -> None:
    """Turns ``texts[3]`` of a part into ``texts[259]`` of the whole, in an error that is on its way."""
    if not offset:
        return

    def moved(text: str) -> str:
        pattern = rf"\b{field}\[(\d+)\]"
        return re.sub(pattern, lambda found: f"{field}[{int(found[1]) + offset}]", text)

    error.details = moved(error.details)
    error.args = (f"{error.code.name}: {error.details}",)
    error.field_violations = tuple(
        FieldViolation(moved(violation.field), moved(violation.description)) for violation in error.field_violations
    )


def check_sequence(name: str, items: object) -> None:
    """Refuses one string where many are expected.

    Raises:
        TypeError: With the call that was meant.
    """
    if isinstance(items, str | bytes):
        raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [{items[:20]!r}]")


def receive() -> Generator[Receive, Any, Any]:
    """The next message of a stream that still owes one."""
    reply = yield Receive()
    if reply is None:
        raise UnavailableError(
            grpc.StatusCode.UNAVAILABLE, "the server ended the stream before everything was answered"
        )
    return reply


def take(iterator: Iterable[ItemT], num_items: int) -> list[ItemT]:
    """At most ``num_items`` from an iterator."""
    items: list[ItemT] = []
    for item in iterator:
        items.append(item)
        if len(items) == num_items:
            break
    return items
