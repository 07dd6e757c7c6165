"""Puts the gateway together, an ASGI application: routes, probes, playground, and what is around each request.

Every request gets an id, a line in the log, its place in the metrics, and headers. Names of hosts are checked: a web
page elsewhere can make its own name lead to this machine, and then its scripts count as ours in the browser (DNS
rebinding); their requests still carry that name.
"""

import logging
import time
import traceback
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.embedding_routes import CohereRerankRoutes, OpenAIRoutes, TeiRerankRoutes, TeiRoutes
from facets_server.gateway.failures import CallFailedError, bad_request
from facets_server.gateway.openapi import openapi
from facets_server.gateway.rpc_routes import RpcRoutes, failed, internal_error, not_found
from facets_server.gateway.upstream import Upstream, caller_of, request_id_of
from facets_server.runtime.config import HttpConfig, ServerConfig
from facets_server.runtime.front import is_loopback, is_name_of
from facets_server.runtime.keys import read_keys

logger = logging.getLogger(__name__)

PLAYGROUND = Path(__file__).parent / "playground"

# By the end of the name; the tables of the machine differ, and browsers run no script of another type.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_PAGE_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked for again by their ETag
}
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_EXPOSED = ("X-Request-Id", "Retry-After")

_CHECK = "/grpc.health.v1.Health/Check"
_CHECK_TIMEOUT_S = 5.0
_TIME_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_GONE = 499  # in log and metrics: nobody was there to read a status


class Pages(StaticFiles):
    """Serves a folder with the right types, ETags and a policy that allows its own files only."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file; ``index.html`` of a folder."""
        response = await super().get_response(path, scope)
        name = "index.html" if path in (".", "") else path
        known = _TYPES.get(Path(name).suffix)
        if known is not None and "content-type" in response.headers:
            response.headers["content-type"] = known
        response.headers.update(_PAGE_HEADERS)
        return response


class ProbeRoutes:
    """``/healthz``, ``/readyz`` and TEI's ``/health``; they need no key."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def routes(self) -> list[Route]:
        """The routes."""
        return [
            Route("/healthz", self._live, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
            Route("/health", self._ready, methods=["GET"]),
        ]

    async def _live(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        caller = caller_of(request, timeout_s=_CHECK_TIMEOUT_S)
        try:
            reply = await self._upstream.call(_CHECK, health_pb2.HealthCheckRequest().SerializeToString(), caller)
        except CallFailedError as failure:
            return JSONResponse({"status": "not ready", "reason": failure.message}, status_code=503)
        is_serving = health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING
        return JSONResponse({"status": "ok" if is_serving else "not ready"}, status_code=200 if is_serving else 503)


class RequestCheck:
    """Refuses requests for names that are not ours, and such as a proxy before us may have read otherwise."""

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in config.http.allowed_hosts)
        self._only_local = is_loopback(config.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and _has_two_lengths(Request(scope)):
            message = "the request has content-length and transfer-encoding, expected one of them"
            await failed(bad_request(message, Connection="close"))(scope, receive, send)
            return
        if scope["type"] == "http" and not self._is_ours(Request(scope)):
            message = "the host that the request names is not this server's; http.allowed_hosts may name it"
            failure = CallFailedError(grpc.StatusCode.PERMISSION_DENIED, message, status=421)
            await failed(failure)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, request: Request) -> bool:
        return is_name_of(request.headers.get("host", ""), self._names, only_local=self._only_local)


def _has_two_lengths(request: Request) -> bool:
    return "content-length" in request.headers and "transfer-encoding" in request.headers


class HttpMetrics:
    """What callers of the gateway see."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "facets_http_requests", "HTTP requests by route and status", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "facets_http_request_seconds",
            "Time of an HTTP request in the gateway",
            ["route"],
            buckets=_TIME_BUCKETS,
            registry=registry,
        )
        self.running = Gauge("facets_http_running_requests", "HTTP requests worked on now", registry=registry)

    def ended(self, route: str, status: int, seconds: float) -> None:
        """Counts one request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


class Observed:
    """Watches an application."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, *, routes: Collection[str]) -> None:
        """Nothing is counted yet.

        Args:
            app: The application.
            metrics: Where requests are counted.
            routes: Paths that have a line of their own in the metrics; all others share ``pages``.
        """
        self._app = app
        self._metrics = metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        started = time.monotonic()
        self._metrics.running.inc()
        try:
            await self._app(scope, receive, seen.send)
        except Exception as error:
            await seen.answer_bug(error, receive)
        finally:
            self._metrics.running.dec()
            seconds = time.monotonic() - started
            path = scope["path"]
            route = path if path in self._routes else "pages"
            self._metrics.ended(route, seen.status, seconds)
            logger.info("%s HTTP %s %d total_ms=%.1f", seen.request_id, route, seen.status, seconds * 1000)


