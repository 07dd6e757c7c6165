"""Runs the gateway on a socket until it is asked to stop, with bounds on its connections.

uvicorn alone waits for the head of a request as long as it takes.
"""

import asyncio
import json
import logging
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import h11
import uvicorn
from prometheus_client import CollectorRegistry
from uvicorn.protocols.http.h11_impl import H11Protocol

from facets.errors import ConfigError
from facets_server.gateway.app import create_app
from facets_server.gateway.upstream import Upstream
from facets_server.runtime.config import HttpConfig, ServerConfig

_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)
_BACKLOG = 1024
_KEEP_ALIVE_S = 20
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1000),  # the server starts again, and is found at once
]


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What all connections of a gateway share.

    Attributes:
        most: Connections at once; for one more, the one that has been silent for longest is closed.
        head_timeout_s: Seconds that the head of a request may take.
        silent: Connections whose next request has not begun, the oldest first.
    """

    most: int
    head_timeout_s: float
    silent: dict["_BoundedProtocol", None] = field(default_factory=dict)


def bounded_protocol(bounds: ConnectionBounds) -> Any:
    """What uvicorn's ``Config(http=...)`` takes."""

    def make(*arguments: Any, **named: Any) -> asyncio.Protocol:
        protocol = _BoundedProtocol(*arguments, **named)
        protocol.bounds = bounds
        return protocol

    return make


class _BoundedProtocol(H11Protocol):
    bounds: ConnectionBounds
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self.bounds.most and self.bounds.silent:
            next(iter(self.bounds.silent))._abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _abort(self) -> None:
        self._forget()
        self.connections.discard(self)  # at once: many may come before the loop has told us of this end
        self.transport.abort()

    def _look(self) -> None:
        """Starts the clock when a request is waited for, stops it when its head has come."""
        answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is h11.IDLE or (answered and self.conn.their_state is h11.SEND_BODY):
            self.bounds.silent.setdefault(self)
            if self._timer is None:
                self._timer = self.loop.call_later(self.bounds.head_timeout_s, self._give_up)
        else:
            self._forget()

    def _forget(self) -> None:
        self.bounds.silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            seconds = f"{self.bounds.head_timeout_s:g}"
            message = f"the head of the request did not come within {seconds} s"
            problem = json.dumps({"code": "deadline_exceeded", "message": message})
            self.transport.write(_TOO_SLOW % (len(problem), problem.encode()))
        self.transport.close()


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
