"""Reads request bodies within limits of size and time, and checks the caller's key first."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import grpc
from starlette.requests import Request

from facets_server.gateway.errors import CallError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.fair_queue import FairLock
from facets_server.runtime.keys import Key, Keys

ResultT = TypeVar("ResultT")

_LARGE_BYTES = 65_536  # larger bodies are converted in a thread, so that they do not block the event loop
_TIMED_BYTES = 2**20  # of an upload; a slow sender has `timeout_s` for each
MAX_CONVERSIONS = 2  # at a time: a converted body takes many times the memory of its bytes
_PUBLIC_PATHS = {"/grpc.health.v1.Health/Check": 4096}  # they need no key; the limit of their bodies
_DISCARD_S, _SILENCE_S = 2.0, 0.3
_CLOSE = {"Connection": "close"}


def caller_address(request: Request) -> str:
    """The client's address without port, in gRPC's format: fair sharing then sees one caller over HTTP and gRPC."""
    host = request.client.host if request.client is not None else "unknown"
    return f"ipv6:%5B{host}%5D" if ":" in host else f"ipv4:{host}"


class BodyReader:
    """Reads bodies for all routes.

    ``max_bytes`` and ``timeout_s`` limit a body or one line of a stream. ``max_total_bytes`` limits all
    bodies being read or converted; a single body may exceed it. Without ``keys``, the gRPC server alone checks them.
    """

    def __init__(self, max_bytes: int, timeout_s: float, *, max_total_bytes: int, keys: Keys | None = None) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._max_total_bytes = max_total_bytes
        self._keys = keys
        self._num_bytes = 0  # of all bodies being read or converted
        self._converters = ThreadPoolExecutor(MAX_CONVERSIONS, thread_name_prefix="convert")
        self._turns = FairLock(MAX_CONVERSIONS, num_reserved=1)

    def check_key(self, request: Request) -> Key:
        """The key of a request, checked before its body is read; one of its address if none is needed."""
        if self._keys is None or request.url.path in _PUBLIC_PATHS:
            return Key(caller_address(request))
        try:
            return self._keys.find(request.headers.get("authorization", ""))
        except UnauthenticatedError as error:
            raise CallError.of_facets(error) from error

    async def body(self, request: Request, convert: Callable[[bytes], ResultT]) -> ResultT:
        """Checks the key, then reads and converts the body; CallError if one is invalid or too large."""
        self.check_key(request)
        stream, body = request.stream(), bytearray()
        pieces, until = _plain(request, stream), self._until()
        max_bytes = _PUBLIC_PATHS.get(request.url.path, self._max_bytes)
        try:
            while (piece := await self._next(pieces, until, "body")) is not None:
                self._extend(body, piece, name="body", max_bytes=max_bytes)
            return await self.converted(request, convert, body)
        except CallError:
            await discard(stream)
            raise
        finally:
            self._num_bytes -= len(body)

    async def pieces(self, request: Request, body: AsyncIterator[bytes], max_bytes: int) -> AsyncGenerator[bytes, None]:
        """Yields the pieces of a body of any length up to a limit; each MiB has its own time to arrive."""
        if int(request.headers.get("content-length", 0)) > max_bytes:
            raise _too_large("file", max_bytes)
        pieces, until = _plain(request, body), self._until()
        num_bytes = num_timed = 0
        while (piece := await self._next(pieces, until, "next MiB of the file")) is not None:
            num_bytes += len(piece)
            if num_bytes > max_bytes:
                raise _too_large("file", max_bytes)
            if num_bytes > num_timed + _TIMED_BYTES:
                num_timed, until = num_bytes, self._until()
            yield piece

    async def lines(self, request: Request, convert: Callable[[bytes], ResultT]) -> AsyncGenerator[ResultT, None]:
        """Yields the converted lines of a body as they arrive; skips empty ones. Errors as ``body``."""
        pieces, line = _plain(request, request.stream()), bytearray()
        try:
            while (piece := await self._next(pieces, self._until(), "next line")) is not None:
                *endings, rest = piece.split(b"\n")
                for ending in endings:
                    self._extend(line, ending, name="line", max_bytes=self._max_bytes)
                    if line.strip():
                        yield await self.converted(request, convert, line)
                    self._num_bytes -= len(line)
                    line = bytearray()
                self._extend(line, rest, name="line", max_bytes=self._max_bytes)
            if line.strip():
                yield await self.converted(request, convert, line)
        finally:
            self._num_bytes -= len(line)

    async def converted(
        self, request: Request, convert: Callable[[bytes], ResultT], data: bytes | bytearray
    ) -> ResultT:
        """Converts small bodies on the event loop and large ones in a thread, for which callers take turns."""
        if len(data) < _LARGE_BYTES:
            return convert(bytes(data))
        key = self.check_key(request)
        call = CallContext(caller=key.caller, weight=key.weight)
        with await self._turns.acquired(call):
            return await asyncio.get_running_loop().run_in_executor(self._converters, lambda: convert(bytes(data)))

    async def _next(self, pieces: AsyncIterator[bytes], until: float, name: str) -> bytes | None:
        try:
            async with asyncio.timeout_at(until):
                return await anext(pieces, None)
        except TimeoutError as error:
            message = f"the {name} did not arrive within {self._timeout_s:g} s"
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, message, http_status=408, headers=_CLOSE) from error

    def _extend(self, held: bytearray, piece: bytes, *, name: str, max_bytes: int) -> None:
        held += piece
        self._num_bytes += len(piece)
        if len(held) > max_bytes:
            raise _too_large(name, max_bytes)
        if self._num_bytes > self._max_total_bytes and self._num_bytes > len(held):
            message = f"bodies of other requests hold {self._max_total_bytes} bytes already: try again"
            headers = {**_CLOSE, "Retry-After": "1"}
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, headers=headers)

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s


def _too_large(name: str, max_bytes: int) -> CallError:
    message = f"the {name} is larger than the limit of {max_bytes} bytes"
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, http_status=413, headers=_CLOSE)


async def _plain(request: Request, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a body, which must not be compressed."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        message = f"content-encoding is {encoding[:40]!r}, expected identity"
        headers = {"Accept-Encoding": "identity"}
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, message, http_status=415, headers=headers)
    async for part in stream:
        yield part


async def discard(stream: AsyncIterator[bytes]) -> None:
    """Takes what a refused client is still sending, for a short time: it reads no reply before it has sent all."""
    with suppress(TimeoutError, StopAsyncIteration):
        async with asyncio.timeout(_DISCARD_S):
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    await anext(stream)
