"""Handles what every request needs: checks of host and framing, request id, headers and a log line.

The host check prevents DNS rebinding: a foreign web page can make its own name resolve to this machine, and the browser
then treats its scripts as ours. The ``Host`` header of their requests still has the foreign name.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Collection

import grpc
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facets_server.gateway.connections import WORK
from facets_server.gateway.errors import CLIENT_GONE, REQUEST_ID, CallError, bad_request
from facets_server.gateway.uploads import UPLOAD_PATH
from facets_server.gateway.upstream import request_id_of
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import is_host_of

logger = logging.getLogger(__name__)

_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


class Checked:
    """Checks and logs requests; ``routes``: the paths that the log names, because any other may hold anything."""

    def __init__(self, app: ASGIApp, config: ServerConfig, *, routes: Collection[str]) -> None:
        self._app = app
        self._config = config
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        request = Request(scope)
        scope.setdefault("state", {})[WORK] = asyncio.current_task()
        request_id = request_id_of(request)
        REQUEST_ID.set(request_id)
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

        try:
            rejected = self._check(request)
            await (rejected.response() if rejected else self._app)(scope, receive, observed_send)
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
        if not is_host_of(request.headers.get("host", ""), self._config):
            message = "the Host header does not name this server; http.allowed_hosts can allow it"
            return CallError(grpc.StatusCode.PERMISSION_DENIED, message, http_status=421)
        return None
