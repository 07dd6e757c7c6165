"""Puts the gateway together: an ASGI application."""

from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.failures import CallFailedError, bad_request
from facets_server.gateway.hosts import HostCheck
from facets_server.gateway.observing import HttpMetrics, Observed
from facets_server.gateway.openai_routes import OpenAIRoutes
from facets_server.gateway.openapi import openapi
from facets_server.gateway.pages import PLAYGROUND, Pages
from facets_server.gateway.probes import ProbeRoutes
from facets_server.gateway.rpc_routes import RpcRoutes, failed, internal_error, not_found
from facets_server.gateway.tei_routes import TeiRoutes
from facets_server.gateway.upstream import Upstream
from facets_server.runtime.config import HttpConfig, ServerConfig

__all__ = ["create_app"]

_EXPOSED = ("X-Request-Id", "Retry-After")


def create_app(upstream: Upstream, config: ServerConfig, *, registry: CollectorRegistry) -> ASGIApp:
    """The application.

    Args:
        upstream: The gRPC server; whoever made it closes it.
        config: Checked settings; of these ``http``, ``host`` and ``admission.max_request_bytes``.
        registry: Where requests are counted.
    """
    http = config.http
    total = config.admission.max_request_bytes
    reader = BodyReader(http.max_body_bytes, http.read_timeout_s, max_total_bytes=total)
    kinds = (RpcRoutes, OpenAIRoutes, TeiRoutes)
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
    return Observed(HostCheck(app, config), HttpMetrics(registry), routes=methods)


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
