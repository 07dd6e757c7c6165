"""Assembles the server.

A call passes: headers -> key, request id, deadline -> message -> admission -> a worker thread: reading and checks ->
tokens into the batcher -> forward pass with other calls -> engine -> reply. Any error -> table of errors -> status.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

import facets
from facets.documents import CollectionEngine
from facets.errors import StorageError
from facets.extras import require_extra
from facets.model.contract import ModelInfo
from facets_server.runtime.admission import Admission
from facets_server.runtime.calls import Calls
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.grpc_server import GrpcServer
from facets_server.runtime.health import HealthBoard, HealthMonitor, probe_handlers
from facets_server.runtime.keys import GatewayTrust, read_keys
from facets_server.runtime.memory import released_when_idle
from facets_server.runtime.metrics import CallMetrics, RecallMetrics, measure_process, watch_data
from facets_server.runtime.metrics_server import MetricsServer
from facets_server.runtime.model_service import ModelService
from facets_server.runtime.models import ModelRegistry, ServedModel
from facets_server.runtime.observability import Tracing, make_access_log, make_tracing
from facets_server.runtime.rooms import ServerParts, Service, services

if TYPE_CHECKING:
    from facets_server.gateway.process import GatewayProcess

logger = logging.getLogger(__name__)

_LAST_REPLIES_S = 0.5


class FacetsServer:
    """A server; it has no global state, so a process may hold several.

    Attributes:
        port: Port of gRPC.
        http_port: Port of the HTTP gateway; None: off.
        metrics_port: Port of the Prometheus metrics; None: off.
        registry: Registry of the metrics.
    """

    def __init__(
        self,
        models: Sequence[ServedModel[Any]],
        engine: CollectionEngine,
        config: ServerConfig,
        *,
        registry: CollectorRegistry | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """Builds the server and binds its port; ``start`` begins to answer calls.

        Args:
            models: Served models; the first is the server's default, the first of each task is the task's. The server
                closes them.
            engine: The documents; the caller closes it after the server has stopped.
            config: Checked settings.
            registry: Registry of the metrics, which has those of the models; None: a new registry.
            tracing: Replaces the tracing of the settings.

        Raises:
            ImportError: The settings need a package that is not installed.
            ConfigError: The port is in use, keys or certificates cannot be read, there is no model, or two have the
                same name.
            StorageError: The data directory cannot be written.
        """
        self.registry = registry if registry is not None else CollectorRegistry()
        self.metrics_port: int | None = None
        self._models = ModelRegistry(models)
        self._admission = Admission(config.admission)
        self._metrics: MetricsServer | None = None
        keys = None if config.security.api_keys_file is None else read_keys(config.security.api_keys_file)
        token = secrets.token_urlsafe(32)
        with ExitStack() as closing:  # if a step fails, everything opened so far is closed
            metrics = CallMetrics(self.registry, self._admission)
            measure_process(self.registry, facets.__version__)
            watch_data(self.registry, engine, config.data_dir)
            parts = ServerParts(
                models=self._models, engine=engine, admission=self._admission, config=config, closing=closing,
                metrics=metrics, recall=RecallMetrics(self.registry),
            )  # fmt: skip
            table = [*services(parts), Service(ModelService(parts), self._models.is_healthy)]
            tracing = tracing or make_tracing(config.observability)
            access_log = make_access_log(config.observability, self.registry)
            for observer in (tracing, access_log):
                if observer is not None:
                    closing.callback(observer.close)
            calls = Calls(
                self._admission, metrics, config=config.admission, keys=keys, trust=GatewayTrust(token),
                tracing=tracing, access_log=access_log,
            )  # fmt: skip
            closing.callback(calls.close)
            closing.enter_context(released_when_idle(self._admission.is_idle))
            self._grpc = GrpcServer(config)
            closing.callback(self._grpc.stop, 0.0, is_idle=self._admission.is_idle, last_replies_s=0.0)
            board = HealthBoard(self._grpc.loop)
            self._health = _health_monitor(board, table, engine)
            self._probes = probe_handlers(board, [service.name for service in table], config.admission, keys=keys)
            self._handlers = calls.wrapped(
                {method: handler for service in table for method, handler in service.handlers().items()},
                {method: is_quick for service in table for method, is_quick in service.quick_calls().items()},
            )
            self.port = self._grpc.listen()
            self._gateway = self._make_gateway(config, token)
            self.http_port = None if self._gateway is None else self._gateway.port
            self._closing = closing.pop_all()

    def start(self) -> None:
        """Starts answering calls, warms up the models, then reports SERVING.

        Raises:
            Exception: Whatever a model raises on its first texts.
        """
        self._grpc.start(self._handlers, probes=self._probes)
        if self._gateway is not None:
            self._gateway.start()
        for served in self._models.all():
            served.warm_up()
        self._health.start()

    def served_models(self) -> list[ModelInfo]:
        """The served models, the default first."""
        return [served.info for served in self._models.all()]

    def serve_metrics(self, port: int, *, host: str, allowed_hosts: Sequence[str] = ()) -> None:
        """Serves the metrics over HTTP, see ``MetricsServer``.

        Raises:
            ConfigError: The port is in use.
        """
        self._metrics = MetricsServer(self.registry, host, port, allowed_hosts=allowed_hosts)
        self.metrics_port = self._metrics.port

    def stop(self, grace_s: float) -> None:
        """Reports NOT_SERVING, refuses new calls, cancels those still running after ``grace_s``, closes; idempotent."""
        self._health.drain()
        self._admission.drain()
        if self._gateway is not None:
            self._gateway.drain()
        self._grpc.stop(grace_s, is_idle=self._admission.is_idle, last_replies_s=_LAST_REPLIES_S)
        if self._gateway is not None:
            self._gateway.stop(_LAST_REPLIES_S)
        self._models.close()
        self._closing.close()
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def _make_gateway(self, config: ServerConfig, token: str) -> "GatewayProcess | None":
        if config.http.port < 0:
            return None
        require_extra("gateway", "starlette", "uvicorn")
        from facets_server.gateway.process import GatewayProcess

        gateway = GatewayProcess(config, target=self._grpc.listen_locally(), token=token)
        self.registry.register(gateway)
        return gateway


def _health_monitor(board: HealthBoard, table: Sequence[Service], engine: CollectionEngine) -> HealthMonitor:
    data_holds = _storage_check(engine.check_directory)
    return HealthMonitor(
        board,
        {service.name: (service.health, data_holds) for service in table if service.health is not None},
        dependencies={name: _storage_check(check) for name, check in engine.checks().items()},
    )


def _storage_check(check: Callable[[], None]) -> Callable[[], bool]:
    """True while ``check`` raises no StorageError; logs each new error once."""
    logged = ""

    def holds() -> bool:
        nonlocal logged
        try:
            check()
        except StorageError as error:
            if str(error) != logged:
                logger.error("%s", error)
            logged = str(error)
            return False
        logged = ""
        return True

    return holds
