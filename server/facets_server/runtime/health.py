"""Health of the services, and gRPC's health and reflection services.

A service is NOT_SERVING until the models are warm, while a model keeps failing, and from the first moment of a
shutdown. These calls are answered on the event loop, under any load, within separate limits.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_reflection.v1alpha import reflection, reflection_pb2

from facets.errors import NotFoundError
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.errors import grpc_status_of
from facets_server.runtime.keys import Keys
from facets_server.runtime.messages import WaitLimit, decoded, first_message, metadata_of, next_message

logger = logging.getLogger(__name__)

# Lower limits than for facets.v1: a message may be large, and health needs no key.
_MAX_SILENT = 64
_MAX_WATCHERS = 256
_IDLE_S = 60.0
_PERIOD_S = 1.0
_WATCH_S = 0.2  # between two looks at the state for a watcher
CHECK_TIMEOUT_S = 5.0  # a database or a disk that hangs never answers

Context = Any  # grpc.aio.ServicerContext
_Response = health_pb2.HealthCheckResponse


def probe_handlers(
    monitor: "HealthMonitor", services: Sequence[str], config: AdmissionConfig, *, keys: Keys | None
) -> dict[str, Any]:
    """Handlers of health and reflection, by full name of the method; reflection needs a key if the server has keys."""
    timeout_s = config.message_timeout_s
    checks = WaitLimit("a message", most=_MAX_SILENT, timeout_s=timeout_s)
    watches = WaitLimit("a change of health", most=_MAX_WATCHERS, timeout_s=None)
    reflections = WaitLimit("a message", most=_MAX_SILENT, timeout_s=min(timeout_s, _IDLE_S))
    servicer: Any = reflection.aio.ReflectionServicer([*services, HEALTH_SERVICE, reflection.SERVICE_NAME])

    async def service_of(context: Context) -> str:
        data = await first_message(context, checks)
        return str(decoded(health_pb2.HealthCheckRequest.FromString, data).service)

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

    async def requests(context: Context) -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        while (data := await next_message(context, reflections)) is not None:
            yield decoded(reflection_pb2.ServerReflectionRequest.FromString, data)

    async def reflect(_: object, context: Context) -> None:
        async with _errors_to_status(context):
            if keys is not None:
                keys.find(metadata_of(context, "authorization"))
            async for reply in servicer.ServerReflectionInfo(requests(context), context):
                await context.write(reply.SerializeToString())

    unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    return {
        f"/{HEALTH_SERVICE}/Check": unary(check),
        f"/{HEALTH_SERVICE}/Watch": stream(watch),
        f"/{reflection.SERVICE_NAME}/ServerReflectionInfo": stream(reflect),
    }


@asynccontextmanager
async def _errors_to_status(context: Context) -> AsyncIterator[None]:
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        await context.abort_with_status(grpc_status_of(error))


class HealthMonitor:
    """Background thread that runs the health checks and keeps the states of the services."""

    def __init__(
        self,
        services: Mapping[str, Sequence[Callable[[], bool]]],
        dependencies: Mapping[str, Callable[[], bool]] | None = None,
    ) -> None:
        """Sets everything to NOT_SERVING; a service, by full name, is SERVING while all of its checks hold.

        The whole server, with the empty name, is SERVING when all ``services`` are. They can partly do without the
        ``dependencies``, which have separate names.
        """
        all_checks = [check for checks in services.values() for check in checks]
        self._services = {**services, "": all_checks} | {name: (check,) for name, check in (dependencies or {}).items()}
        self._is_serving = dict.fromkeys(self._services, False)
        self._checks = {check for checks in self._services.values() for check in checks}
        self._running: dict[Callable[[], bool], Future[bool]] = {}
        self._workers = ThreadPoolExecutor(max(1, len(self._checks)), thread_name_prefix="health-check")
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="health", daemon=True)

    def state(self, service: str) -> int:
        """The ``ServingStatus`` of a service."""
        states = {None: _Response.SERVICE_UNKNOWN, False: _Response.NOT_SERVING, True: _Response.SERVING}
        return states[self._is_serving.get(service)]

    def start(self) -> None:
        """Checks every second from now on; called once the models are warm."""
        self._refresh()
        self._thread.start()

    def drain(self) -> None:
        """Sets everything to NOT_SERVING for good."""
        with self._lock:
            if self._stopped.is_set():
                return
            self._stopped.set()
            self._workers.shutdown(wait=False, cancel_futures=True)
            self._is_serving = dict.fromkeys(self._is_serving, False)

    def _watch(self) -> None:
        while not self._stopped.wait(_PERIOD_S):
            self._refresh()

    def _refresh(self) -> None:
        holds = {check: self._holds(check) for check in self._checks}
        states = {name: all(holds[check] for check in checks) for name, checks in self._services.items()}
        with self._lock:
            if self._stopped.is_set():
                return
            for name, is_serving in states.items():
                if self._is_serving[name] != is_serving:
                    self._is_serving[name] = is_serving
                    logger.info("health of %s: %s", name or "the server", "SERVING" if is_serving else "NOT_SERVING")

    def _holds(self, check: Callable[[], bool]) -> bool:
        try:
            if check not in self._running:
                self._running[check] = self._workers.submit(check)
            if wait([self._running[check]], CHECK_TIMEOUT_S).not_done:  # still running: not started again
                return False
            return self._running.pop(check).result()
        except Exception as error:  # a bug; if this thread ended, health would keep its last state
            if not self._stopped.is_set():
                logger.error("a check of health failed: %s", error, exc_info=True)
            return False
