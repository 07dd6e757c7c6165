"""Serves the metrics to Prometheus over HTTP."""

import threading

import uvicorn
from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from facets_server.gateway.connections import limited_protocol
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import is_host_of, listen

MAX_CONNECTIONS = 32
TIMEOUT_S = 5.0
_CLOSE_S = 1.0  # a collection reads disks and sockets, which may hang


class MetricsServer:
    """Serves a registry, without keys, on ``port``, to requests for the hosts of ``is_host_of``."""

    def __init__(self, registry: CollectorRegistry, config: ServerConfig) -> None:
        """Listens on the ``metrics_port`` of the settings from now on; raises ConfigError when it cannot be used."""
        bound = listen(config.host, config.metrics_port, "metrics_port", timeout_s=TIMEOUT_S)
        self.port = int(bound.getsockname()[1])
        metrics = make_asgi_app(registry)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            await (metrics if is_host_of(host, config) else Response(status_code=421))(scope, receive, send)

        settings = uvicorn.Config(
            app,
            http=limited_protocol(MAX_CONNECTIONS, TIMEOUT_S),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=round(TIMEOUT_S),
            timeout_graceful_shutdown=round(_CLOSE_S),
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, args=([bound],), name="metrics-port", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes the port."""
        self._server.should_exit = True
        self._thread.join(_CLOSE_S)
