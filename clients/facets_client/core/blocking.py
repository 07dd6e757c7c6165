"""Calls and streams over a blocking channel, and work in background threads.

Ctrl-C raises in the main thread, at any point. Raised inside the code of gRPC or of a thread pool, it leaves a lock
held, and other threads wait for it forever. So all gRPC work for a stream is done in threads, and the main thread
only waits on a ``SimpleQueue``, which has no such lock.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.message import Message

from facets_client.core.channel import Connection
from facets_client.core.status import client_error
from facets_client.errors import DeadlineExceededError, UnavailableError

T = TypeVar("T")
AnyIterable: TypeAlias = Iterable[T]
_Start: TypeAlias = Callable[[Iterator[Message]], tuple[Iterable[Any], Callable[[], object]]]
_STEP_S = 0.5  # waits are short, because an interrupt does not end a wait on every system


class BlockingChannel:
    """A connection shared by any number of threads; it connects with the first call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel: grpc.Channel = connection.open_channel(grpc, retried=True)
        self._stream_channel: grpc.Channel = connection.open_channel(grpc, retried=False)

    def close(self) -> None:
        """Closes the connection and cancels running calls."""
        self._connection.is_closed = True
        self._stream_channel.close()
        self._channel.close()

    def call(self, request: Message) -> Any:
        """Makes a unary call of the rpc that takes this request."""
        method = self._connection.method(self._channel, type(request))
        timeout_s, metadata = self._connection.timeout_s(type(request)), self._connection.metadata()
        try:
            return method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise client_error(error, target=self._connection.target, timeout_s=timeout_s) from error

    def open(self, request: type[Message]) -> "BlockingStream":
        """Opens the stream that takes such requests."""
        metadata = self._connection.metadata()  # with the trace of the current thread

        def start(messages: Iterator[Message]) -> tuple[Iterable[Any], Callable[[], object]]:
            method = self._connection.method(self._stream_channel, request, is_stream=True)
            call = method(messages, metadata=metadata)
            return call, call.cancel

        return BlockingStream(start, timeout_s=self._connection.timeout_s(request))


class BlockingStream:
    """A bidirectional stream of either client; only ``receive`` and ``finish`` wait."""

    def __init__(self, start: _Start, *, timeout_s: float) -> None:
        """``start`` takes the messages to send; it returns the replies, and what cancels them."""
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._incoming: queue.SimpleQueue[Message | Exception | None] = queue.SimpleQueue()
        self._timeout_s = timeout_s
        self._replies: Any = None
        self._cancel_replies: Any = None
        self._is_closed = self._has_ended = False
        threading.Thread(target=self._run, args=(start,), name="facets-stream", daemon=True).start()

    def send(self, message: Message) -> None:
        """Queues a message; the caller bounds the queue by waiting for answers."""
        self._outgoing.put(message)

    def receive(self) -> Any:
        """The next message; UnavailableError at the end of the stream."""
        reply = self._read()
        if reply is None:
            text = "the server ended the stream before it answered everything"
            raise UnavailableError(grpc.StatusCode.UNAVAILABLE, text)
        return reply

    def finish(self) -> None:
        """Ends the stream normally, after the last answer."""
        self._outgoing.put(None)
        self._read()

    def close(self) -> None:
        """Cancels what is in progress; no effect after a normal end."""
        self._is_closed = True
        self._outgoing.put(None)
        if not self._has_ended:
            threading.Thread(target=self._cancel, name="facets-cancel", daemon=True).start()

    def _read(self) -> Message | None:
        """The next message; None at the end of the stream."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                item = self._incoming.get(timeout=max(0.0, min(_STEP_S, until - time.monotonic())))
                break
            except queue.Empty:
                if time.monotonic() >= until:
                    self.close()
                    text = f"no answer on the stream for {self._timeout_s:g} s"
                    raise DeadlineExceededError(grpc.StatusCode.DEADLINE_EXCEEDED, text) from None
        if isinstance(item, Message):
            return item
        self._incoming.put(item)  # the next caller gets the same answer
        if item is None:
            return None
        raise item

    def _cancel(self) -> None:
        cancel = self._cancel_replies  # looked up here, because the holder of the last reference runs its finalizer
        if cancel is not None:
            cancel()

    def _run(self, start: _Start) -> None:
        try:
            self._replies, self._cancel_replies = start(iter(self._outgoing.get, None))
            if self._is_closed:
                self._cancel_replies()
            for message in self._replies:
                self._incoming.put(message)
            self._incoming.put(None)
        except grpc.RpcError as error:
            failure = client_error(error)
            failure.__cause__ = error
            self._incoming.put(failure)
        except Exception as error:  # such as that of a closed channel
            self._incoming.put(error)
        finally:
            self._has_ended = True
            self._outgoing.put(None)  # ends the thread that reads it
            self._replies = self._cancel_replies = None  # released here, because their finalizer is gRPC's code


class Background(Generic[T]):
    """Work in a daemon thread, which does not delay the end of the program."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._ended: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(work,), name="facets-work", daemon=True).start()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._ended.put((work(), None))
        except BaseException as error:  # raised by result()
            self._ended.put((None, error))

    def result(self) -> T:
        """Returns the result of the work, once, or raises its exception."""
        while True:
            try:
                value, error = self._ended.get(timeout=_STEP_S)
                break
            except queue.Empty:
                continue
        if error is not None:
            raise error
        return cast(T, value)


def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """The result of work, done in this thread."""
    return work(*arguments)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of ``size`` items; the last one may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
