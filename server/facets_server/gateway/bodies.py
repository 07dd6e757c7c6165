"""Reading what callers send, within bounds of size and time."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress

import grpc
from starlette.requests import ClientDisconnect, Request

from facets_server.gateway.failures import CallFailedError, bad_request

__all__ = ["BodyReader"]

_GZIP = 16 + zlib.MAX_WBITS
_DISCARD_S = 2.0  # a caller that still writes reads no answer


class BodyReader:
    """Reads bodies for every route."""

    def __init__(self, max_bytes: int, timeout_s: float, *, max_total_bytes: int) -> None:
        """Reads nothing yet.

        Args:
            max_bytes: Of a body, unpacked; of one line of a stream.
            max_total_bytes: Of all bodies that are being read; one alone may have more.
            timeout_s: How long a body may take, and how long a stream may be silent.
        """
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._max_total_bytes = max_total_bytes
        self._num_bytes = 0  # of all bodies that are being read

    async def body(self, request: Request) -> bytes:
        """The whole body, unpacked.

        Raises:
            CallFailedError: It is too large, too slow, one of too many, or packed in a way that we do not know.
            ClientDisconnect: The caller has gone.
        """
        unpack = self._unpacker(request)
        stream = request.stream()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout_s):
                async for part in stream:
                    parts.append(unpack(part))
                    size += len(parts[-1])
                    self._num_bytes += len(parts[-1])
                    if self._num_bytes > self._max_total_bytes and self._num_bytes > size:
                        raise self._too_many()
                    if size > self._max_bytes:
                        await _discard(stream)
                        raise self._too_large("the body")
        except TimeoutError as error:
            raise self._too_slow("the body") from error
        finally:
            self._num_bytes -= size
        unpack(b"", is_last=True)
        return b"".join(parts)

    async def lines(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The lines of a body, each as it comes; empty ones are left out.

        Raises:
            CallFailedError: One is too long, or nothing came for too long.
            ClientDisconnect: The caller has gone.
        """
        unpack = self._unpacker(request)
        stream = aiter(request.stream())
        rest = b""
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    part = await anext(stream)
            except StopAsyncIteration:
                break
            except TimeoutError as error:
                raise self._too_slow("the next line") from error
            *whole, rest = (rest + unpack(part)).split(b"\n")
            for line in whole:
                if line.strip():
                    yield self._checked_line(line)
            self._checked_line(rest)
        unpack(b"", is_last=True)
        if rest.strip():
            yield rest

    def _checked_line(self, line: bytes) -> bytes:
        if len(line) > self._max_bytes:
            raise self._too_large("a line")
        return line

    def _unpacker(self, request: Request) -> "_Plain | _Gzip":
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", ""):
            raise CallFailedError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"content-encoding {encoding[:40]!r} is not known, expected gzip or identity",
                status=415,
                headers={"Accept-Encoding": "gzip, identity"},
            )
        return _Gzip(self._max_bytes, lambda: self._too_large("the unpacked body")) if encoding == "gzip" else _Plain()

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
    def __call__(self, part: bytes, *, is_last: bool = False) -> bytes:
        return part


class _Gzip:
    """Unpacks part by part, never more than the limit at once."""

    def __init__(self, max_bytes: int, too_large: Callable[[], CallFailedError]) -> None:
        self._unpack = zlib.decompressobj(_GZIP)
        self._max_bytes = max_bytes
        self._too_large = too_large

    def __call__(self, part: bytes, *, is_last: bool = False) -> bytes:
        try:
            data = self._unpack.decompress(part, self._max_bytes + 1)
        except zlib.error as error:
            raise bad_request("the body is not gzip, as content-encoding says") from error
        if self._unpack.unconsumed_tail:
            raise self._too_large()
        if self._unpack.unused_data:
            raise bad_request("the body goes on after the end of gzip")
        if is_last and not self._unpack.eof:
            raise bad_request("the body ends in the middle of gzip")
        return data


async def _discard(stream: AsyncIterator[bytes]) -> None:
    """Reads on for a moment, so that the caller comes to reading the answer."""
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_S):
            async for _ in stream:
                pass
