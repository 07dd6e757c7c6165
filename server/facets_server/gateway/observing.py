"""Around every request: its id, one line in the log, its place in the metrics, headers that every reply has."""

import logging
import time
import traceback
from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facets_server.gateway.rpc_routes import internal_error
from facets_server.gateway.upstream import request_id_of

__all__ = ["HttpMetrics", "Observed"]

logger = logging.getLogger(__name__)

_TIME_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_GONE = 499  # in log and metrics: nobody was there to read a status
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


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
