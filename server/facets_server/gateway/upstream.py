"""Forwards calls to the gRPC server, with the caller's key, deadline, request id, trace and address as metadata."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple

import grpc
from facets_client import AsyncFacetsClient
from facets_client.core.channel import rpcs
from google.protobuf.message import Message
from starlette.requests import Request

from facets_server.gateway.errors import REQUEST_ID, CallError, bad_request
from facets_server.gateway.request_body import BodyReader, caller_address
from facets_server.runtime.keys import ADDRESS_METADATA

_TIMEOUT_MS = re.compile(r"[0-9]{1,10}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_FORWARDED = ("authorization", "traceparent", "tracestate")
MAX_METADATA_BYTES = 6144  # gRPC rejects calls with more than 8 KiB, its own metadata included
_MAX_STREAMS = 256  # each takes a thread; the server admits fewer streams
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1000),  # finds a restarted server soon
]


class Caller(NamedTuple):
    """The client that a call is made for: metadata to forward, and its deadline in seconds (None: no deadline)."""

    metadata: tuple[tuple[str, str], ...]
    timeout_s: float | None


def caller_of(request: Request, *, timeout_s: float | None) -> Caller:
    """Reads the caller from the headers; ``timeout_s`` is the deadline without a ``Connect-Timeout-Ms`` header."""
    timeout_ms = request.headers.get("connect-timeout-ms")
    if timeout_ms is not None and not _TIMEOUT_MS.fullmatch(timeout_ms):
        raise bad_request("header connect-timeout-ms must be a number of at most 10 digits")
    metadata = [("x-request-id", REQUEST_ID.get()), (ADDRESS_METADATA, caller_address(request))]
    metadata += [(name, request.headers[name]) for name in _FORWARDED if name in request.headers]
    for name, value in metadata:
        if not _PRINTABLE.fullmatch(value):
            raise bad_request(f"header {name} has a character that is not printable ASCII")
    if sum(map(len, chain.from_iterable(metadata))) > MAX_METADATA_BYTES:
        names = ", ".join(("x-request-id", *_FORWARDED))
        raise bad_request(f"headers {names} have more than {MAX_METADATA_BYTES} bytes in total", http_status=431)
    return Caller(tuple(metadata), timeout_s if timeout_ms is None else int(timeout_ms) / 1000)


class Upstream:
    """Connection to the gRPC server, made with the first call; its errors are ``CallError``. Use it on one event loop.

    The server believes the client addresses in the calls because they come over its own socket.
    """

    def __init__(self, target: str) -> None:
        self._unary_channel: Any = grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS)
        self._stream_channel: Any = grpc.insecure_channel(target, options=_CHANNEL_OPTIONS)
        self._target = target
        self._threads = ThreadPoolExecutor(_MAX_STREAMS, thread_name_prefix="stream")

    async def call(self, path: str, request: bytes, caller: Caller) -> bytes:
        """Calls a unary rpc."""
        metadata = grpc.aio.Metadata(*caller.metadata)
        rpc = self._unary_channel.unary_unary(path)
        try:
            return bytes(await rpc(request, metadata=metadata, timeout=caller.timeout_s))
        except grpc.RpcError as error:
            raise CallError.of_grpc(error) from error

    def client(self, caller: Caller) -> AsyncFacetsClient:
        """A client that calls for ``caller``."""
        return AsyncFacetsClient(self._target, metadata=caller.metadata)

    async def stream(self, path: str, requests: AsyncIterator[bytes], caller: Caller) -> AsyncIterator[bytes]:
        """Calls a streaming rpc in threads: gRPC's asyncio client can lose the status if a call ends in a write."""
        loop = asyncio.get_running_loop()

        async def next_request() -> bytes | None:
            return await anext(requests, None)

        def sent() -> Iterator[bytes]:  # in the thread of gRPC
            while (request := asyncio.run_coroutine_threadsafe(next_request(), loop).result()) is not None:
                yield request

        rpc = self._stream_channel.stream_stream(path)
        call = rpc(sent(), metadata=caller.metadata, timeout=caller.timeout_s)
        try:
            while (reply := await loop.run_in_executor(self._threads, next, call, None)) is not None:
                yield reply
        except grpc.RpcError as error:
            raise CallError.of_grpc(error) from error
        finally:
            call.cancel()

    async def close(self) -> None:
        """Closes the channels."""
        await self._unary_channel.close()
        self._stream_channel.close()


class Backend(NamedTuple):
    """What all routes share; ``timeout_s`` is the deadline of calls without a ``Connect-Timeout-Ms`` header."""

    upstream: Upstream
    reader: BodyReader
    timeout_s: float
    vendor_models: bool = False

    async def call(self, request: Request, path: str, message: Message) -> Any:
        """Calls a unary rpc with a message and returns its reply message; else as ``forward``."""
        return rpcs()[path].reply.FromString(await self.forward(request, path, message.SerializeToString()))

    async def forward(self, request: Request, path: str, message: bytes) -> bytes:
        """Calls a unary rpc with a serialized message for the client of ``request``."""
        return await self.upstream.call(path, message, caller_of(request, timeout_s=self.timeout_s))
