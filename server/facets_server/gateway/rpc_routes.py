"""Serves every rpc over HTTP: unary rpcs as in the Connect protocol, streams as lines of JSON."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

from facets_client.core.channel import Rpc, rpcs
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.protobuf_json import json_line, json_to_proto, proto_to_json
from facets_server.gateway.upstream import Backend, caller_of

JSON, PROTO, NDJSON = "application/json", "application/proto", "application/x-ndjson"


def rpc_routes(backend: Backend) -> list[Route]:
    """A route for every rpc."""
    return [
        Route(path, partial(_stream if rpc.is_stream else _unary, backend, rpc), methods=["POST"])
        for path, rpc in rpcs().items()
    ]


async def _unary(backend: Backend, rpc: Rpc, request: Request) -> Response:
    content_type = content_type_of(request, JSON, PROTO)
    to_proto = bytes if content_type == PROTO else partial(json_to_proto, message_type=rpc.request)
    reply = await backend.forward(request, rpc.path, await backend.reader.body(request, to_proto))
    if content_type == JSON:
        reply = await backend.reader.converted(request, partial(proto_to_json, message_type=rpc.reply), reply)
    return Response(reply, media_type=content_type)


async def _stream(backend: Backend, rpc: Rpc, request: Request) -> Response:
    content_type_of(request, NDJSON)
    backend.reader.check_key(request)
    lines = _reply_lines(backend, rpc, request)
    first = await anext(lines, b"")  # a call that fails before its first reply gets an HTTP error status
    return LineResponse(with_last_error(first, lines), media_type=NDJSON)


async def _reply_lines(backend: Backend, rpc: Rpc, request: Request) -> AsyncGenerator[bytes, None]:
    """Yields replies as lines. An invalid request line ends the stream once earlier requests are answered."""
    body_error: CallError | None = None

    async def requests() -> AsyncIterator[bytes]:
        nonlocal body_error
        to_proto = partial(json_to_proto, message_type=rpc.request)
        try:
            async with aclosing(backend.reader.lines(request, to_proto)) as lines:
                async for message in lines:
                    yield message
        except CallError as error:
            body_error = error
        except ClientDisconnect:
            pass  # ends the call; the reply has no reader

    try:
        async for reply in backend.upstream.stream(rpc.path, requests(), caller_of(request, timeout_s=None)):
            yield await backend.reader.converted(request, partial(proto_to_json, message_type=rpc.reply), reply)
    except CallError as error:
        raise (body_error or error) from error
    if body_error is not None:
        raise body_error


async def with_last_error(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """The lines after a first one that the caller has waited for; an error becomes the last line."""
    yield first
    try:
        async with aclosing(lines):
            async for line in lines:
                yield line
    except CallError as error:
        yield json_line({"error": error.to_json()})


class LineResponse(StreamingResponse):
    """Without the task of Starlette that reads the request body to notice a disconnect: the call needs the body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the lines."""
        await self.stream_response(send)


def content_type_of(request: Request, *accepted: str) -> str:
    """The content type of a request, without parameters; raises CallError when it is not accepted."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type not in accepted:
        expected = " or ".join(accepted)
        message = f"content-type is {content_type[:60] or 'missing'}, expected {expected}"
        raise bad_request(message, http_status=415, headers={"Accept-Post": expected})
    return content_type
