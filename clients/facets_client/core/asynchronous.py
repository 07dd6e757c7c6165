"""Calls over an asyncio channel; ``core/blocking.py`` has the same for threads, and the streams of both clients."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from facets_client.core.blocking import BlockingChannel, BlockingStream
from facets_client.core.channel import Connection
from facets_client.core.status import client_error

ItemT = TypeVar("ItemT")
AnyIterable: TypeAlias = Iterable[ItemT] | AsyncIterable[ItemT]
in_thread = asyncio.to_thread


class AsyncChannel:
    """A connection used from one event loop; it connects with the first call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """Opened by the first call because it belongs to the running event loop."""
        channel: grpc.aio.Channel = self._connection.open_channel(grpc.aio, retried=True)
        return channel

    @cached_property
    def _streams(self) -> BlockingChannel:
        """For streams: gRPC's asyncio client can lose the status of one that ends during a write."""
        return BlockingChannel(self._connection)

    async def close(self) -> None:
        """Closes the connection and cancels running calls."""
        self._streams.close()  # marks the connection, too
        await self._channel.close()

    async def call(self, request: Message) -> Any:
        """Makes a unary call of the rpc that takes this request."""
        method = self._connection.method(self._channel, type(request))
        timeout_s, metadata = self._connection.timeout_s(type(request)), self._connection.metadata()
        try:
            return await method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise client_error(error, target=self._connection.target, timeout_s=timeout_s) from error

    def open(self, request: type[Message]) -> BlockingStream:
        """Opens the stream that takes such requests; wait for its answers ``in_thread``."""
        return self._streams.open(request)


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