class _Seen:
    """What is sent in answer to one request."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.request_id = request_id_of(Request(scope))
        self.status = _GONE
        self._scope = scope
        self._send = send
        self._is_started = self._is_finished = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_started = True
            self.status = message["status"]
            MutableHeaders(scope=message).update({**_HEADERS, "X-Request-Id": self.request_id})
        await self._send(message)
        self._is_finished = message["type"] == "http.response.body" and not message.get("more_body")

    async def answer_bug(self, error: Exception, receive: Receive) -> None:
        """Our own bug: neither the caller nor the log gets the message, which may hold a caller's words."""
        stack: Any = "".join(traceback.format_tb(error.__traceback__))
        logger.error("%s HTTP %s: %s\n%s", self.request_id, self._scope["path"], type(error).__name__, stack)
        if not self._is_started:
            await internal_error()(self._scope, receive, self.send)
        elif not self._is_finished:
            raise ConnectionAbortedError from None  # the server closes the connection


def create_app(upstream: Upstream, config: ServerConfig, *, registry: CollectorRegistry) -> ASGIApp:
    """The application.

    Args:
        upstream: The gRPC server; whoever made it closes it.
        config: Checked settings; of these ``http``, ``host`` and ``admission.max_request_bytes``.
        registry: Where requests are counted.
    """
    http = config.http
    total = config.admission.max_request_bytes
    keys = None if config.security.api_keys_file is None else read_keys(config.security.api_keys_file)
    reader = BodyReader(http.max_body_bytes, http.read_timeout_s, max_total_bytes=total, keys=keys)
    kinds = (RpcRoutes, OpenAIRoutes, TeiRoutes, TeiRerankRoutes, CohereRerankRoutes)
    routes = [route for kind in kinds for route in kind(upstream, reader, timeout_s=http.timeout_s).routes()]
    routes += [*ProbeRoutes(upstream).routes(), Route("/openapi.json", _description, methods=["GET"])]
    methods = {route.path: sorted(route.methods or ()) for route in routes}
    app = Starlette(
        routes=[*routes, Mount("/", Pages(directory=PLAYGROUND, html=True))],
        middleware=_middleware(http),
        exception_handlers={
            CallFailedError: _on_failure,
            HTTPException: partial(_on_http_exception, methods),
            ClientDisconnect: _on_disconnect,
            Exception: _on_bug,
        },
    )
    return Observed(RequestCheck(app, config), HttpMetrics(registry), routes=methods)


async def _description(request: Request) -> Response:
    return JSONResponse(openapi())


def _middleware(config: HttpConfig) -> list[Middleware]:
    if not config.cors_origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=list(_EXPOSED),
        )
    ]


def _on_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, CallFailedError)
    return failed(error)


async def _on_http_exception(methods: Mapping[str, list[str]], request: Request, error: Exception) -> Response:
    """What Starlette itself refuses; whatever no route takes has come to the pages."""
    assert isinstance(error, HTTPException)
    if allowed := methods.get(request.url.path):
        message = f"the method is {request.method}, expected {allowed[0]}"
        return failed(bad_request(message, status=405, Allow=", ".join(allowed)))
    if error.status_code in (404, 405):
        return failed(not_found(request.url.path))
    return failed(bad_request(str(error.detail), status=error.status_code))


def _on_bug(request: Request, error: Exception) -> Response:
    return internal_error()


def _on_disconnect(request: Request, error: Exception) -> Response:
    return PlainTextResponse(status_code=499)  # nobody reads it
