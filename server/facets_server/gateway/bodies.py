"""Reading what callers send, within bounds of size and time."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import TypeVar

import grpc
from starlette.requests import ClientDisconnect, Request

from facets_server.gateway.failures import CallFailedError, bad_request, own_failure
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.keys import Keys

ResultT = TypeVar("ResultT")

_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 16_384  # unpacked at a time
_LARGE_BYTES = 65_536  # of a body; from here on its conversion would hold up others
MAX_CONVERSIONS = 2  # large bodies that are converted at a time: what they become takes many times their room
_MOST_EMPTY_LINES = 10_000  # one after the other
_NEED_NO_KEY = frozenset({"/grpc.health.v1.Health/Check"})
_DISCARD_S = 2.0  # a caller that still writes reads no answer


class BodyReader:
    """Reads bodies for every route: of callers with a key first, then within bounds."""

    def __init__(self, max_bytes: int, timeout_s: float, *, max_total_bytes: int, keys: Keys | None = None) -> None:
        """Reads nothing yet.

        Args:
            max_bytes: Of a body, unpacked; of one line of a stream.
            max_total_bytes: Of all bodies that are being read or converted; one alone may have more.
            timeout_s: How long a body may take, and how long a stream may be silent.
            keys: Who may send one; None: the server behind will say.
        """
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._max_total_bytes = max_total_bytes
        self._keys = keys
        self._num_bytes = 0  # of all bodies that are being read or converted
        self._converters = ThreadPoolExecutor(MAX_CONVERSIONS, thread_name_prefix="convert")

    def check_key(self, request: Request) -> None:
        """Refuses who has no key, before anything of him is read.

        Raises:
            CallFailedError: He has none, or one that nobody knows.
        """
        if self._keys is None or request.url.path in _NEED_NO_KEY:
            return
        try:
            self._keys.find(request.headers.get("authorization", ""))
        except UnauthenticatedError as error:
            raise own_failure(error) from error

    async def body(self, request: Request, convert: Callable[[bytes], ResultT]) -> ResultT:
        """The whole body, unpacked and converted: on the loop what is small, beside it what would hold others up.

        Raises:
            CallFailedError: It is too large, too slow, one of too many, packed in a way that we do not know, or sent
                without a key; what ``convert`` raises.
            ClientDisconnect: The caller has gone.
        """
        self.check_key(request)
        unpack, stream = self._unpacker(request), request.stream()
        data, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._timeout_s):
                async for part in stream:
                    for piece in unpack(part):
                        data += piece
                        size += len(piece)
                        self._hold(len(piece), own=size)
                        if size > self._max_bytes:
                            await _discard(stream)
                            raise self._too_large(f"the {unpack.name}")
            unpack.check_end()
            return await self._converted(convert, data)
        except TimeoutError as error:
            raise self._too_slow("the body") from error
        finally:
            self._num_bytes -= size

    async def lines(self, request: Request, convert: Callable[[bytes], ResultT]) -> AsyncGenerator[ResultT, None]:
        """The lines of a body, each as it comes, converted; empty ones are left out.

        Raises:
            CallFailedError: One is too long, or nothing came for too long; as for ``body``.
            ClientDisconnect: The caller has gone.
        """
        async with aclosing(self._raw_lines(request)) as lines:
            async for line in lines:
                yield await self._converted(convert, line)

    async def _raw_lines(self, request: Request) -> AsyncGenerator[bytearray, None]:
        """The lines; each is held until the next one is asked for."""
        unpack, line, num_empty = self._unpacker(request), bytearray(), 0
        try:
            async for part in self._parts(request):
                for piece in unpack(part):
                    *endings, rest = piece.split(b"\n")
                    for ending in endings:
                        self._add(line, ending)
                        if line.strip():
                            yield line
                            num_empty = -1
                        num_empty += 1
                        if num_empty > _MOST_EMPTY_LINES:
                            raise bad_request(f"more than {_MOST_EMPTY_LINES} lines one after the other are empty")
                        self._num_bytes -= len(line)
                        line = bytearray()
                    self._add(line, rest)
                    await asyncio.sleep(0)  # a small part may unpack to much
            unpack.check_end()
            if line.strip():
                yield line
        finally:
            self._num_bytes -= len(line)

    def _add(self, line: bytearray, part: bytes) -> None:
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

    async def _converted(self, convert: Callable[[bytes], ResultT], data: bytearray) -> ResultT:
        if len(data) < _LARGE_BYTES:
            return convert(bytes(data))
        return await asyncio.get_running_loop().run_in_executor(self._converters, lambda: convert(bytes(data)))

    def _hold(self, num_bytes: int, *, own: int) -> None:
        self._num_bytes += num_bytes
        if self._num_bytes > self._max_total_bytes and self._num_bytes > own:
            raise self._too_many()

    def _unpacker(self, request: Request) -> "_Plain | _Gzip":
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", ""):
            raise CallFailedError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"content-encoding {encoding[:40]!r} is not known, expected gzip or identity",
                status=415,
                headers={"Accept-Encoding": "gzip, identity"},
            )
        return _Gzip() if encoding == "gzip" else _Plain()

    def _too_large(self, what: str) -> CallFailedError:
        message = f"{what} has more than {self._max_bytes} bytes, which is the limit"
        return CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, status=413, headers={"Connection": "close"})

    def _too_many(self) -> CallFailedError:
        message = f"other requests are being read, with more than {self._max_total_bytes} bytes in all"
        headers = {"Connection": "close", "Retry-After": "1"}
        return CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, headers=headers)

    def _too_slow(self, what: str) -> CallFailedError:
        message = f"{what} did not come within {self._timeout_s:g} s"
        return CallFailedError(grpc.StatusCode.DEADLINE_EXCEEDED, message, status=408, headers={"Connection": "close"})


class _Plain:
    name = "body"

    def __call__(self, part: bytes) -> Iterator[bytes]:
        yield part

    def check_end(self) -> None:
        """There is nothing to check."""


class _Gzip:
    """Unpacks piece by piece."""

    name = "unpacked body"

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(_GZIP)

    def __call__(self, part: bytes) -> Iterator[bytes]:
        while part:
            try:
                piece = self._unpack.decompress(part, _PIECE_BYTES)
            except zlib.error as error:
                raise bad_request("the body is not gzip, as content-encoding says") from error
            if self._unpack.unused_data:
                raise bad_request("the body goes on after the end of gzip")
            part = self._unpack.unconsumed_tail
            yield piece

    def check_end(self) -> None:
        if not self._unpack.eof:
            raise bad_request("the body ends in the middle of gzip")


async def _discard(stream: AsyncIterator[bytes]) -> None:
    """Reads on for a moment, so that the caller comes to reading the answer."""
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_S):
            async for _ in stream:
                pass
