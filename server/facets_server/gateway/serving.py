"""Runs the gateway on a socket, until it is asked to stop."""

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import grpc
import uvicorn
from prometheus_client import CollectorRegistry

from facets.errors import ConfigError
from facets_server.gateway.app import create_app
from facets_server.gateway.protocol import ConnectionBounds, bounded_protocol
from facets_server.gateway.upstream import Upstream
from facets_server.runtime.config import HttpConfig, ServerConfig

__all__ = ["Gateway", "listen"]

_BACKLOG = 1024
_KEEP_ALIVE_S = 20
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1000),  # the server starts again, and is found at once
]


def listen(host: str, http: HttpConfig) -> socket.socket:
    """Binds the port of the gateway.

    Raises:
        ConfigError: It cannot be used.
    """
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        bound = socket.create_server((name, http.port), family=family, backlog=_BACKLOG, dualstack_ipv6=name == "::")
    except OSError as error:
        raise ConfigError(f"http.port {http.port} on {host} cannot be used: {error.strerror}") from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # callers that are gone, or that do not read their answer
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(http.read_timeout_s * 1000))
    return bound


class Gateway:
    """A gateway to one server; made and used on one event loop."""

    def __init__(
        self,
        target: str,
        config: ServerConfig,
        *,
        token: str = "",
        credentials: grpc.ChannelCredentials | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Connects when the first call comes.

        Args:
            target: Of the gRPC server.
            config: Settings of the gateway: ``http``, ``security``, ``host``, ``drain_s``.
            token: What the server knows it by; empty: it does not.
            credentials: For a server that speaks TLS; None: in the clear.
            registry: Where requests are counted; None: a new one.
        """
        self._config = config
        self._target = target
        self._token = token
        self._credentials = credentials
        self._registry = registry if registry is not None else CollectorRegistry()
        self._server: _Server | None = None
        self._is_stopping = False

    async def serve_until_signal(self, bound: socket.socket) -> None:
        """``serve`` until SIGTERM or SIGINT; in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        await self.serve(bound)

    async def serve(self, bound: socket.socket) -> None:
        """Answers requests until ``stop``; then lets those that run end.

        Raises:
            ConfigError: Certificates cannot be read.
        """
        async with self._upstream() as upstream:
            app = create_app(upstream, self._config, registry=self._registry)
            self._server = _Server(_uvicorn_config(app, self._config))
            self._server.should_exit = self._is_stopping
            await self._server.serve(sockets=[bound])

    def stop(self) -> None:
        """Takes no new connections, and ends when the last answer is out or ``drain_s`` have passed."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True

    @asynccontextmanager
    async def _upstream(self) -> AsyncIterator[Upstream]:
        if self._credentials is None:
            channel = grpc.aio.insecure_channel(self._target, options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.aio.secure_channel(self._target, self._credentials, options=_CHANNEL_OPTIONS)
        upstream = Upstream(channel, self._token)
        try:
            yield upstream
        finally:
            await upstream.close()


class _Server(uvicorn.Server):
    """Leaves signals to those who run it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn_config(app: object, config: ServerConfig) -> uvicorn.Config:
    http, security = config.http, config.security
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its lines quote what callers sent
    settings = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=bounded_protocol(ConnectionBounds(http.max_connections, http.read_timeout_s)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # an address that a caller names is believed by nobody
        server_header=False,
        limit_concurrency=http.max_connections + 1,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(config.drain_s)),
        ssl_certfile=security.tls_certificate,
        ssl_keyfile=security.tls_key,
        ssl_ca_certs=None if security.tls_client_ca is None else str(security.tls_client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if security.tls_client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        settings.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificates of the gateway cannot be used: {error}") from error
    return settings
