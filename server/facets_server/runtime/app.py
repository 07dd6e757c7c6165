"""Puts the server together.

Why the synchronous server and not ``grpc.aio``: for echo calls it costs half the processor time (0.12 against
0.24 ms a call, 9,094 against 4,884 calls a second at 64 callers on 2 cores), and that time is taken from the model.
With our batcher and a reply of 10 KB behind the call the two are about equal: 0.45 to 0.50 ms for this whole server
against 0.40 ms for a bare ``grpc.aio`` handler without admission, errors or metrics at 64 callers, 0.49 against
0.58 ms at one. Then handlers that may simply block, on SQLite, on FAISS, on scoring, without stalling every other
call, decide. The price is one thread for every call in flight. Admission control bounds those: calls worked on, calls
waiting, open streams (two threads each) and a few spare threads that refuse the rest, so that the pool never queues
and a refusal is immediate. Health answers beside the model because PyTorch and SQLite let go of the interpreter lock
while they work.

The life of a call: key -> request id, deadline -> admission -> conversion and checks -> tokens into the
batcher -> forward pass with other calls -> engine -> reply; any error -> table -> status.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_health.v1.health import HealthServicer
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry, start_http_server

from facets.documents import CollectionEngine
from facets.errors import ConfigError
from facets.model.contract import ModelInfo
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import SecurityConfig, ServerConfig
from facets_server.runtime.health import HealthMonitor
from facets_server.runtime.interceptors import CallInterceptor, KeyInterceptor
from facets_server.runtime.metrics import CallMetrics
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.room import ServerParts
from facets_server.runtime.served_model import ServedModel
from facets_server.runtime.service_table import services

__all__ = ["FacetsServer", "create_server"]

logger = logging.getLogger(__name__)

_SPARE_THREADS = 16  # health, reflection and calls that are refused
_LOOK_EVERY_S = 0.1  # while draining
_LAST_REPLIES_S = 0.5


class FacetsServer:
    """A server that listens but is not yet SERVING; made by ``create_server``.

    Attributes:
        port: The port it listens on.
        metrics_port: The port of the Prometheus metrics; None when off.
        registry: Its metrics.
    """

    def __init__(
        self,
        server: grpc.Server,
        *,
        port: int,
        models: ModelRegistry,
        admission: Admission,
        health: HealthMonitor,
        closing: ExitStack,
        registry: CollectorRegistry,
    ) -> None:
        self._server = server
        self._models = models
        self._admission = admission
        self._health = health
        self._closing = closing
        self._stop_metrics: Callable[[], None] | None = None
        self.port = port
        self.metrics_port: int | None = None
        self.registry = registry

    def start(self) -> None:
        """Answers calls, warms the models up, then turns SERVING.

        Raises:
            Exception: What a model raises on its first texts.
        """
        self._server.start()
        for served in self._models.all():
            served.warm_up()
        self._health.start()

    def served_models(self) -> list[ModelInfo]:
        """What is served, the default model first."""
        return [served.info for served in self._models.all()]

    def serve_metrics(self, port: int) -> None:
        """Serves the metrics over HTTP.

        Raises:
            ConfigError: The port is in use.
        """
        try:
            httpd, thread = start_http_server(port, registry=self.registry)
        except OSError as error:
            raise ConfigError(f"metrics_port {port} cannot be used: {error.strerror}") from error
        self.metrics_port = httpd.server_port

        def stop() -> None:
            httpd.shutdown()
            httpd.server_close()
            thread.join()

        self._stop_metrics = stop

    def stop(self, grace_s: float) -> None:
        """Turns NOT_SERVING, refuses new calls, lets running ones end, then closes. Idempotent.

        Args:
            grace_s: Seconds that running calls may take; then they are cancelled.
        """
        self._health.drain()
        self._admission.drain()
        stopped = self._server.stop(grace_s)
        while not stopped.wait(_LOOK_EVERY_S):
            if self._admission.is_idle():
                # Only watchers of health are left, and replies on their way out.
                self._server.stop(min(grace_s, _LAST_REPLIES_S)).wait()
                break
        self._models.close()
        self._closing.close()
        if self._stop_metrics is not None:
            self._stop_metrics()
            self._stop_metrics = None


def create_server(
    models: Sequence[ServedModel[Any]],
    engine: CollectionEngine,
    config: ServerConfig,
    *,
    registry: CollectorRegistry | None = None,
) -> FacetsServer:
    """Builds a server and binds its port; nothing is global, so a process may hold several.

    Args:
        models: What is served; the first is the server's default, the first of each task that task's. The server
            closes them.
        engine: The documents; the caller closes it after the server has stopped.
        config: Checked settings.
        registry: Where the metrics are counted, those of the models too; None: a new one.

    Raises:
        ConfigError: The port is in use, keys or certificates cannot be read, there is no model, or two have
            the same name.
        StorageError: The data directory cannot be written.
    """
    registry = registry if registry is not None else CollectorRegistry()
    admission = Admission(config.admission)
    server = grpc.server(
        ThreadPoolExecutor(_num_threads(config), thread_name_prefix="call"),
        interceptors=_interceptors(config, admission, _call_metrics(registry, admission)),
        options=_options(config),
    )
    port = _bind(server, config)
    served = ModelRegistry(models)
    with ExitStack() as closing:  # when one room fails, what the others opened is closed
        table = services(ServerParts(models=served, engine=engine, admission=admission, config=config, closing=closing))
        for service in table:
            service.add_to(server)
        health = HealthMonitor(_health_of(server), {s.name: (s.health,) for s in table if s.health is not None})
        names = (service.name for service in table)
        reflection.enable_server_reflection((*names, HEALTH_SERVICE, reflection.SERVICE_NAME), server)
        return FacetsServer(
            server,
            port=port,
            models=served,
            admission=admission,
            health=health,
            closing=closing.pop_all(),
            registry=registry,
        )


def _call_metrics(registry: CollectorRegistry, admission: Admission) -> CallMetrics:
    metrics = CallMetrics(registry)
    metrics.watch("running", lambda: admission.num_running)
    metrics.watch("waiting", lambda: admission.num_waiting)
    metrics.watch("streams", lambda: admission.num_streams)
    return metrics


def _interceptors(config: ServerConfig, admission: Admission, metrics: CallMetrics) -> list[grpc.ServerInterceptor]:
    keys = config.security.api_keys_file
    first = [] if keys is None else [KeyInterceptor(_keys(keys))]
    return [*first, CallInterceptor(admission, metrics)]


def _health_of(server: grpc.Server) -> HealthServicer:
    """GRPC's own health service, added to a server."""
    servicer = HealthServicer(
        experimental_non_blocking=True,
        experimental_thread_pool=ThreadPoolExecutor(2, thread_name_prefix="health"),
    )
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    return servicer


def _num_threads(config: ServerConfig) -> int:
    admission = config.admission
    waiting = admission.max_queued_requests + admission.max_concurrent_requests
    return waiting + admission.max_streams + _SPARE_THREADS


def _options(config: ServerConfig) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", config.limits.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # else two servers share one port in silence
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def _bind(server: grpc.Server, config: ServerConfig) -> int:
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


def _credentials(security: SecurityConfig) -> grpc.ServerCredentials:
    assert security.tls_certificate is not None and security.tls_key is not None
    client_ca = _read(security.tls_client_ca) if security.tls_client_ca is not None else None
    pair = (_read(security.tls_key), _read(security.tls_certificate))
    return grpc.ssl_server_credentials([pair], client_ca, require_client_auth=client_ca is not None)


def _keys(file: Path) -> tuple[str, ...]:
    keys = tuple(line.strip() for line in _read(file).decode().splitlines() if line.strip())
    if not keys:
        raise ConfigError(f"api_keys_file {file} holds no key, expected one a line")
    return keys


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
