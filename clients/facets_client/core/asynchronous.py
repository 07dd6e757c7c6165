"""Operations run with an asyncio channel, and a bidirectional stream with a timeout on every answer."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, TypeVar, cast

import grpc
import grpc.aio
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
from facets_client.errors import DeadlineExceededError, FacetsClientError, UnavailableError

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class AsyncRunner:
    """Runs operations in one event loop; the channel connects with the first call."""

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        timeout_s: float | None = None,
        api_key: str | None = None,
        tls: bool | TlsConfig = False,
    ) -> None:
        self._connection = Connection.of(target, timeout_s=timeout_s, api_key=api_key, tls=tls)
        self._opened: dict[bool, grpc.aio.Channel] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    @property
    def target(self) -> str:
        """Where the server is."""
        return self._connection.target

    async def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        for channel in self._opened.values():
            await channel.close()

    def _channel(self, *, retried: bool) -> grpc.aio.Channel:
        """A channel, made by its first call, because it belongs to the running event loop."""
        if retried not in self._opened:
            self._opened[retried] = open_channel(grpc.aio, self.target, self._connection.tls, retried=retried)
        return self._opened[retried]

    async def _run(self, operation: Operation[T]) -> T:
        """Runs a unary operation to its result."""
        try:
            command = next(operation)
            while True:
                try:
                    reply = await self._call(command)
                except FacetsClientError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    async def _run_stream(self, operation: StreamOperation[T]) -> AsyncIterator[T]:
        """Runs a stream operation, handing on what it emits."""
        source: AsyncIterator[Any] | None = None
        stream: AsyncStream | None = None
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
                        answer = await self._call(command)
                    elif isinstance(command, TakeInput):
                        source = source or _iterator(command.items)
                        answer = await _take(source, command.num_items)
                    elif isinstance(command, Pause):
                        await asyncio.sleep(command.seconds)
                    elif isinstance(command, Open):
                        stream = self._open(command.rpc)
                    elif not isinstance(command, Emit):
                        assert stream is not None
                        answer = await stream.step(command)
                except FacetsClientError as error:
                    failed = error
                if isinstance(command, Emit):
                    yield command.item
        finally:
            if stream:
                stream.close()

    async def _call(self, command: Call[Any, Any]) -> Message:
        """One unary call."""
        rpc = command.rpc
        method = self._channel(retried=True).unary_unary(rpc.path, **rpc.codecs)
        timeout_s = self._connection.timeout_of(rpc)
        try:
            return cast(
                Message, await method(command.request, timeout=timeout_s, metadata=self._connection.call_metadata())
            )
        except grpc.RpcError as error:
            raise client_error(error) from error

    def _open(self, rpc: Rpc[Any, Any]) -> "AsyncStream":
        method = self._channel(retried=False).stream_stream(rpc.path, **rpc.codecs)
        call = method(metadata=self._connection.call_metadata())
        return AsyncStream(call, timeout_s=self._connection.timeout_of(rpc))


class AsyncStream:
    """A bidirectional stream.

    Args:
        call: The opened stream of gRPC.
        timeout_s: Seconds to wait for each step.
    """

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any], *, timeout_s: float) -> None:
        self._call = call
        self._timeout_s = timeout_s

    async def step(self, command: Send | Receive | HalfClose) -> Message | None:
        """One step of an operation, within the timeout."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if isinstance(command, Send):
                    await self._call.write(command.message)
                elif isinstance(command, HalfClose):
                    await self._call.done_writing()
                else:
                    reply = await self._call.read()
                    return None if reply is grpc.aio.EOF else cast(Message, reply)
        except TimeoutError as error:
            raise DeadlineExceededError(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer on the stream for {self._timeout_s:g} s"
            ) from error
        except asyncio.InvalidStateError:
            return None  # the stream has ended; the next Receive says how
        except grpc.RpcError as error:
            if isinstance(command, Send) and _is_broken_write(error):
                raise UnavailableError(
                    grpc.StatusCode.UNAVAILABLE, "the connection broke while a message was sent"
                ) from error
            raise client_error(error) from error
        return None

    def close(self) -> None:
        """Cancels what is under way; nothing happens after a regular end."""
        self._call.cancel()


def _is_broken_write(error: grpc.RpcError) -> bool:
    """True when gRPC itself failed to send: a stream that ends meanwhile is reported as a local INTERNAL.

    The server's own INTERNAL always carries a rich status in its trailing metadata.
    """
    assert isinstance(error, grpc.aio.AioRpcError)
    return error.code() is grpc.StatusCode.INTERNAL and not error.trailing_metadata()


async def _iterator(items: Iterable[ItemT] | AsyncIterable[ItemT]) -> AsyncIterator[ItemT]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def _take(iterator: AsyncIterator[ItemT], num_items: int) -> list[ItemT]:
    """At most ``num_items`` from an asynchronous iterator."""
    items: list[ItemT] = []
    while len(items) < num_items:
        try:
            items.append(await anext(iterator))
        except StopAsyncIteration:
            break
    return items
