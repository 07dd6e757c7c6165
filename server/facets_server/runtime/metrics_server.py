"""Serves the metrics to Prometheus over HTTP."""

import logging
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import is_host_of, listen

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 32  # each has a thread; one more ends the oldest
TIMEOUT_S = 5.0  # of reading from and writing to a connection
COLLECT_S = 1.0  # to wait for another collection: it reads disks and sockets, which may hang


class MetricsServer(ThreadingTCPServer):
    """Serves a registry, without keys, on ``port``, to requests for the hosts of ``is_host_of``."""

    daemon_threads = True

    def __init__(self, registry: CollectorRegistry, config: ServerConfig) -> None:
        """Listens on the ``metrics_port`` of the settings from now on; raises ConfigError when it cannot be used."""
        super().__init__((config.host, config.metrics_port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listen(config.host, config.metrics_port, "metrics_port")
        self.port = int(self.socket.getsockname()[1])
        self.registry, self.config = registry, config
        self.collecting = threading.Lock()
        self._open: dict[Any, None] = {}  # connections, oldest first
        threading.Thread(target=self.serve_forever, args=(0.1,), name="metrics-port", daemon=True).start()

    def close(self) -> None:
        """Closes the port."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a new thread."""
        request.settimeout(TIMEOUT_S)
        self._open[request] = None
        if len(self._open) > MAX_CONNECTIONS:
            oldest = next(iter(list(self._open)))
            self._open.pop(oldest, None)
            with suppress(OSError):  # just closed
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that are too slow or gone."""
        if not isinstance(sys.exc_info()[1], OSError):
            logger.error("the metrics cannot be collected", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer

    def do_GET(self) -> None:
        hosts, server = self.headers.get_all("Host", []), self.server
        if len(hosts) != 1 or not is_host_of(hosts[0], server.config):
            self.send_error(421)
        elif not server.collecting.acquire(timeout=COLLECT_S):
            self.send_error(503)
        else:
            try:
                body = generate_latest(server.registry)
            finally:
                server.collecting.release()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
