"""Operations run with a blocking channel, and a bidirectional stream with a timeout on every answer."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

import grpc
from google.protobuf.message import Message

from facets_client.core.channel import Connection, Rpc, TlsConfig, channel_options, client_error, credentials
from facets_client.core.commands import (
    Call,
    Emit,
    HalfClose,
    Open,
    Operation,
    Receive,
    Send,
    StreamOperation,
    TakeInput,
)
from facets_client.errors import DeadlineExceededError, FacetsClientError

T = TypeVar("T")


class BlockingRunner:
    """Runs operations; the channel connects with the first call."""

    def __init__(self, target: str, *, timeout_s: float | None, api_key: str | None, tls: bool | TlsConfig) -> None:
        self._connection = Connection.of(target, timeout_s=timeout_s, api_key=api_key, tls=tls)
        options = channel_options(self._connection.tls)
        if self._connection.tls:
            self._channel = grpc.secure_channel(self.target, credentials(self._connection.tls), options)
        else:
            self._channel = grpc.insecure_channel(self.target, options)

    @property
    def target(self) -> str:
        """Where the server is."""
        return self._connection.target

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
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
        try:
            while True:
                try:
                    command = operation.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(command, Emit):
                    yield command.item
                elif isinstance(command, Call):
                    answer = self._call(command)
                elif isinstance(command, TakeInput):
                    source = source or iter(cast(Iterable[Any], command.items))
                    answer = list(islice(source, command.num_items))
                elif isinstance(command, Open):
                    stream = self._open(command.rpc)
                else:
                    assert stream is not None
                    answer = stream.step(command)
        finally:
            if stream:
                stream.close()

    def _call(self, command: Call[Any, Any]) -> Message:
        """One unary call."""
        rpc = command.rpc
        method = self._channel.unary_unary(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        timeout_s = self._connection.timeout_of(rpc)
        try:
            return cast(Message, method(command.request, timeout=timeout_s, metadata=self._connection.call_metadata()))
        except grpc.RpcError as error:
            raise client_error(error) from error

    def _open(self, rpc: Rpc[Any, Any]) -> "BlockingStream":
        method = self._channel.stream_stream(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        metadata = self._connection.call_metadata()
        return BlockingStream(
            lambda messages: method(messages, metadata=metadata), timeout_s=self._connection.timeout_of(rpc)
        )


class BlockingStream:
    """A bidirectional stream.

    Args:
        start: Opens the stream for an iterator of messages to send.
        timeout_s: Seconds to wait for each answer.
    """

    def __init__(self, start: Callable[[Iterator[Message]], Any], *, timeout_s: float) -> None:
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._timeout_s = timeout_s
        self._timed_out = False
        self._call = start(iter(self._outgoing.get, None))

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
        timer = threading.Timer(self._timeout_s, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            return cast(Message, next(self._call))
        except StopIteration:
            return None
        except grpc.RpcError as error:
            if self._timed_out:
                raise DeadlineExceededError(
                    grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer on the stream for {self._timeout_s:g} s"
                ) from error
            raise client_error(error) from error
        finally:
            timer.cancel()

    def close(self) -> None:
        """Cancels what is under way; nothing happens after a regular end."""
        self._outgoing.put(None)
        self._call.cancel()

    def _give_up(self) -> None:
        self._timed_out = True
        self._call.cancel()
