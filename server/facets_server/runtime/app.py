"""Assembles the server; ``ARCHITECTURE.md`` shows the way of a call through it."""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

import facets
from facets.documents import CollectionEngine
from facets.extras import require_extra
from facets.model.precision import UNRECORDED_CALLS
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.calls import Calls
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.grpc_server import GrpcServer
from facets_server.runtime.health import Check, HealthMonitor, probe_handlers
from facets_server.runtime.keys import read_keys
from facets_server.runtime.memory import released_when_idle
from facets_server.runtime.metrics import CallMetrics, DataCollector, measure_process
from facets_server.runtime.models import AnyModel, ModelRegistry
from facets_server.runtime.observability import AccessLog, Tracing, make_tracing
from facets_server.runtime.rooms import Service, services

if TYPE_CHECKING:
    from facets_server.gateway.process import GatewayProcess

_LAST_REPLIES_S = 0.5


class FacetsServer:
    """A server; it has no global state, so a process may hold several.

    ``port``, ``http_port`` and ``metrics_port`` are those of gRPC, HTTP and the Prometheus metrics; None: off.
    ``idle_s()``: seconds without a call or stream.
    """

    def __init__(
        self,
        models: Sequence[AnyModel],
        engine: CollectionEngine,
        config: ServerConfig,
        *,
        registry: CollectorRegistry | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """Builds the server and binds its port; ``start`` begins to answer calls.

        The server closes the models; the caller closes the engine after the server has stopped. ``tracing`` replaces
        that of the settings. Raises ImportError, ConfigError or StorageError.
        """
        self.registry = registry if registry is not None else CollectorRegistry()
        self.http_port: int | None = None
        self.metrics_port: int | None = None
        self._gateway: GatewayProcess | None = None
        self._models = ModelRegistry(models)
        self._warms_up = config.warm_up
        self._admission = Admission(config.admission)
        self.idle_s = self._admission.idle_s
        keys = None if config.security.api_keys_file is None else read_keys(config.security.api_keys_file)
        with ExitStack() as closing:  # if a step fails, everything opened so far is closed
            if config.http.port >= 0:  # first, because the process takes half a second to start
                require_extra("gateway", "starlette", "uvicorn")
                from facets_server.gateway import process

                self._gateway = process.GatewayProcess(config)
                closing.callback(self._gateway.stop, 0.0)
                self.http_port = self._gateway.port
            metrics = CallMetrics(self.registry, self._admission)
            measure_process(self.registry, facets.__version__)
            self.registry.register(DataCollector(engine, config.data_dir))
            ours = services(self._models, engine, config, admission=self._admission, metrics=metrics, closing=closing)
            for name in ("Document", "Embedding", "Model"):  # the services of other rooms are made by their first call
                ours[f"facets.v1.{name}Service"].servicer()
            table = [*ours.values()]
            observers = config.observability
            tracing = tracing or (make_tracing(observers) if observers.traces_endpoint else None)
            access_log = AccessLog(observers.access_log) if observers.access_log else None
            for observer in (tracing, access_log):
                if observer is not None:
                    closing.callback(observer.close)
            calls = Calls(self._admission, metrics, config.limits, keys=keys, tracing=tracing, access_log=access_log)
            closing.callback(calls.close)
            closing.enter_context(released_when_idle(self._admission.is_idle))
            self._grpc = GrpcServer(config)
            closing.callback(self._grpc.stop, 0.0, is_idle=self._admission.is_idle, last_replies_s=0.0)
            checks: dict[str, Sequence[Check]] = {
                service.name: [*service.checks, engine.check_directory] for service in table if service.checks
            }
            # The whole server has no name. It can partly do without the dependencies, which have names of their own.
            checks |= {"": [*chain(*checks.values())]} | {name: [check] for name, check in engine.checks().items()}
            self._health = HealthMonitor(checks)
            names = [*(service.name for service in table), health.SERVICE_NAME, reflection.SERVICE_NAME]
            described = reflection.ReflectionServicer(names)
            table.append(Service(reflection.SERVICE_NAME, lambda: described, ()))
            self._handlers = calls.wrapped(table) | probe_handlers(self._health, config)
            self.port = self._grpc.listen()
            if self._gateway is not None:
                # Only this user may open the folder, so a caller at its socket is the gateway.
                folder = closing.enter_context(TemporaryDirectory(prefix="facets-"))
                self._local_target = self._grpc.listen_in(folder)
            if config.metrics_port >= 0:
                require_extra("gateway", "starlette", "uvicorn")
                from facets_server.runtime.metrics_server import MetricsServer

                server = MetricsServer(self.registry, config)
                self.metrics_port = server.port
                closing.callback(server.close)
            self._closing = closing.pop_all()

    def start(self) -> None:
        """Answers calls, and opens the models, without ``warm_up`` at their first calls; raises what a model raises."""
        self._grpc.start(self._handlers)
        for model in self._models.all() if self._warms_up else ():
            for _ in range(UNRECORDED_CALLS + 1):
                model.opened().probe(CallContext(method="warm-up"))
        self._health.start()
        if self._gateway is not None:
            self._gateway.start(self._local_target)

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
