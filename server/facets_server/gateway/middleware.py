"""Handles what every request needs: checks of host and framing, request id, headers, log line and metrics.

The host check prevents DNS rebinding: a foreign web page can make its own name resolve to this machine, and the browser
then treats its scripts as ours. The ``Host`` header of their requests still has the foreign name.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Collection

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facets_server.gateway.errors import CLIENT_GONE, CallError, bad_request
from facets_server.gateway.uploads import UPLOAD_PATH
from facets_server.gateway.upstream import request_id_of
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import is_loopback, is_name_of

logger = logging.getLogger(__name__)

WORK = "work"  # name of the task in the state of a request: cancelled when its client is gone

_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_TIME_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Checked:
    """Rejects foreign hosts and ambiguous lengths, observes requests, and hides messages of unexpected exceptions."""

    def __init__(
        self, app: ASGIApp, config: ServerConfig, registry: CollectorRegistry, *, routes: Collection[str]
    ) -> None:
        """Registers the metrics. ``routes``: paths with separate metrics; others are counted as ``pages``."""
        self._app = app
        self._hosts = frozenset(name.lower() for name in config.http.allowed_hosts)
        self._only_local = is_loopback(config.host)
        self._routes = frozenset(routes)
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
        self._running = Gauge("facets_http_running_requests", "HTTP requests being answered", registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        request = Request(scope)
        scope.setdefault("state", {})[WORK] = asyncio.current_task()
        request_id = request_id_of(request)
        path = UPLOAD_PATH if scope["path"].startswith(UPLOAD_PATH.partition("{")[0]) else scope["path"]
        route = path if path in self._routes else "pages"
        status, is_complete = CLIENT_GONE, False
        started = time.monotonic()

        async def observed_send(message: Message) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({**_HEADERS, "X-Request-Id": request_id})
            await send(message)
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")

        self._running.inc()
        try:
            rejected = self._check(request)
            await (rejected.response() if rejected else self._app)(scope, receive, observed_send)
        except Exception as error:
            stack = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may quote user text
            logger.error("%s HTTP %s: %s\n%s", request_id, route, type(error).__name__, stack)
            if not is_complete:
                raise ConnectionAbortedError from None  # makes the server close the connection
        finally:
            self._running.dec()
            seconds = time.monotonic() - started
            self._requests.labels(route, str(status)).inc()
            self._seconds.labels(route).observe(seconds)
            logger.info("%s HTTP %s %d total_ms=%.1f", request_id, route, status, seconds * 1000)

    def _check(self, request: Request) -> CallError | None:
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            message = "the request has content-length and transfer-encoding, expected one of them"  # proxies differ
            return bad_request(message, headers={"Connection": "close"})
        if not is_name_of(request.headers.get("host", ""), self._hosts, only_local=self._only_local):
            message = "the Host header does not name this server; http.allowed_hosts can allow it"
            return CallError(grpc.StatusCode.PERMISSION_DENIED, message, http_status=421)
        return None
