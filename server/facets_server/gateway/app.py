"""The ASGI application of the gateway: all routes, the probes and the playground."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from facets_server.gateway.errors import CLIENT_GONE, CallError, bad_request, internal_error
from facets_server.gateway.middleware import Observed, RequestCheck
from facets_server.gateway.openai import openai_routes
from facets_server.gateway.openapi import openapi
from facets_server.gateway.request_body import BodyReader
from facets_server.gateway.rpc_routes import rpc_routes
from facets_server.gateway.tei import cohere_routes, tei_routes
from facets_server.gateway.upstream import Backend, Upstream, caller_of
from facets_server.runtime.config import HttpConfig, ServerConfig
from facets_server.runtime.keys import read_keys

PLAYGROUND = Path(__file__).parent / "playground"

# Fixed here because the MIME tables of machines differ, and browsers refuse scripts of a wrong type.
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers revalidate by ETag
}
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_HEALTH_CHECK_TIMEOUT_S = 5.0


class Pages(StaticFiles):
    """Serves a folder with fixed content types, ETags and a policy that allows only its own files."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file, or ``index.html`` of a folder."""
        response = await super().get_response(path, scope)
        content_type = _CONTENT_TYPES.get(".html" if path in (".", "") else Path(path).suffix)
        if content_type is not None and "content-type" in response.headers:
            response.headers["content-type"] = content_type
        response.headers.update(_PAGE_HEADERS)
        return response


def create_app(upstream: Upstream, config: ServerConfig, *, registry: CollectorRegistry) -> ASGIApp:
    """Creates the application.

    Args:
        upstream: The gRPC server; the caller closes it.
        config: Settings; the gateway uses ``http``, ``host``, ``security`` and ``admission.max_request_bytes``.
        registry: Registry of the metrics.
    """
    http = config.http
    keys = None if config.security.api_keys_file is None else read_keys(config.security.api_keys_file)
    max_total_bytes = config.admission.max_request_bytes
    reader = BodyReader(http.max_body_bytes, http.read_timeout_s, max_total_bytes=max_total_bytes, keys=keys)
    backend = Backend(upstream, reader, http.timeout_s)
    routes = [
        *rpc_routes(backend),
        *openai_routes(backend),
        *tei_routes(backend),
        *cohere_routes(backend),
        Route("/healthz", _live, methods=["GET"]),
        *(Route(path, partial(_ready, upstream), methods=["GET"]) for path in ("/readyz", "/health")),
        Route("/openapi.json", _openapi, methods=["GET"]),
    ]
    methods = {route.path: sorted(route.methods or ()) for route in routes}
    app = Starlette(
        routes=[*routes, Mount("/", Pages(directory=PLAYGROUND, html=True))],
        middleware=_cors(http),
        exception_handlers={
            CallError: _on_call_error,
            HTTPException: partial(_on_http_exception, methods),
            ClientDisconnect: _on_disconnect,
            Exception: _on_bug,
        },
    )
    return Observed(RequestCheck(app, config), registry, routes=methods)


async def _live(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(upstream: Upstream, request: Request) -> Response:
    check = health_pb2.HealthCheckRequest().SerializeToString()
    try:
        reply = await upstream.call(_HEALTH_CHECK, check, caller_of(request, timeout_s=_HEALTH_CHECK_TIMEOUT_S))
    except CallError as error:
        return JSONResponse({"status": "not ready", "reason": error.message}, status_code=503)
    is_serving = health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING
    return JSONResponse({"status": "ok" if is_serving else "not ready"}, status_code=200 if is_serving else 503)


async def _openapi(request: Request) -> Response:
    return JSONResponse(openapi())


def _cors(config: HttpConfig) -> list[Middleware]:
    if not config.cors_origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["X-Request-Id", "Retry-After"],
        )
    ]


def _on_call_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CallError)
    return error.response()


async def _on_http_exception(methods: Mapping[str, list[str]], request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    if allowed := methods.get(path):
        message = f"the method is {request.method}, expected {allowed[0]}"
        return bad_request(message, http_status=405, Allow=", ".join(allowed)).response()
    if error.status_code in (404, 405):
        is_rpc = path.startswith("/facets.")
        code = grpc.StatusCode.UNIMPLEMENTED if is_rpc else grpc.StatusCode.NOT_FOUND
        return CallError(code, "no such rpc" if is_rpc else "no such path", http_status=404).response()
    return bad_request(str(error.detail), http_status=error.status_code).response()


def _on_bug(request: Request, error: Exception) -> Response:
    return internal_error()


def _on_disconnect(request: Request, error: Exception) -> Response:
    return PlainTextResponse(status_code=CLIENT_GONE)
