"""Every rpc over HTTP: unary ones as the Connect protocol has them, streams as a line of JSON a message."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial

import grpc
from google.protobuf.message import Message
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from facets_server.gateway.failures import CallFailedError, bad_request, connect_error, headers_of, http_status_of
from facets_server.gateway.transcoding import Rpc, json_of, message_of_json, message_of_proto, rpcs
from facets_server.gateway.upstream import RouteSet, caller_of, unless_gone

JSON, PROTO, LINES = "application/json", "application/proto", "application/x-ndjson"

_LARGE_BYTES = 65_536  # of a body; from here on its conversion would hold up others


class RpcRoutes(RouteSet):
    """The routes of all rpcs."""

    def routes(self) -> list[Route]:
        """One a rpc."""
        return [
            Route(path, partial(self._stream if rpc.is_stream else self._unary, rpc), methods=["POST"])
            for path, rpc in rpcs().items()
        ]

    async def _unary(self, rpc: Rpc, request: Request) -> Response:
        content_type = content_type_of(request, JSON, PROTO)
        _check_version(request)
        caller = caller_of(request, timeout_s=self._timeout_s)
        sent = await self._reader.body(request, bytes if content_type == PROTO else partial(_packed, kind=rpc.request))
        reply = await unless_gone(request, self._upstream.call(rpc.path, sent, caller))
        content = reply if content_type == PROTO else await converted(_unpacked, reply, rpc.reply)
        return Response(content, media_type=content_type)

    async def _stream(self, rpc: Rpc, request: Request) -> Response:
        content_type_of(request, LINES)
        self._reader.check_key(request)
        caller = caller_of(request, timeout_s=None)
        body = _Body()
        replies = self._upstream.stream(rpc.path, self._requests(rpc, request, body), caller)
        lines = _lines(rpc, replies, body)
        first = await unless_gone(request, _next(lines), body.is_read)  # what fails at once has a status of its own
        return _LinesResponse(_rest(first, lines), body)

    async def _requests(self, rpc: Rpc, request: Request, body: "_Body") -> AsyncIterator[bytes]:
        """Lines as requests; a wrong one ends them, and those before it are still answered."""
        try:
            async with aclosing(self._reader.lines(request, partial(_packed, kind=rpc.request))) as requests:
                async for message in requests:
                    yield message
        except CallFailedError as problem:
            body.problem = problem
        except ClientDisconnect:
            pass  # whoever waits for the end of the connection sees it
        finally:
            body.is_read.set()


class _Body:
    """The body of a stream.

    Attributes:
        is_read: Set once nothing more is read of it; from then on the connection may be watched for its end.
        problem: What was wrong with it.
    """

    def __init__(self) -> None:
        self.is_read = asyncio.Event()
        self.problem: CallFailedError | None = None


class _LinesResponse(Response):
    """Sends lines as they come; Starlette's own response would read the body meanwhile, to see whether it ends."""

    media_type = LINES

    def __init__(self, lines: AsyncIterator[bytes], body: _Body) -> None:
        self.status_code = 200
        self.background = None
        self._lines = lines
        self._body = body
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends everything, unless the caller goes."""
        await unless_gone(Request(scope, receive), self._send(send), self._body.is_read)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _next(lines: AsyncIterator[bytes]) -> bytes:
    return await anext(lines, b"")


async def _lines(rpc: Rpc, replies: AsyncIterator[bytes], body: _Body) -> AsyncIterator[bytes]:
    """Replies as lines; what was wrong with the body comes behind them."""
    try:
        async for reply in replies:
            yield await converted(_unpacked, reply, rpc.reply) + b"\n"
    except CallFailedError as failure:
        raise (body.problem or failure) from failure
    if body.problem is not None:
        raise body.problem


async def _rest(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    try:
        async for line in lines:
            yield line
    except CallFailedError as failure:
        error = {"error": connect_error(failure)}
        yield json.dumps(error, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def failed(failure: CallFailedError) -> Response:
    """The reply to a call that has failed, as Connect has it."""
    return JSONResponse(connect_error(failure), status_code=http_status_of(failure), headers=headers_of(failure))


def internal_error() -> Response:
    """The reply when the mistake is ours."""
    return failed(CallFailedError(grpc.StatusCode.INTERNAL, "internal error"))


def content_type_of(request: Request, *accepted: str) -> str:
    """The content type of a request, without its parameters.

    Raises:
        CallFailedError: It is none of the accepted ones: a web page elsewhere could send others unasked.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in accepted:
        expected = " or ".join(accepted)
        raise bad_request(
            f"content-type is {sent[:60] or 'not given'}, expected {expected}", status=415, Accept_Post=expected
        )
    return sent


async def converted(convert: Callable[[bytes, type[Message]], bytes], data: bytes, kind: type[Message]) -> bytes:
    """Converts on the loop what is small, beside it what would hold others up."""
    if len(data) < _LARGE_BYTES:
        return convert(data, kind)
    return await asyncio.to_thread(convert, data, kind)


def _packed(body: bytes, kind: type[Message]) -> bytes:
    return message_of_json(body, kind).SerializeToString()


def _unpacked(reply: bytes, kind: type[Message]) -> bytes:
    return json_of(message_of_proto(reply, kind))


def _check_version(request: Request) -> None:
    version = request.headers.get("connect-protocol-version", "1")
    if version != "1":
        raise bad_request(f"connect-protocol-version is {version[:20]!r}, expected '1'")


def not_found(path: str) -> CallFailedError:
    """What is said of a path that leads nowhere."""
    is_rpc = path.startswith("/facets.")
    code = grpc.StatusCode.UNIMPLEMENTED if is_rpc else grpc.StatusCode.NOT_FOUND
    return CallFailedError(code, "there is no such rpc" if is_rpc else "there is nothing at this path", status=404)
