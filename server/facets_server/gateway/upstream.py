"""Forwarding to the gRPC server: key, deadline, request id, trace and address of the caller travel as metadata."""

import asyncio
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import grpc
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.failures import bad_request, failure_of
from facets_server.runtime.keys import ADDRESS_METADATA, TOKEN_METADATA

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_FORWARDED = ("authorization", "traceparent", "tracestate")
_TIMEOUT = re.compile(r"[0-9]{1,10}")
MAX_METADATA_BYTES = 6144  # gRPC refuses calls with more than 8 KiB, our own and its framing among them
_PRINTABLE = re.compile(r"[\x20-\x7e]*")

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and how long he waits.

    Attributes:
        metadata: What is forwarded.
        timeout_s: Seconds until he gives up; None: never.
        request_id: His, or made here.
    """

    metadata: tuple[tuple[str, str], ...]
    timeout_s: float | None
    request_id: str


def caller_of(request: Request, *, timeout_s: float | None) -> Caller:
    """Reads the headers of a request.

    Args:
        request: Any request.
        timeout_s: Of callers that name no ``Connect-Timeout-Ms``; None: without end.

    Raises:
        CallFailedError: A header is not what it must be.
    """
    sent = request.headers.get("connect-timeout-ms")
    if sent is not None and not _TIMEOUT.fullmatch(sent):
        raise bad_request("header connect-timeout-ms is not a number of at most 10 digits")
    metadata = [("x-request-id", request_id_of(request)), (ADDRESS_METADATA, _address_of(request))]
    for name in _FORWARDED:
        value = request.headers.get(name)
        if value is not None:
            if not _PRINTABLE.fullmatch(value):
                raise bad_request(f"header {name} has a character that is not printable ASCII")
            metadata.append((name, value))
    if sum(map(len, chain.from_iterable(metadata))) > MAX_METADATA_BYTES:
        names = ", ".join(("x-request-id", *_FORWARDED))
        raise bad_request(f"headers {names} have more than {MAX_METADATA_BYTES} bytes together", status=431)
    return Caller(tuple(metadata), timeout_s if sent is None else int(sent) / 1000, request_id_of(request))


def request_id_of(request: Request) -> str:
    """The caller's ``X-Request-Id``, or one made once for each request."""
    state = request.scope.setdefault("state", {})
    if "request_id" not in state:
        sent = request.headers.get("x-request-id", "")
        state["request_id"] = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
    return str(state["request_id"])


def _address_of(request: Request) -> str:
    """The address without its port, in gRPC's form, so that a caller is one caller whichever way he comes."""
    host = request.client.host if request.client is not None else "unknown"
    return f"ipv6:%5B{host}%5D" if ":" in host else f"ipv4:{host}"


class Upstream:
    """The gRPC server behind the gateway; made and used on one event loop."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        """Makes no call yet.

        Args:
            channel: To the server; ``close`` closes it.
            token: Tells the server that this is its gateway; empty: it does not know.
        """
        self._channel = channel
        self._trust = ((TOKEN_METADATA, token),) if token else ()

    async def call(self, path: str, request: bytes, caller: Caller) -> bytes:
        """Calls a unary rpc.

        Raises:
            CallFailedError: It failed.
        """
        call: Any = _untyped(self._channel.unary_unary(path))(
            request, metadata=(*caller.metadata, *self._trust), timeout=caller.timeout_s, wait_for_ready=False
        )
        try:
            return bytes(await call)
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from error

    async def stream(self, path: str, requests: AsyncIterator[bytes], caller: Caller) -> AsyncIterator[bytes]:
        """Calls an rpc of streams; requests are taken as fast as the server reads them.

        Raises:
            CallFailedError: It failed.
        """
        call: Any = _untyped(self._channel.stream_stream(path))(
            metadata=(*caller.metadata, *self._trust), timeout=caller.timeout_s
        )
        # Written here: where gRPC takes the requests, it cancels a call that ends meanwhile, and its status is lost.
        writing = asyncio.ensure_future(_write_all(call, requests))
        try:
            while (reply := await _read(call)) is not grpc.aio.EOF:
                yield bytes(reply)
        except grpc.aio.AioRpcError as error:
            if writing.done() and not writing.cancelled() and (problem := writing.exception()) is not None:
                raise problem from error
            raise failure_of(error) from error
        finally:
            writing.cancel()
            call.cancel()

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()


async def _write_all(call: Any, requests: AsyncIterator[bytes]) -> None:
    try:
        await call.wait_for_connection()
        async for request in requests:
            # Not ``call.write``: one that comes too late puts "Internal error from Core" in the place of the status
            # that is on its way, for good.
            await call._cython_call.send_serialized_message(request)
        await call.done_writing()
    except (grpc.aio.BaseError, grpc.RpcError, asyncio.InvalidStateError):
        pass  # the call has ended: who reads it learns why
    except Exception:
        call.cancel()
        raise


async def _read(call: Any) -> Any:
    """The next reply; raises ``grpc.aio.AioRpcError`` with the status that the server gave."""
    task = asyncio.current_task()
    try:
        return await call.read()
    except asyncio.CancelledError:
        if task is not None and task.cancelling():
            raise
        nothing = grpc.aio.Metadata()  # the call was, not we
        raise grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, nothing, nothing) from None


def _untyped(multi_callable: object) -> Any:
    """Without serializers messages are bytes, which gRPC's types do not know."""
    return multi_callable


async def unless_gone(
    request: Request, work: Coroutine[Any, Any, ResultT], body_is_read: asyncio.Event | None = None
) -> ResultT:
    """Does work for a caller; stops when he goes.

    Args:
        request: His request.
        work: What is done.
        body_is_read: Set once the body has been read: before that the reader sees him go; None: it has been.

    Raises:
        ClientDisconnect: He has gone; the work is cancelled.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_until_gone(request, body_is_read))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()


async def _until_gone(request: Request, body_is_read: asyncio.Event | None) -> None:
    if body_is_read is not None:
        await body_is_read.wait()
    while (await request.receive())["type"] != "http.disconnect":
        pass


class RouteSet(ABC):
    """Routes that answer with calls of the gRPC server."""

    def __init__(self, upstream: Upstream, reader: BodyReader, *, timeout_s: float) -> None:
        """Makes no call yet.

        Args:
            upstream: The gRPC server.
            reader: Reads bodies.
            timeout_s: Deadline of calls that name none.
        """
        self._upstream = upstream
        self._reader = reader
        self._timeout_s = timeout_s

    @abstractmethod
    def routes(self) -> list[Route]:
        """The routes."""
