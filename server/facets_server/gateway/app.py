"""The ASGI application of the gateway: all routes, the probes, the playground, and what every request needs."""

import asyncio
import logging
import mimetypes
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facets_server.gateway.compatible import COMPATIBLE_ROUTES
from facets_server.gateway.connections import WORK
from facets_server.gateway.errors import CLIENT_GONE, REQUEST_ID, CallError, bad_request
from facets_server.gateway.openapi import openapi
from facets_server.gateway.request_body import BodyReader
from facets_server.gateway.rpc_routes import rpc_routes
from facets_server.gateway.uploads import UPLOAD_PATH, Uploads
from facets_server.gateway.upstream import Backend, Upstream, caller_of
from facets_server.runtime.call_context import valid_request_id
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import is_host_of
from facets_server.runtime.keys import read_keys

logger = logging.getLogger(__name__)

PLAYGROUND = Path(__file__).parent / "playground"
# Fixed here because the MIME tables of machines differ, and browsers refuse scripts of a wrong type.
_CONTENT_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PAGE_HEADERS = {  # of all replies to GET
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers revalidate by ETag
}
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}  # of all replies
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_HEALTH_CHECK_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class _Checked:
    """Checks host and framing of requests, adds an id and headers to replies, and logs them.

    The host check prevents DNS rebinding: a foreign web page can make its own name resolve to this machine, and the
    browser then treats its scripts as ours. The ``Host`` header of their requests still has the foreign name.
    """

    app: ASGIApp
    config: ServerConfig
    routes: Collection[str]  # paths that the log names, because any other may hold anything

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        scope.setdefault("state", {})[WORK] = asyncio.current_task()
        request_id = valid_request_id(request.headers.get("x-request-id", ""))
        REQUEST_ID.set(request_id)
        path = UPLOAD_PATH if scope["path"].startswith(UPLOAD_PATH.partition("{")[0]) else scope["path"]
        route = path if path in self.routes else "pages"
        status, is_complete = CLIENT_GONE, False
        started = time.monotonic()

        async def observed_send(message: Message) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update({**_HEADERS, "X-Request-Id": request_id})
                if request.method in ("GET", "HEAD"):
                    headers.update(_PAGE_HEADERS)
            await send(message)
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")

        try:
            rejected = self._check(request)
            await (rejected.response() if rejected else self.app)(scope, receive, observed_send)
        except Exception as error:
            stack = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may quote user text
            logger.error("%s HTTP %s: %s\n%s", request_id, route, type(error).__name__, stack)
            if not is_complete:
                raise ConnectionAbortedError from None  # makes the server close the connection
        finally:
            total_ms = (time.monotonic() - started) * 1000
            logger.info("%s HTTP %s %d total_ms=%.1f", request_id, route, status, total_ms)

    def _check(self, request: Request) -> CallError | None:
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            message = "the request has content-length and transfer-encoding, expected one of them"  # proxies differ
            return bad_request(message, headers={"Connection": "close"})
        if not is_host_of(request.headers.get("host", ""), self.config):
            message = "the Host header does not name this server; http.allowed_hosts can allow it"
            return CallError(grpc.StatusCode.PERMISSION_DENIED, message, http_status=421)
        return None


def create_app(upstream: Upstream, config: ServerConfig) -> ASGIApp:
    """Creates the application; the caller closes ``upstream``."""
    http = config.http
    keys = None if config.security.api_keys_file is None else read_keys(config.security.api_keys_file)
    max_total_bytes = config.admission.max_memory_bytes // 2
    reader = BodyReader(http.max_body_bytes, http.read_timeout_s, max_total_bytes=max_total_bytes, keys=keys)
    backend = Backend(upstream, reader, http.timeout_s, http.vendor_models)
    pages = StaticFiles(directory=PLAYGROUND, html=True)
    routes = [
        *rpc_routes(backend),
        *COMPATIBLE_ROUTES,
        Route(UPLOAD_PATH, Uploads(backend, http.max_upload_bytes).store, methods=["POST"]),
        Route("/", pages, methods=["GET"]),  # beside the POST of TEI
        Route("/healthz", _live),
        *(Route(path, partial(_ready, upstream)) for path in ("/readyz", "/health")),
        Route("/openapi.json", lambda request: JSONResponse(openapi())),
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=http.cors_origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["X-Request-Id", "Retry-After"],
    )
    handlers: dict[Any, Any] = {
        CallError: _on_call_error,
        HTTPException: _on_http_exception,
        # A fixed text, because messages may quote the caller's text.
        Exception: lambda request, error: CallError(grpc.StatusCode.INTERNAL, "internal error").response(),
    }
    app = Starlette(routes=routes, middleware=[cors] if http.cors_origins else [], exception_handlers=handlers)
    for suffix, content_type in _CONTENT_TYPES.items():
        mimetypes.add_type(content_type, suffix)
    app.state.backend = backend
    app.router.redirect_slashes = False
    app.router.default = pages
    return _Checked(app, config, frozenset(route.path for route in routes))


async def _live(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(upstream: Upstream, request: Request) -> Response:
    caller = caller_of(request, timeout_s=_HEALTH_CHECK_TIMEOUT_S)
    try:
        reply = await upstream.call(_HEALTH_CHECK, HealthCheckRequest().SerializeToString(), caller)
    except CallError as error:
        return JSONResponse({"status": "not ready", "reason": error.message}, status_code=503)
    if HealthCheckResponse.FromString(reply).status != HealthCheckResponse.SERVING:
        return JSONResponse({"status": "not ready"}, status_code=503)
    return JSONResponse({"status": "ok"})


async def _on_call_error(request: Request, error: CallError) -> Response:  # on the event loop: overload has many
    return error.response()


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405 and error.headers and "endpoint" in request.scope:  # of a route, not of the page
        message = f"the method is {request.method}, expected {error.headers['Allow']}"
        return bad_request(message, http_status=405, headers=error.headers).response()
    if error.status_code in (404, 405):
        is_rpc = request.url.path.startswith("/facets.")
        code = grpc.StatusCode.UNIMPLEMENTED if is_rpc else grpc.StatusCode.NOT_FOUND
        return CallError(code, "no such rpc" if is_rpc else "no such path", http_status=404).response()
    return bad_request(str(error.detail), http_status=error.status_code).response()
