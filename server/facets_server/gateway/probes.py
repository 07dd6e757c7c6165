"""Whether the gateway runs, and whether the server behind it answers."""

from grpc_health.v1 import health_pb2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.failures import CallFailedError
from facets_server.gateway.upstream import Upstream, caller_of

__all__ = ["ProbeRoutes"]

_CHECK = "/grpc.health.v1.Health/Check"
_TIMEOUT_S = 5.0


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
        caller = caller_of(request, timeout_s=_TIMEOUT_S)
        try:
            reply = await self._upstream.call(_CHECK, health_pb2.HealthCheckRequest().SerializeToString(), caller)
        except CallFailedError as failure:
            return JSONResponse({"status": "not ready", "reason": failure.message}, status_code=503)
        is_serving = health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING
        return JSONResponse({"status": "ok" if is_serving else "not ready"}, status_code=200 if is_serving else 503)
