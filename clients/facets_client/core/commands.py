"""What an operation may ask of a client: calls and stream steps, as plain values.

An operation is a generator. It yields a command, is sent the answer, and returns its result
(``Operation``) or emits items on its way (``StreamOperation``). It neither blocks nor awaits, so that
the blocking and the asyncio client run the same one.
"""

from collections.abc import AsyncIterable, Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from facets_client.core.channel import RequestT, ResponseT, Rpc, retry_pauses, rpc_of
from facets_client.errors import FacetsClientError, FieldViolation, OverloadedError, UnavailableError

T = TypeVar("T")
# Input of a stream; the blocking client takes an iterable alone.
Items: TypeAlias = Iterable[T] | AsyncIterable[T]


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

    items: Items[Any]
    num_items: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds; nothing to answer."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Hand an item to the caller; nothing to answer."""

    item: T


# A unary operation returns its result; a stream operation emits items.
Operation = Generator[Call[Any, Any], Any, T]
Command = Call[Any, Any] | Open | Send | Receive | HalfClose | TakeInput | Pause
StreamOperation = Generator[Command | Emit[T], Any, None]


def call(request: RequestT, response: type[ResponseT]) -> Operation[ResponseT]:
    """One unary call of the rpc that takes this request."""
    reply: ResponseT = yield Call(rpc_of(type(request), response), request)
    return reply


def call_part(request: RequestT, response: type[ResponseT], *, field: str, offset: int) -> Operation[ResponseT]:
    """One unary call with a part of the caller's items: an error names items by their place in the whole."""
    try:
        return (yield from call(request, response))
    except FacetsClientError as error:
        move_indices(error, field, offset)
        raise


def call_pages(
    make: Callable[[str], RequestT],
    response: type[ResponseT],
    items: Callable[[ResponseT], tuple[Iterable[T], str]],
) -> Operation[list[T]]:
    """Everything of a list that comes page by page.

    ``make`` gives the request for the token of a page, empty first; ``items`` what is on it, and the next one's token.
    """
    found: list[T] = []
    token = ""
    while True:
        reply = yield from call(make(token), response)
        page, token = items(reply)
        found += page
        if not token:
            return found


def move_indices(error: FacetsClientError, field: str, offset: int) -> None:
    """Turns ``texts[3]`` of a part into ``texts[259]`` of the whole, in an error that is on its way."""
    before = error.field_violations
    error.field_violations = tuple(FieldViolation(_moved(one.field, field, offset), one.description) for one in before)
    for old, new in zip(before, error.field_violations, strict=True):
        # The sentence of the server is the path of a field and its rule.
        if error.details.startswith(f"{old.field} "):
            error.details = new.field + error.details.removeprefix(old.field)
            error.args = (f"{error.code.name}: {error.details}",)
            break


def _moved(path: str, field: str, offset: int) -> str:
    places = ((step, index_of(step, field)) for step in path.split("."))
    return ".".join(step if place is None else f"{field}[{place + offset}]" for step, place in places)


def index_of(step: str, field: str) -> int | None:
    """3 for the step ``texts[3]`` of a path, when the field is ``texts``."""
    number = step.removeprefix(f"{field}[").removesuffix("]")
    return int(number) if step == f"{field}[{number}]" and number.isdecimal() else None


def open_stream(rpc: Rpc[Any, Any], first: Message) -> Generator[Command, Any, Any]:
    """Opens a stream with its first message, and returns the answer; tried again as unary calls are."""
    pauses = retry_pauses()
    while True:
        yield Open(rpc)
        try:
            yield Send(first)
            return (yield from receive())
        except (UnavailableError, OverloadedError) as error:
            pause_s = next(pauses, None)
            # A server that is full for long, as its disk, does not say when to come again.
            if pause_s is None or (isinstance(error, OverloadedError) and error.retry_after_s is None):
                raise
            yield Pause(max(pause_s, error.retry_after_s or 0.0))


def receive() -> Generator[Receive, Any, Any]:
    """The next message of a stream that still owes one."""
    reply = yield Receive()
    if reply is None:
        raise UnavailableError(
            grpc.StatusCode.UNAVAILABLE, "the server ended the stream before everything was answered"
        )
    return reply
