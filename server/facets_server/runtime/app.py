"""Puts the server together.

The life of a call: headers -> key, request id, deadline -> message -> admission -> a worker thread: conversion and
checks -> tokens into the batcher -> forward pass with other calls -> engine -> reply; any error -> table -> status.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
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
from facets_server.runtime.config import SecurityConfig, ServerConfig
from facets_server.runtime.front import Front, bind, local_address, options
from facets_server.runtime.health import HealthBoard, HealthMonitor, probe_handlers, released_when_idle
from facets_server.runtime.keys import GatewayTrust, Keys, gateway_tokens, read_keys
from facets_server.runtime.metrics import CallMetrics, RecallMetrics, measure_process, watch_data
from facets_server.runtime.metrics_server import MetricsServer
from facets_server.runtime.models import ModelRegistry, ServedModel
from facets_server.runtime.observers import Tracing, make_observers
from facets_server.runtime.rooms import ServerParts
from facets_server.runtime.services import Service, services

if TYPE_CHECKING:
    from facets_server.gateway.process import GatewayProcess

logger = logging.getLogger(__name__)

_LAST_REPLIES_S = 0.5


class FacetsServer:
    """A server that listens but is not yet SERVING; made by ``create_server``.

    Attributes:
        port: The port it listens on.
        http_port: The port of the HTTP gateway; None when off.
        metrics_port: The port of the Prometheus metrics; None when off.
        registry: Its metrics.
    """

    def __init__(
        self,
        front: Front,
        *,
        port: int,
        handlers: Mapping[str, Any],
        probes: Mapping[str, Any],
        models: ModelRegistry,
        admission: Admission,
        health: HealthMonitor,
        closing: ExitStack,
        registry: CollectorRegistry,
        gateway: "GatewayProcess | None",
    ) -> None:
        self._front = front
        self._handlers = handlers
        self._probes = probes
        self._models = models
        self._admission = admission
        self._health = health
        self._closing = closing
        self._gateway = gateway
        self._metrics: MetricsServer | None = None
        self.port = port
        self.http_port = None if gateway is None else gateway.port
        self.metrics_port: int | None = None
        self.registry = registry

    def start(self) -> None:
        """Answers calls, warms the models up, then turns SERVING.

        Raises:
            Exception: What a model raises on its first texts.
        """
        self._front.start(self._handlers, apart=self._probes)
        if self._gateway is not None:
            self._gateway.start()
        for served in self._models.all():
            served.warm_up()
        self._health.start()

    def served_models(self) -> list[ModelInfo]:
        """What is served, the default model first."""
        return [served.info for served in self._models.all()]

    def serve_metrics(self, port: int, *, host: str, allowed_hosts: Sequence[str] = ()) -> None:
        """Serves the metrics over HTTP, to everybody who reaches the address; see ``MetricsServer``.

        Raises:
            ConfigError: The port is in use.
        """
        self._metrics = MetricsServer(self.registry, host, port, allowed_hosts=allowed_hosts)
        self.metrics_port = self._metrics.port

    def stop(self, grace_s: float) -> None:
        """Turns NOT_SERVING, refuses new calls, lets running ones end, then closes. Idempotent.

        Args:
            grace_s: Seconds that running calls may take; then they are cancelled.
        """
        self._health.drain()
        self._admission.drain()
        if self._gateway is not None:
            self._gateway.drain()
        self._front.stop(grace_s, is_idle=self._admission.is_idle, last_replies_s=_LAST_REPLIES_S)
        if self._gateway is not None:
            self._gateway.stop(_LAST_REPLIES_S)
        self._models.close()
        self._closing.close()
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None


def create_server(
    models: Sequence[ServedModel[Any]],
    engine: CollectionEngine,
    config: ServerConfig,
    *,
    registry: CollectorRegistry | None = None,
    tracing: Tracing | None = None,
) -> FacetsServer:
    """Builds a server and binds its port; nothing is global, so a process may hold several.

    Args:
        models: What is served; the first is the server's default, the first of each task that task's. The server
            closes them.
        engine: The documents; the caller closes it after the server has stopped.
        config: Checked settings.
        registry: Where the metrics are counted, those of the models too; None: a new one.
        tracing: Instead of the traces that the settings ask for.

    Raises:
        ImportError: The settings ask for what is not installed.
        ConfigError: The port is in use, keys or certificates cannot be read, there is no model, or two have
            the same name.
        StorageError: The data directory cannot be written.
    """
    registry = registry if registry is not None else CollectorRegistry()
    admission = Admission(config.admission)
    keys, tokens = _keys(config.security), gateway_tokens(config.http)
    served = ModelRegistry(models)
    with ExitStack() as closing:  # when one room fails, what the others opened is closed
        metrics, recall = _call_metrics(registry, admission), RecallMetrics(registry)
        parts = ServerParts(
            models=served, engine=engine, admission=admission, config=config,
            closing=closing, metrics=metrics, recall=recall,
        )  # fmt: skip
        table = services(parts)
        _measure(registry, engine, config)
        observers = make_observers(config.observability, registry, tracing)
        if observers is not None:
            closing.callback(observers.close)
        trust = GatewayTrust(tokens)
        calls = Calls(admission, metrics, config=config.admission, keys=keys, trust=trust, observers=observers)
        closing.callback(calls.close)
        closing.enter_context(released_when_idle(admission.is_idle))
        front = Front(options(config))
        closing.callback(front.stop, 0.0, is_idle=admission.is_idle, last_replies_s=0.0)
        board = HealthBoard(front.loop)
        health = _health(board, table, engine)
        probes = probe_handlers(board, [s.name for s in table], config.admission, keys=keys)
        port, gateway = front.listen(lambda server: bind(server, config)), _gateway(front, config, tokens[0], registry)
        return FacetsServer(
            front,
            port=port,
            handlers=_handlers(calls, table),
            probes=probes,
            models=served,
            admission=admission,
            health=health,
            closing=closing.pop_all(),
            registry=registry,
            gateway=gateway,
        )


def _measure(registry: CollectorRegistry, engine: CollectionEngine, config: ServerConfig) -> None:
    measure_process(registry, facets.__version__)
    watch_data(registry, engine, config.data_dir)


def _health(board: HealthBoard, table: Sequence[Service], engine: CollectionEngine) -> HealthMonitor:
    data = _Check(engine.check_directory)
    return HealthMonitor(
        board,
        {s.name: (s.health, data.holds) for s in table if s.health is not None},
        dependencies={name: _Check(check).holds for name, check in engine.checks().items()},
    )


def _handlers(calls: Calls, table: Sequence[Service]) -> dict[str, Any]:
    quick = {method: is_quick for s in table for method, is_quick in s.quick_calls().items()}
    return calls.wrapped({method: handler for s in table for method, handler in s.handlers().items()}, quick)


def _keys(security: SecurityConfig) -> Keys | None:
    return None if security.api_keys_file is None else read_keys(security.api_keys_file)


def _gateway(front: Front, config: ServerConfig, token: str, registry: CollectorRegistry) -> "GatewayProcess | None":
    """The process of the gateway, which has a socket of its own to the server."""
    if config.http.port < 0:
        return None
    require_extra("gateway", "starlette", "uvicorn")
    from facets_server.gateway.process import GatewayProcess

    target = local_address()
    front.listen(lambda server: server.add_insecure_port(target))
    gateway = GatewayProcess(config, target=target, token=token)
    registry.register(gateway)
    return gateway


class _Check:
    """Whether a check holds: of the data directory, where every service keeps something, or of a dependency."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._logged = ""

    def holds(self) -> bool:
        try:
            self._check()
        except StorageError as error:
            if str(error) != self._logged:
                logger.error("%s", error)
            self._logged = str(error)
            return False
        self._logged = ""
        return True


def _call_metrics(registry: CollectorRegistry, admission: Admission) -> CallMetrics:
    metrics = CallMetrics(registry)
    metrics.watch("running", lambda: admission.num_running)
    metrics.watch("waiting", lambda: admission.num_waiting)
    metrics.watch("streams", lambda: admission.num_streams)
    return metrics
