"""Operations run with a blocking channel, and a bidirectional stream with a timeout on every answer."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message

from facets_client.core.channel import DEFAULT_TARGET, Connection, Rpc, TlsConfig, client_error, open_channel
from facets_client.core.commands import (
    Call,
    Emit,
    HalfClose,
    Open,
    Operation,
    Pause,
    Receive,
    Send,
    StreamOperation,
    TakeInput,
)
from facets_client.errors import DeadlineExceededError, FacetsClientError

T = TypeVar("T")
_STEP_S = 0.5  # waits are short: not on every system an interrupt ends one


class BlockingRunner:
    """Runs operations; the channel connects with the first call."""

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        timeout_s: float | None = None,
        api_key: str | None = None,
        tls: bool | TlsConfig = False,
    ) -> None:
        self._connection = Connection.of(target, timeout_s=timeout_s, api_key=api_key, tls=tls)
        self._channel: grpc.Channel = open_channel(grpc, self.target, self._connection.tls, retried=True)
        self._stream_channel: grpc.Channel = open_channel(grpc, self.target, self._connection.tls, retried=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    @property
    def target(self) -> str:
        """Where the server is."""
        return self._connection.target

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        self._stream_channel.close()
        self._channel.close()

    def _run(self, operation: Operation[T]) -> T:
        """Runs a unary operation to its result."""
        try:
            command = next(operation)
            while True:
                try:
                    reply = self._call(command)
                except FacetsClientError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    def _run_stream(self, operation: StreamOperation[T]) -> Iterator[T]:
        """Runs a stream operation, handing on what it emits."""
        source: Iterator[Any] | None = None
        stream: BlockingStream | None = None
        answer: object = None
        failed: FacetsClientError | None = None
        try:
            while True:
                try:
                    command = operation.throw(failed) if failed else operation.send(answer)
                except StopIteration:
                    return
                answer = failed = None
                try:
                    if isinstance(command, Call):
                        answer = self._call(command)
                    elif isinstance(command, TakeInput):
                        source = source or iter(cast(Iterable[Any], command.items))
                        answer = list(islice(source, command.num_items))
                    elif isinstance(command, Pause):
                        time.sleep(command.seconds)
                    elif isinstance(command, Open):
                        stream = self._open(command.rpc)
                    elif not isinstance(command, Emit):
                        assert stream is not None
                        answer = stream.step(command)
                except FacetsClientError as error:
                    failed = error
                if isinstance(command, Emit):
                    yield command.item
        finally:
            if stream:
                stream.close()

    def _call(self, command: Call[Any, Any]) -> Message:
        """One unary call."""
        rpc = command.rpc
        method = self._channel.unary_unary(rpc.path, **rpc.codecs)
        timeout_s = self._connection.timeout_of(rpc)
        try:
            return cast(Message, method(command.request, timeout=timeout_s, metadata=self._connection.call_metadata()))
        except grpc.RpcError as error:
            raise client_error(error) from error

    def _open(self, rpc: Rpc[Any, Any]) -> "BlockingStream":
        metadata = self._connection.call_metadata()  # of the trace that this thread is in

        def start(messages: Iterator[Message]) -> Any:
            method = self._stream_channel.stream_stream(rpc.path, **rpc.codecs)
            return method(messages, metadata=metadata)

        return BlockingStream(start, timeout_s=self._connection.timeout_of(rpc))


class Background(Generic[T]):
    """Work in a thread of its own, which nobody waits for at the end of the program.

    Ctrl-C raises in the main thread, at any place. Raised within gRPC's code, or within that of a pool of threads, it
    leaves a lock behind for which others wait for ever; here the main thread only asks a queue that has none.

    Args:
        work: What is done.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._ended: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(work,), name="facets-work", daemon=True).start()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._ended.put((work(), None))
        except BaseException as error:  # for whoever waits
            self._ended.put((None, error))

    def result(self, on_wait: Callable[[float], None] = lambda waited_s: None) -> T:
        """What the work returned, once; raises what it raised.

        Args:
            on_wait: Told now and then how many seconds have passed.
        """
        started = time.monotonic()
        while True:
            try:
                found, error = self._ended.get(timeout=_STEP_S)
                break
            except queue.Empty:
                on_wait(time.monotonic() - started)
        if error is not None:
            raise error
        return cast(T, found)


class BlockingStream:
    """A bidirectional stream; all that gRPC does for it is done in threads of its own, see ``Background``.

    Args:
        start: Opens the stream for an iterator of messages to send.
        timeout_s: Seconds to wait for each answer.
    """

    def __init__(self, start: Callable[[Iterator[Message]], Any], *, timeout_s: float) -> None:
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._incoming: queue.SimpleQueue[Message | Exception | None] = queue.SimpleQueue()
        self._timeout_s = timeout_s
        self._call: Any = None
        self._is_closed = self._has_ended = False
        threading.Thread(target=self._read, args=(start,), name="facets-stream", daemon=True).start()

    def step(self, command: Send | Receive | HalfClose) -> Message | None:
        """One step of an operation."""
        if isinstance(command, Receive):
            return self.receive()
        if isinstance(command, Send):
            self.send(command.message)
        else:
            self.half_close()
        return None

    def send(self, message: Message) -> None:
        """Queues a message; whoever sends bounds the queue by waiting for answers."""
        self._outgoing.put(message)

    def half_close(self) -> None:
        """Says that nothing more will be sent."""
        self._outgoing.put(None)

    def receive(self) -> Message | None:
        """The next message; None at the end of the stream."""
        found = self._next(time.monotonic() + self._timeout_s)
        if isinstance(found, Message):
            return found
        self._incoming.put(found)  # whoever asks again is told the same
        if found is None:
            return None
        raise found

    def _next(self, until: float) -> Message | Exception | None:
        """What comes next, waited for in short steps."""
        while True:
            try:
                return self._incoming.get(timeout=max(0.0, min(_STEP_S, until - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= until:
                    self.close()
                    raise DeadlineExceededError(
                        grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer on the stream for {self._timeout_s:g} s"
                    ) from None

    def close(self) -> None:
        """Cancels what is under way; nothing happens after a regular end."""
        self._is_closed = True
        self._outgoing.put(None)
        if not self._has_ended:
            threading.Thread(target=self._cancel, name="facets-cancel", daemon=True).start()

    def _cancel(self) -> None:
        call = self._call  # looked up here: who holds it last runs its finalizer
        if call is not None:
            call.cancel()

    def _read(self, start: Callable[[Iterator[Message]], Any]) -> None:
        """Opens the stream and queues what comes: messages, then how it ended."""
        try:
            self._call = start(iter(self._outgoing.get, None))
            if self._is_closed:
                self._call.cancel()
            for message in self._call:
                self._incoming.put(message)
            self._incoming.put(None)
        except grpc.RpcError as error:
            failure = client_error(error)
            failure.__cause__ = error
            self._incoming.put(failure)
        except Exception as error:  # such as that of a closed channel: for whoever waits
            self._incoming.put(error)
        finally:
            self._has_ended = True
            self._call = None  # given up here: its finalizer is gRPC's code, too
