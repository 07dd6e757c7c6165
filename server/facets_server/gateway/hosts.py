"""Which names callers may ask for.

A web page elsewhere can make its own name lead to this machine, and then its scripts count as ours in the browser
(DNS rebinding). Their requests still carry that name.
"""

import grpc
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from facets_server.gateway.failures import CallFailedError
from facets_server.gateway.rpc_routes import failed
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.listening import is_loopback

__all__ = ["HostCheck"]

_ANY = "*"


class HostCheck:
    """Refuses requests for names that are not ours."""

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in config.http.allowed_hosts)
        self._any = _ANY in self._names or (not self._names and not is_loopback(config.host))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and not self._any and not self._is_ours(Request(scope)):
            message = "the host that the request names is not this server's; http.allowed_hosts may name it"
            failure = CallFailedError(grpc.StatusCode.PERMISSION_DENIED, message, status=421)
            await failed(failure)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, request: Request) -> bool:
        host = request.headers.get("host", "").lower()
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        return name in self._names if self._names else is_loopback(name)
