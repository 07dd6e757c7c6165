"""The front: gRPC's asyncio server on one thread, so that a call costs a thread only while it is worked on; its ports.

gRPC's synchronous server gives every call a thread from its headers on, and some hundred calls that send nothing
more hold them all. Here a call is a coroutine until its message has come and admission lets it in; then a worker
takes it, and handlers may simply block, on SQLite, on FAISS, on scoring. The loop itself only passes bytes on, so
health answers beside any work.

By measurement of prototypes (one text a call, 2 cores, one run): 2.6 ms and 1.07 ms of processor time a text at one
and at 64 callers, against 2.6 and 1.15 with the synchronous server, whose bare echo is cheaper, but which waits in
threads.
"""

import asyncio
import re
import secrets
import ssl
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

import grpc

from facets.errors import ConfigError
from facets_server.runtime.config import SecurityConfig, ServerConfig

_MAX_PENDING_CALLS = 4096  # of all connections, that the loop has not yet looked at; some may hold 64 KiB each
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:\s]+)(?::[0-9]{1,5})?")  # a name or an address, and a port
_LOOK_EVERY_S = 0.1  # while stopping

ResultT = TypeVar("ResultT")


def options(config: ServerConfig) -> list[tuple[str, int]]:
    """How gRPC treats connections."""
    return [
        ("grpc.max_receive_message_length", config.limits.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # else two servers share one port in silence
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Else gRPC ends calls as CANCELLED, without a word of ours, as soon as 1,000 wait to be looked at.
        ("grpc.max_concurrent_streams", config.admission.max_calls_per_connection),
        ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", 2 * _MAX_PENDING_CALLS),
    ]


def bind(server: grpc.aio.Server, config: ServerConfig) -> int:
    """Adds the port of the settings to a server; returns its number.

    Raises:
        ConfigError: The port is in use, or certificates cannot be read.
    """
    address = f"{config.host}:{config.port}"
    try:
        if config.security.tls_certificate is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _credentials(config.security))
    except RuntimeError as error:
        raise ConfigError(f"port {config.port} on {config.host} cannot be used: is another server on it?") from error
    if port == 0:
        raise ConfigError(f"port {config.port} on {config.host} cannot be used: is another server on it?")
    return port


def local_address() -> str:
    """A new address that only processes of this machine can reach, without a file."""
    return f"unix-abstract:facets-{secrets.token_hex(16)}"


def exposure(config: ServerConfig) -> list[str]:
    """What everybody who reaches the server may do, as warnings; none while it listens on this machine only."""
    if is_loopback(config.host):
        return []
    warnings = []
    if config.security.api_keys_file is None and config.security.tls_client_ca is None:
        warnings.append(
            f"NO KEYS: whoever reaches {config.host}:{config.port} can read, change and delete everything; "
            "set security.api_keys_file, or host = 127.0.0.1"
        )
    if config.security.tls_certificate is None:
        warnings.append(
            f"NO TLS: texts and keys cross the network of {config.host}:{config.port} in the clear; "
            "set security.tls_certificate and tls_key, or host = 127.0.0.1"
        )
    return warnings


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name: who knows where it leads


def is_name_of(host: str, names: Collection[str], *, only_local: bool, or_address: bool = False) -> bool:
    """Whether the name that an HTTP request asks for may be answered.

    Args:
        host: The request's ``Host``, with or without a port.
        names: Names that may be asked for, lower case, ``"*"``: any; empty: this machine's, or any.
        only_local: Where there are no names, whether only those of this machine may be asked for.
        or_address: Whether any address may be asked for beside the names: no web page leads to one by its own name.
    """
    if "*" in names or not (names or only_local):
        return True
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    name = found[1]
    if not names:
        return is_loopback(name)
    return name in names or (or_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _credentials(security: SecurityConfig) -> grpc.ServerCredentials:
    assert security.tls_certificate is not None and security.tls_key is not None
    pair = (_read(security.tls_key, "tls_key"), _read(security.tls_certificate, "tls_certificate"))
    client_ca = None if security.tls_client_ca is None else _read(security.tls_client_ca, "tls_client_ca")
    _check(security)
    return grpc.ssl_server_credentials([pair], client_ca, require_client_auth=client_ca is not None)


def _check(security: SecurityConfig) -> None:
    """GRPC takes any bytes, and then nobody can connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert security.tls_certificate is not None
    try:
        context.load_cert_chain(security.tls_certificate, security.tls_key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"tls_certificate {security.tls_certificate} and tls_key {security.tls_key} are not a certificate and its "
            f"unencrypted key in PEM: {_reason(error)}"
        ) from error
    if security.tls_client_ca is None:
        return
    try:
        context.load_verify_locations(security.tls_client_ca)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"tls_client_ca {security.tls_client_ca} holds no certificate in PEM: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()


def _read(file: Path, setting: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} {file} cannot be read: {error.strerror}") from error


class _Methods(grpc.GenericRpcHandler):
    def __init__(self, handlers: Mapping[str, Any]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        return self._handlers.get(handler_call_details.method)


class Front:
    """A gRPC server whose calls run on an event loop of its own; used from any other thread."""

    def __init__(self, options: Sequence[tuple[str, int]]) -> None:
        """Starts the loop; nothing listens yet."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="front", daemon=True)
        self._thread.start()
        self._server: grpc.aio.Server = self.run(_make_server(options))

    def run(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Runs a coroutine on the loop and waits for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def listen(self, bind: Callable[[grpc.aio.Server], int]) -> int:
        """Binds a port.

        Args:
            bind: Adds a port to the server and returns its number.
        """

        async def run() -> int:
            return bind(self._server)

        return self.run(run())

    def start(self, handlers: Mapping[str, Any], *, apart: Mapping[str, Any]) -> None:
        """Answers calls from now on.

        Args:
            handlers: Full name of each method -> its handler, whose behaviour is a coroutine function.
            apart: The same of methods whose calls are let in beside all others, however many of those wait: for each
                registered method gRPC keeps a queue of its own.
        """
        self._server.add_generic_rpc_handlers((_Methods(handlers),))
        for full_name, handler in apart.items():
            _, service, method = full_name.split("/")
            self._server.add_registered_method_handlers(service, {method: handler})
        self.run(self._server.start())

    def stop(self, grace_s: float, *, is_idle: Callable[[], bool], last_replies_s: float) -> None:
        """Takes no new calls, lets the running ones end, cancels what is left; then ends the loop. Idempotent.

        Args:
            grace_s: Seconds until calls are cancelled.
            is_idle: True once only replies on their way out and watchers of health are left; asked again and again.
            last_replies_s: Seconds that those get.
        """
        if self.loop.is_closed():
            return
        self.run(self._stop(grace_s, is_idle, last_replies_s))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _stop(self, grace_s: float, is_idle: Callable[[], bool], last_replies_s: float) -> None:
        stopping = asyncio.ensure_future(self._server.stop(grace_s))
        while not stopping.done():
            await asyncio.wait({stopping}, timeout=_LOOK_EVERY_S)
            if is_idle():
                await self._server.stop(min(grace_s, last_replies_s))
        await stopping
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if others:  # the last lines of calls that have been answered or cancelled
            await asyncio.wait(others, timeout=last_replies_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


async def _make_server(options: Sequence[tuple[str, int]]) -> grpc.aio.Server:
    return grpc.aio.server(options=options)
