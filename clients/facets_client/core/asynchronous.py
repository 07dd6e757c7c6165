"""Calls and streams over an asyncio channel; ``core/blocking.py`` has the same for threads."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from facets_client.core.channel import Connection
from facets_client.core.status import client_error
from facets_client.errors import DeadlineExceededError, UnavailableError

ItemT = TypeVar("ItemT")
AnyIterable: TypeAlias = Iterable[ItemT] | AsyncIterable[ItemT]


class AsyncChannel:
    """A connection used from one event loop; it connects with the first call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._opened: dict[bool, grpc.aio.Channel] = {}

    async def close(self) -> None:
        """Closes the connection and cancels running calls."""
        for channel in self._opened.values():
            await channel.close()

    def _channel(self, *, retried: bool) -> grpc.aio.Channel:
        """The channel, opened by the first call because it belongs to the running event loop."""
        if retried not in self._opened:
            self._opened[retried] = self._connection.open_channel(grpc.aio, retried=retried)
        return self._opened[retried]

    async def call(self, request: Message) -> Any:
        """Makes a unary call of the rpc that takes this request."""
        method = self._connection.method(self._channel(retried=True), type(request))
        timeout_s, metadata = self._connection.timeout_s(type(request)), self._connection.metadata()
        try:
            return await method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise client_error(error, target=self._connection.target, timeout_s=timeout_s) from error

    def open(self, request: type[Message]) -> "AsyncStream":
        """Opens the stream that takes such requests."""
        method = self._connection.method(self._channel(retried=False), request, is_stream=True)
        call = method(metadata=self._connection.metadata())
        return AsyncStream(call, timeout_s=self._connection.timeout_s(request))


class AsyncStream:
    """A bidirectional stream."""

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any], *, timeout_s: float) -> None:
        self._call = call
        self._timeout_s = timeout_s

    async def send(self, message: Message) -> None:
        """Sends a message. After the end of the stream it does nothing, and ``receive`` raises."""
        async with self._step(is_write=True):
            await self._call.write(message)

    async def half_close(self) -> None:
        """Tells the server that no further message follows."""
        async with self._step(is_write=True):
            await self._call.done_writing()

    async def receive(self) -> Any:
        """The next message; UnavailableError at the end of the stream."""
        reply = await self._read()
        if reply is grpc.aio.EOF:
            text = "the server ended the stream before it answered everything"
            raise UnavailableError(grpc.StatusCode.UNAVAILABLE, text)
        return reply

    async def finish(self) -> None:
        """Ends the stream normally, after the last answer."""
        await self.half_close()
        await self._read()

    async def close(self) -> None:
        """Cancels what is in progress; no effect after a normal end."""
        self._call.cancel()

    async def _read(self) -> Any:
        async with self._step(is_write=False):
            return await self._call.read()

    @asynccontextmanager
    async def _step(self, *, is_write: bool) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            text = f"no answer on the stream for {self._timeout_s:g} s"
            raise DeadlineExceededError(grpc.StatusCode.DEADLINE_EXCEEDED, text) from error
        except asyncio.InvalidStateError:  # a write after the end of the stream
            if not is_write:
                raise
        except grpc.aio.AioRpcError as error:
            # If a stream ends during a write, gRPC itself reports INTERNAL, without trailing metadata.
            if is_write and error.code() is grpc.StatusCode.INTERNAL and not error.trailing_metadata():
                text = "the connection broke while a message was sent"
                raise UnavailableError(grpc.StatusCode.UNAVAILABLE, text) from error
            raise client_error(error) from error


in_thread = asyncio.to_thread


async def batched(items: AnyIterable[ItemT], size: int) -> AsyncIterator[list[ItemT]]:
    """Lists of ``size`` items of a synchronous or asynchronous iterable; the last one may be shorter."""
    if not isinstance(items, AsyncIterable):
        remaining = iter(items)
        while batch := list(islice(remaining, size)):
            yield batch
        return
    batch = []
    async for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
