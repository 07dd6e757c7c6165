"""gRPC's asyncio server on an event loop in a separate thread, with its port or socket, and TLS.

A call is a coroutine until its message has arrived and admission lets it in; then a worker thread takes it. The loop
only passes bytes on, so it answers health checks under any load.
"""

import asyncio
import os
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import grpc
from grpc._cython import cygrpc
from grpc.aio._server import Server

from facets.errors import ConfigError
from facets_server.runtime.config import SecurityConfig, ServerConfig

_MAX_PENDING_CALLS = 4096  # of one method and all connections, not yet seen by the loop; some may hold 64 KiB each
_POLL_S = 0.1  # interval while stopping

ResultT = TypeVar("ResultT")


class GrpcServer:
    """A gRPC server whose calls run on a separate event loop; used from other threads."""

    def __init__(self, config: ServerConfig) -> None:
        """Starts the loop; nothing listens yet."""
        self.loop = asyncio.new_event_loop()
        self._config = config
        self._thread = threading.Thread(target=self.loop.run_forever, name="grpc", daemon=True)
        self._thread.start()
        self._server: Server = self._on_loop(self._make())

    def listen(self) -> int:
        """Binds the port of the settings and returns its number, 1 for a socket; raises ConfigError."""
        config, security = self._config, self._config.security
        if config.socket is None:
            credentials = None if security.tls_certificate is None else server_credentials(security)
            problem = f"port {config.port} on {config.host} cannot be used: is another server on it?"
            return self._bind(f"{config.host}:{config.port}", problem, credentials)
        problem = f"socket {config.socket} cannot be used: it needs an existing folder and a short path"
        mask = os.umask(0o077)  # the socket has the rights of a private file
        try:
            return self._bind(f"unix:{quote(str(config.socket.absolute()))}", problem)
        finally:
            os.umask(mask)

    def listen_in(self, folder: str) -> str:
        """Listens on a socket in a folder, also returned as an address; raises ConfigError."""
        address = f"unix:{quote(folder)}/grpc"
        self._bind(address, f"no socket can be made in {folder}: set TMPDIR to a shorter path")
        return address

    def start(self, handlers: Mapping[str, Any]) -> None:
        """Answers calls from now on, by handlers by full name of the method.

        gRPC keeps a separate queue for each method, so probes are admitted however many others wait.
        """
        for full_name, handler in handlers.items():
            _, service, method = full_name.split("/")
            self._server.add_registered_method_handlers(service, {method: handler})
        self._on_loop(self._server.start())

    def stop(self, grace_s: float, *, is_idle: Callable[[], bool], last_replies_s: float) -> None:
        """Takes no new calls, cancels those still running after ``grace_s``, then ends the loop; idempotent.

        Once ``is_idle``, only replies being sent and watchers of health are left, which get ``last_replies_s`` to end.
        """
        if self.loop.is_closed():
            return
        self._on_loop(self._stop(grace_s, is_idle, last_replies_s))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _on_loop(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def _make(self) -> Server:
        admission = self._config.admission
        options = [
            ("grpc.max_receive_message_length", self._config.limits.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.compression_enabled_algorithms_bitset", 1),  # none: gRPC unpacks a thousandfold before we can refuse
            ("grpc.so_reuseport", 0),  # else two servers share one port without an error
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            # Clients delay further calls of a connection. Else gRPC ends calls as CANCELLED once 1,000 wait.
            ("grpc.max_concurrent_streams", admission.max_concurrent_requests + admission.max_queued_requests + 32),
            ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", 2 * _MAX_PENDING_CALLS),
        ]
        return _Server(options)

    def _bind(self, address: str, problem: str, credentials: grpc.ServerCredentials | None = None) -> int:
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(problem) from error

    async def _stop(self, grace_s: float, is_idle: Callable[[], bool], last_replies_s: float) -> None:
        stopping = asyncio.ensure_future(self._server.stop(grace_s))
        while not stopping.done():
            await asyncio.wait({stopping}, timeout=_POLL_S)
            if is_idle():
                await self._server.stop(min(grace_s, last_replies_s))
        await stopping
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if others:  # last steps of calls that were answered or cancelled
            await asyncio.wait(others, timeout=last_replies_s)


class _Core(cygrpc.AioServer):  # type: ignore[misc]
    async def _request_call(self) -> None:
        """Refuses calls of methods that are not registered: gRPC's own loop ends at a path that is not UTF-8."""
        refusals = set[asyncio.Task[None]]()
        while True:
            refusals.add(task := asyncio.create_task(_refused(await super()._request_call())))
            task.add_done_callback(refusals.discard)


async def _refused(state: Any) -> None:
    loop, unknown = asyncio.get_running_loop(), cygrpc._MethodResolver([], {})
    await cygrpc._schedule_rpc_coro(cygrpc._handle_rpc("", unknown, (), state, loop, False), state, loop, "")


class _Server(Server):
    def __init__(self, options: Sequence[tuple[str, int]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _Core(self._loop, None, (), (), tuple(options), None)


def server_credentials(security: SecurityConfig) -> grpc.ServerCredentials:
    """Certificate, key and client authorities of the settings; raises ConfigError if they are none."""
    certificate, key, client_ca = security.tls_certificate, security.tls_key, security.tls_client_ca
    assert certificate is not None and key is not None
    # gRPC accepts any bytes, even if no client can then connect: the ssl module reports what is wrong with them.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    problem = f"tls_certificate {certificate} and tls_key {key} are not a certificate and its unencrypted key in PEM"
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
        pair, trusted = (key.read_bytes(), certificate.read_bytes()), None
        if client_ca is not None:
            problem = f"tls_client_ca {client_ca} holds no certificate in PEM"
            context.load_verify_locations(client_ca)
            trusted = client_ca.read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)).replace("_", " ")
        raise ConfigError(f"{problem}: {reason.lower()}") from error
    return grpc.ssl_server_credentials([pair], trusted, require_client_auth=trusted is not None)
