"""Reads request bodies within limits of size and time, and checks the caller's key first."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import TypeVar

import grpc
from starlette.requests import ClientDisconnect, Request

from facets_server.gateway.errors import CallError, bad_request
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.keys import Keys

ResultT = TypeVar("ResultT")

_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 16_384  # decompressed at a time
_LARGE_BYTES = 65_536  # larger bodies are converted in a thread, so that they do not block the event loop
MAX_CONVERSIONS = 2  # at a time: a converted body takes many times the memory of its bytes
_MAX_EMPTY_LINES = 10_000  # in a row
_PUBLIC_PATHS = frozenset({"/grpc.health.v1.Health/Check"})
_DISCARD_S = 2.0  # a client does not read the reply while it is still sending


class BodyReader:
    """Reads bodies for all routes."""

    def __init__(self, max_bytes: int, timeout_s: float, *, max_total_bytes: int, keys: Keys | None = None) -> None:
        """Creates a reader that all routes share.

        Args:
            max_bytes: Limit of one decompressed body, or of one line of a stream.
            timeout_s: Limit of the time a body may take, and of the time between two lines of a stream.
            max_total_bytes: Limit of the total of all bodies being read or converted. A single body may exceed it.
            keys: Keys that may send a body; None: the gRPC server checks them.
        """
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._max_total_bytes = max_total_bytes
        self._keys = keys
        self._num_bytes = 0  # of all bodies being read or converted
        self._converters = ThreadPoolExecutor(MAX_CONVERSIONS, thread_name_prefix="convert")

    def check_key(self, request: Request) -> None:
        """Rejects unauthenticated requests before the body is read.

        Raises:
            CallError: The request has no key, or an unknown one.
        """
        if self._keys is None or request.url.path in _PUBLIC_PATHS:
            return
        try:
            self._keys.find(request.headers.get("authorization", ""))
        except UnauthenticatedError as error:
            raise CallError.of_facets(error) from error

    async def body(self, request: Request, convert: Callable[[bytes], ResultT]) -> ResultT:
        """Reads, decompresses and converts the whole body.

        Raises:
            CallError: The body is too large, too slow, one of too many, in an unknown encoding, or sent without a
                valid key; or ``convert`` raised it.
            ClientDisconnect: The client is gone.
        """
        self.check_key(request)
        decompress, stream = _decompressor(request), request.stream()
        body, num_bytes = bytearray(), 0
        try:
            async with asyncio.timeout(self._timeout_s):
                async for part in stream:
                    for piece in decompress(part):
                        body += piece
                        num_bytes += len(piece)
                        self._hold(len(piece), own=num_bytes)
                        if num_bytes > self._max_bytes:
                            await _discard(stream)
                            raise self._too_large(f"the {decompress.name}")
            decompress.finish()
            return await self.converted(convert, body)
        except TimeoutError as error:
            raise self._too_slow("the body") from error
        finally:
            self._num_bytes -= num_bytes

    async def lines(self, request: Request, convert: Callable[[bytes], ResultT]) -> AsyncGenerator[ResultT, None]:
        """Yields the converted lines of a body as they arrive; skips empty ones.

        Raises:
            CallError: A line is too long, or the next one takes too long; else as ``body``.
            ClientDisconnect: The client is gone.
        """
        async with aclosing(self._raw_lines(request)) as lines:
            async for line in lines:
                yield await self.converted(convert, line)

    async def converted(self, convert: Callable[[bytes], ResultT], data: bytes | bytearray) -> ResultT:
        """Converts small bodies on the event loop and large ones in a thread."""
        if len(data) < _LARGE_BYTES:
            return convert(bytes(data))
        return await asyncio.get_running_loop().run_in_executor(self._converters, lambda: convert(bytes(data)))

    async def _raw_lines(self, request: Request) -> AsyncGenerator[bytearray, None]:
        """Yields lines; each counts towards the held bytes until the next one is requested."""
        decompress, line, num_empty = _decompressor(request), bytearray(), 0
        try:
            async for part in self._parts(request):
                for piece in decompress(part):
                    *endings, rest = piece.split(b"\n")
                    for ending in endings:
                        self._extend(line, ending)
                        if line.strip():
                            yield line
                            num_empty = 0
                        else:
                            num_empty += 1
                        if num_empty > _MAX_EMPTY_LINES:
                            raise bad_request(f"the body has more than {_MAX_EMPTY_LINES} empty lines in a row")
                        self._num_bytes -= len(line)
                        line = bytearray()
                    self._extend(line, rest)
                    await asyncio.sleep(0)  # a small part may decompress to many pieces
            decompress.finish()
            if line.strip():
                yield line
        finally:
            self._num_bytes -= len(line)

    def _extend(self, line: bytearray, part: bytes) -> None:
        line += part
        self._hold(len(part), own=len(line))
        if len(line) > self._max_bytes:
            raise self._too_large("a line")

    async def _parts(self, request: Request) -> AsyncIterator[bytes]:
        stream = aiter(request.stream())
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    part = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise self._too_slow("the next line") from error
            yield part

    def _hold(self, num_bytes: int, *, own: int) -> None:
        self._num_bytes += num_bytes
        if self._num_bytes > self._max_total_bytes and self._num_bytes > own:
            message = f"bodies of other requests hold {self._max_total_bytes} bytes already: try again"
            headers = {"Connection": "close", "Retry-After": "1"}
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, headers=headers)

    def _too_large(self, name: str) -> CallError:
        message = f"{name} is larger than the limit of {self._max_bytes} bytes"
        headers = {"Connection": "close"}
        return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, http_status=413, headers=headers)

    def _too_slow(self, name: str) -> CallError:
        message = f"{name} did not arrive within {self._timeout_s:g} s"
        headers = {"Connection": "close"}
        return CallError(grpc.StatusCode.DEADLINE_EXCEEDED, message, http_status=408, headers=headers)


class _Identity:
    name = "body"

    def __call__(self, part: bytes) -> Iterator[bytes]:
        yield part

    def finish(self) -> None:
        """Does nothing: there is nothing to check."""


class _Gzip:
    """Decompresses piece by piece."""

    name = "decompressed body"

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)

    def __call__(self, part: bytes) -> Iterator[bytes]:
        while part:
            try:
                piece = self._stream.decompress(part, _PIECE_BYTES)
            except zlib.error as error:
                raise bad_request("the body is not gzip, although content-encoding says so") from error
            if self._stream.unused_data:
                raise bad_request("the body has bytes after the end of its gzip stream")
            part = self._stream.unconsumed_tail
            yield piece

    def finish(self) -> None:
        if not self._stream.eof:
            raise bad_request("the gzip stream of the body is incomplete")


def _decompressor(request: Request) -> _Identity | _Gzip:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "gzip":
        return _Gzip()
    if encoding in ("identity", ""):
        return _Identity()
    raise CallError(
        grpc.StatusCode.UNIMPLEMENTED,
        f"content-encoding is {encoding[:40]!r}, expected gzip or identity",
        http_status=415,
        headers={"Accept-Encoding": "gzip, identity"},
    )


async def _discard(stream: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_S):
            async for _ in stream:
                pass
