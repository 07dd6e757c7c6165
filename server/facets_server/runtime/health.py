"""Health of the services, and gRPC's health service.

A service is NOT_SERVING until the models are warm, while a model keeps failing, and from the first moment of a
shutdown. These calls are answered on the event loop, under any load, within separate limits.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import SERVICE_NAME

from facets.errors import NotFoundError
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.errors import grpc_status_of
from facets_server.runtime.message_limits import MessageLimits, parsed
from facets_server.runtime.messages import WaitLimit, first_message

logger = logging.getLogger(__name__)

# Lower limits than for facets.v1: a message may be large, and health needs no key.
_MAX_SILENT = 64
_MAX_WATCHERS = 256
_PERIOD_S = 1.0
_WATCH_S = 0.2  # between two looks at the state for a watcher
CHECK_TIMEOUT_S = 5.0  # a database or a disk that hangs never answers

Check = Callable[[], None]
Context = Any  # grpc.aio.ServicerContext
_Response = health_pb2.HealthCheckResponse


def probe_handlers(monitor: "HealthMonitor", config: ServerConfig) -> dict[str, Any]:
    """Handlers of health, by full name of the method."""
    checks = WaitLimit("a message", most=_MAX_SILENT, timeout_s=config.admission.message_timeout_s)
    watches = WaitLimit("a change of health", most=_MAX_WATCHERS, timeout_s=None)
    limits = MessageLimits(config.limits)

    async def service_of(context: Context) -> str:
        data = await first_message(context, checks)
        limits.num_values(health_pb2.HealthCheckRequest.FromString, data)
        return parsed(health_pb2.HealthCheckRequest.FromString, data).service

    async def check(_: object, context: Context) -> bytes:
        async with _errors_to_status(context):
            state = monitor.state(await service_of(context))
            if state == _Response.SERVICE_UNKNOWN:
                raise NotFoundError("unknown service")
            return _Response(status=state).SerializeToString()

    async def watch(_: object, context: Context) -> None:
        async def follow(service: str) -> None:
            shown = None
            while True:
                if (state := monitor.state(service)) != shown:
                    await context.write(_Response(status=state).SerializeToString())
                    shown = state
                await asyncio.sleep(_WATCH_S)

        async with _errors_to_status(context):
            await watches.wait(follow(await service_of(context)))

    return {
        f"/{SERVICE_NAME}/Check": grpc.stream_unary_rpc_method_handler(check),
        f"/{SERVICE_NAME}/Watch": grpc.stream_stream_rpc_method_handler(watch),
    }


@asynccontextmanager
async def _errors_to_status(context: Context) -> AsyncIterator[None]:
    try:
        yield
    except Exception as error:
        await context.abort_with_status(grpc_status_of(error))


class HealthMonitor:
    """Repeats the checks of the services in the background: functions that raise if what they check is unusable."""

    def __init__(self, services: Mapping[str, Sequence[Check]]) -> None:
        """Everything is NOT_SERVING until ``start``; a service, by full name, is SERVING while all of its checks hold.

        Checks that several services share are asked once.
        """
        self._stopped = threading.Event()
        every = {check for checks in services.values() for check in checks}
        self._checks = {check: _RepeatedCheck(check, self._stopped) for check in every}
        self._services = {name: [self._checks[check] for check in checks] for name, checks in services.items()}

    def state(self, service: str) -> int:
        """The ``ServingStatus`` of a service."""
        if service not in self._services:
            return _Response.SERVICE_UNKNOWN
        is_serving = not self._stopped.is_set() and all(check.holds() for check in self._services[service])
        return _Response.SERVING if is_serving else _Response.NOT_SERVING

    def start(self) -> None:
        """Checks every second from now on; called once the models are warm. Returns after the first checks."""
        for check in self._checks.values():
            check.start()
        for check in self._checks.values():
            check.answered.wait(CHECK_TIMEOUT_S)

    def drain(self) -> None:
        """Sets everything to NOT_SERVING for good."""
        self._stopped.set()


class _RepeatedCheck(threading.Thread):
    """Asks every second until ``stopped``; a check that does not return is not asked again."""

    def __init__(self, check: Check, stopped: threading.Event) -> None:
        super().__init__(name="health", daemon=True)
        self.answered = threading.Event()
        self._check, self._stopped = check, stopped
        self._problem = "not asked yet"
        self._asked = math.inf  # when the running check began; inf: none runs

    def holds(self) -> bool:
        return not self._problem and time.monotonic() < self._asked + CHECK_TIMEOUT_S

    def run(self) -> None:
        while not self._stopped.is_set():
            self._asked = time.monotonic()
            try:
                self._check()
                problem = ""
            except Exception as error:  # any error: if this thread ended, health would keep its last state
                problem = f"{type(error).__name__}: {error}"
            if problem and problem != self._problem and not self._stopped.is_set():
                logger.error("a check of health fails: %s", problem)
            self._problem, self._asked = problem, math.inf
            self.answered.set()
            self._stopped.wait(_PERIOD_S)
