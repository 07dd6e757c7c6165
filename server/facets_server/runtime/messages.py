"""What a call brings: its metadata and its messages, read on the event loop, never without end.

``WaitLimit`` bounds how many callers are waited for at once, and how long. A call that has begun and says nothing
costs little, but not nothing: whoever has been waited for longest gives way to the next, so that silent calls cannot
keep others out, however many they are.

A stream is served by a thread: ``StreamBridge`` lets it read and write as if it were alone, ``read_ahead`` begins the
next requests while the answer to the first is still being made. Answers keep the order of the requests.
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import DecodeError

from facets.errors import InvalidInputError, NotReadyError, OverloadedError
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError

_RETRY_AFTER_S = 1.0
_END_S = 0.02
_MOMENT_S = 0.25  # what comes with its headers has come by then, on a machine that is not overloaded ten times

Context = Any  # grpc.aio.ServicerContext
ValueT = TypeVar("ValueT")
MessageT = TypeVar("MessageT")
Request = TypeVar("Request")
Work = TypeVar("Work")


class WaitLimit:
    """Bounds waits of one kind; used by one event loop."""

    def __init__(self, what: str, *, most: int, timeout_s: float | None, most_slow: int | None = None) -> None:
        """Nobody waits yet.

        Args:
            what: What is waited for, for messages: ``"a message"``.
            most: How many may wait at once.
            timeout_s: How long each may wait, in seconds; None: without end.
            most_slow: How many may wait for more than a moment; None: all of them.
        """
        self._what = what
        self._most = most
        self._timeout_s = timeout_s
        self._most_slow = most if most_slow is None else most_slow
        self._waiting: dict[asyncio.Task[object], float] = {}  # since when; the oldest first
        self._given_up: dict[asyncio.Task[object], Exception] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._slow_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, awaitable: Awaitable[ValueT]) -> ValueT:
        """Awaits on behalf of the running task.

        Raises:
            DeadlineExceededError: It took too long.
            OverloadedError: Others came, and this has waited longest.
        """
        task = asyncio.current_task()
        assert task is not None
        self._begin(task)
        try:
            return await awaitable
        except asyncio.CancelledError:
            error = self._given_up.get(task)
            if error is None:
                raise  # the caller has gone
            task.uncancel()
            raise error from None
        finally:
            self._waiting.pop(task, None)
            self._given_up.pop(task, None)

    def _begin(self, task: "asyncio.Task[object]") -> None:
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time()
        if len(self._waiting) > self._most:
            self._give_way(next(iter(self._waiting)), self._most)
        if self._most_slow < self._most and self._slow_timer is None:
            self._slow_timer = loop.call_later(_MOMENT_S, self._look_at_slow)
        if self._timeout_s is not None and self._timer is None:
            self._timer = loop.call_later(self._timeout_s, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for task, since in list(self._waiting.items()):
            if (until := since + (self._timeout_s or 0.0)) > loop.time():
                self._timer = loop.call_at(until, self._look)
                return
            self._give_up(task, DeadlineExceededError(f"{self._what} did not come within {self._timeout_s:g} s"))

    def _look_at_slow(self) -> None:
        loop = asyncio.get_running_loop()
        slow = [task for task, since in self._waiting.items() if since <= loop.time() - _MOMENT_S]
        for task in slow[: max(0, len(slow) - self._most_slow)]:
            self._give_way(task, self._most_slow)
        self._slow_timer = loop.call_later(_MOMENT_S, self._look_at_slow) if self._waiting else None

    def _give_way(self, task: "asyncio.Task[object]", most: int) -> None:
        message = f"the server waits for {self._what} of {most} other calls"
        self._give_up(task, OverloadedError(message, retry_after_s=_RETRY_AFTER_S))

    def _give_up(self, task: "asyncio.Task[object]", error: Exception) -> None:
        del self._waiting[task]
        self._given_up[task] = error
        task.cancel()


async def first_message(context: Context, waits: WaitLimit) -> bytes:
    """The first message of a call, as bytes.

    Raises:
        InvalidInputError: The caller has closed its side without one.
        DeadlineExceededError, OverloadedError: It did not come in time.
    """
    data = await next_message(context, waits)
    if data is None:
        raise InvalidInputError("the call carries no request message, expected one")
    return data


async def next_message(context: Context, waits: WaitLimit) -> bytes | None:
    """The next message of a call, as bytes; None when the caller has closed its side.

    Raises:
        DeadlineExceededError, OverloadedError: It did not come in time.
    """
    data = await waits.wait(context.read())
    if data is grpc.aio.EOF:
        await asyncio.sleep(_END_S)  # a call that was cancelled reads like this too, and then this raises
        return None
    return bytes(data)


def decoded(decode: Callable[[bytes], MessageT], data: bytes) -> MessageT:
    """Bytes as a message.

    Raises:
        InvalidInputError: They are none: the caller's fault, for which gRPC itself would answer INTERNAL.
    """
    try:
        return decode(data)
    except DecodeError as error:
        rule = "the request cannot be decoded: expected a protobuf message with UTF-8 strings"
        raise InvalidInputError(rule) from error


def metadata_of(context: Context, name: str) -> str:
    """The first value of a name in the metadata of a call; empty: none."""
    return next((str(value) for key, value in context.invocation_metadata() if key == name), "")


class StreamBridge:
    """Reads and writes the messages of one stream, as bytes."""

    def __init__(self, context: Any, call: CallContext, waits: WaitLimit) -> None:
        """Made on the loop.

        Args:
            context: Of grpc.aio.
            call: The stream; once it has ended, reading and writing fail.
            waits: Bounds the wait for a message.
        """
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._call = call
        self._waits = waits

    def messages(self, first: bytes | None, decode: Callable[[bytes], ValueT]) -> Iterator[ValueT]:
        """Every message of the caller until it has closed its side; for one thread at a time.

        Args:
            first: The one that has come already; None: there is none.
            decode: Bytes of a message -> the message.

        Raises:
            CallCancelledError: The call has ended.
            DeadlineExceededError: The caller was silent for too long.
        """
        data = first
        while data is not None:
            yield decode(data)
            data = self._on_loop(next_message(self._context, self._waits))
        if not self._call.is_active():
            raise CallCancelledError("the caller cancelled the stream")

    def send(self, data: bytes) -> None:
        """Sends a message; waits until the connection has taken it.

        Raises:
            CallCancelledError: The call has ended.
        """
        self._on_loop(self._context.write(data))

    def _on_loop(self, coroutine: Coroutine[Any, Any, ValueT]) -> ValueT:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except (grpc.aio.BaseError, CancelledError) as error:
            raise CallCancelledError("the caller cancelled the stream") from error


class _Reader(Generic[Request, Work]):
    """The thread that takes requests from gRPC and begins the work on them."""

    def __init__(
        self,
        requests: Iterator[Request],
        begin: Callable[[Request], Work],
        *,
        window: int,
        max_bytes: int,
        num_bytes: Callable[[Request], int],
    ) -> None:
        self.begun: queue.SimpleQueue[Work | Exception | None] = queue.SimpleQueue()
        self._requests = requests
        self._begin = begin
        self._window = window
        self._max_bytes = max_bytes
        self._num_bytes = num_bytes
        self._held: deque[int] = deque()  # bytes of the requests begun and not yet answered
        self._changed = threading.Condition()
        self._abandoned = False
        context = copy_context()  # who waits for the work is known there
        threading.Thread(target=context.run, args=(self._read,), name="stream-reader", daemon=True).start()

    def free_place(self) -> None:
        """The oldest request has been answered."""
        with self._changed:
            self._held.popleft()
            self._changed.notify()

    def drain(self) -> None:
        """What was begun before is still answered, then the stream ends."""
        self.begun.put(NotReadyError("the server is shutting down; what was answered is done"))

    def abandon(self) -> None:
        """Nobody takes the work any more."""
        with self._changed:
            self._abandoned = True
            self._changed.notify()

    def _may_read(self) -> bool:
        has_room = len(self._held) < self._window and sum(self._held) < self._max_bytes
        return self._abandoned or not self._held or has_room

    def _read(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(self._may_read)
                    if self._abandoned:
                        return
                request = next(self._requests)
                with self._changed:
                    self._held.append(self._num_bytes(request))
                self.begun.put(self._begin(request))
        except StopIteration:
            self.begun.put(None)
        except Exception as error:  # handed to the thread that answers, which maps it like any other error
            self.begun.put(error)


def read_ahead(
    requests: Iterator[Request],
    begin: Callable[[Request], Work],
    *,
    window: int,
    num_bytes: Callable[[Request], int],
    admission: Admission,
) -> Iterator[Work]:
    """Begins the work on up to ``window`` requests ahead and yields it in the order of the requests.

    Args:
        requests: From gRPC; ends when the caller has closed its side.
        begin: Starts the work on one request; runs on a thread of its own, one request after the other.
        window: Requests begun and not yet answered, >= 1.
        num_bytes: Of a request.
        admission: Says how many bytes these may have; when it drains, what was begun before is yielded and then the
            stream fails.

    Raises:
        NotReadyError: The server is shutting down.
        CallCancelledError: The caller cancelled.
        Exception: What ``begin`` raised, after the work before it was yielded.
    """
    reader = _Reader(requests, begin, window=window, max_bytes=admission.max_stream_bytes, num_bytes=num_bytes)
    try:
        with admission.on_drain(reader.drain):
            while (work := reader.begun.get()) is not None:
                if isinstance(work, Exception):
                    raise work
                yield work
                reader.free_place()
    finally:
        reader.abandon()
