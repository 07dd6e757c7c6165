"""Calls that every task makes: single, in parts, or page by page.

Written for asyncio; ``clients/generate_client.py`` makes the blocking version in ``generated/`` from it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Self, TypeVar

from facets_proto.codec import from_message
from facets_proto.v1 import models_pb2
from google.protobuf.message import Message

from facets_client.core.asynchronous import AsyncChannel
from facets_client.core.channel import DEFAULT_TARGET, RETRY_PAUSES_S, Connection, TlsConfig
from facets_client.core.requests import least, moved_indices, slices, wire_bytes
from facets_client.errors import OverloadedError, UnavailableError
from facets_client.generated.types import Limits, Model

T = TypeVar("T")
MessageT = TypeVar("MessageT", bound=Message)


class AsyncCalls:
    """Base of the clients; see ``FacetsClient`` for the arguments."""

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        timeout_s: float | None = None,
        api_key: str | None = None,
        tls: bool | TlsConfig = False,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._connection = Connection(target, timeout_s=timeout_s, api_key=api_key, tls=tls, metadata=metadata)
        self._channel = AsyncChannel(self._connection)
        self._known_limits: Limits | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    @property
    def target(self) -> str:
        """Address of the server."""
        return self._connection.target

    async def close(self) -> None:
        """Closes the connection and cancels running calls."""
        await self._channel.close()

    async def _call(self, request: Message) -> Any:
        return await self._channel.call(request)

    async def _call_parts(
        self,
        request: Message,
        field: str,
        limit: str,
        max_items: Callable[[Limits], int] = lambda limits: 0,
        bytes_limit: str = "max_message_bytes",
    ) -> list[Any]:
        """The replies to a request in parts within limits on bytes or characters, items, and ``max_items``."""
        replies = []
        async for part, offset in self._cut(request, field, limit, max_items, bytes_limit):
            with moved_indices(field, offset):
                replies.append(await self._call(part))
        return replies

    async def _cut(
        self,
        message: MessageT,
        field: str,
        limit: str,
        max_items: Callable[[Limits], int] = lambda limits: 0,
        bytes_limit: str = "max_message_bytes",
        *,
        other_bytes: int = 0,
    ) -> AsyncIterator[tuple[MessageT, int]]:
        """Parts of a message, each with the position of its first item; see ``_call_parts``."""
        items = getattr(message, field)
        if not items:
            raise ValueError(f"{field} is empty, expected at least one")
        if len(items) == 1:  # the limits are not needed
            yield message, 0
            return
        limits = await self._limits()
        rest = type(message)()
        rest.CopyFrom(message)
        rest.ClearField(field)
        max_bytes = limits.max_message_bytes and max(1, limits.max_message_bytes - rest.ByteSize() - other_bytes)
        max_bytes = least(max_bytes, getattr(limits, bytes_limit))
        num_items = least(getattr(limits, limit), max_items(limits))
        for part in slices(list(map(wire_bytes, items)), max_items=num_items, max_bytes=max_bytes):
            request = type(message)()
            request.CopyFrom(rest)
            getattr(request, field).extend(items[part])
            yield request, part.start

    async def _pages(self, request: Any) -> AsyncIterator[Any]:
        while True:
            reply = await self._call(request)
            yield reply
            if not reply.next_page_token:
                return
            request.page_token = reply.next_page_token

    async def _limits(self) -> Limits:
        if self._known_limits is None:
            reply = await self._call(models_pb2.GetModelRequest())
            self._known_limits = from_message(reply.model, Model).limits
        return self._known_limits

    async def _retry(self, open_stream: Callable[[], Awaitable[T]]) -> T:
        """Opens a stream; retries a failed attempt as gRPC retries unary calls."""
        for pause_s in RETRY_PAUSES_S:
            try:
                return await open_stream()
            except (UnavailableError, OverloadedError) as error:
                # A server that is full for a long time, such as one with a full disk, does not say when to retry.
                if isinstance(error, OverloadedError) and error.retry_after_s is None:
                    raise
                await asyncio.sleep(max(pause_s * random.uniform(0.8, 1.2), error.retry_after_s or 0.0))
        return await open_stream()
