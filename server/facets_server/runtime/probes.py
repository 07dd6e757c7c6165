"""gRPC's own services, health and reflection: answered on the event loop, beside any work, each within bounds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
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
from facets_server.runtime.messages import decoded, first_message, metadata_of, next_message
from facets_server.runtime.wait_limit import WaitLimit

__all__ = ["HealthBoard", "probe_handlers"]

# Many fewer than calls of facets.v1: a message may be large, and everybody may call health.
_MOST_SILENT = 64
_MOST_WATCHERS = 256
_IDLE_S = 60.0

Context = Any  # grpc.aio.ServicerContext
State = int  # health_pb2.HealthCheckResponse.ServingStatus


class HealthBoard:
    """What health says of each service, shown to whoever asks; set by any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Knows no service yet."""
        self._loop = loop
        self._states: dict[str, State] = {}
        self._watchers: set[asyncio.Event] = set()

    def set(self, service: str, is_serving: bool) -> None:
        """Shows that a service is SERVING or NOT_SERVING."""
        states = health_pb2.HealthCheckResponse
        self._states[service] = states.SERVING if is_serving else states.NOT_SERVING
        self._loop.call_soon_threadsafe(self._wake)

    def state(self, service: str) -> State | None:
        """What a service shows; None: nobody knows it."""
        return self._states.get(service)

    async def changes(self, service: str) -> AsyncIterator[State]:
        """What a service shows, now and whenever it changes; on the loop."""
        shown, changed = None, asyncio.Event()
        self._watchers.add(changed)
        try:
            while True:
                changed.clear()
                state = self._states.get(service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
                if state != shown:
                    yield state
                    shown = state
                else:
                    await changed.wait()
        finally:
            self._watchers.discard(changed)

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.set()


def probe_handlers(
    board: HealthBoard, services: Sequence[str], config: AdmissionConfig, *, keys: Keys | None
) -> dict[str, Any]:
    """Full name of each method -> its handler for the front.

    Args:
        board: What health says.
        services: Full names of what reflection shows, besides health and itself.
        config: How long a message may take.
        keys: Reflection needs one where there are any; health never does.
    """
    probes = _Probes(board, [*services, HEALTH_SERVICE, reflection.SERVICE_NAME], config, keys)
    unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    return {
        f"/{HEALTH_SERVICE}/Check": unary(probes.check),
        f"/{HEALTH_SERVICE}/Watch": stream(probes.watch),
        f"/{reflection.SERVICE_NAME}/ServerReflectionInfo": stream(probes.reflect),
    }


class _Probes:
    """Behaviours of the methods: coroutine functions that read and write bytes."""

    def __init__(self, board: HealthBoard, services: Sequence[str], config: AdmissionConfig, keys: Keys | None) -> None:
        self._board = board
        self._keys = keys
        self._reflection: Any = reflection.aio.ReflectionServicer(services)
        self._checks = WaitLimit("a message", most=_MOST_SILENT, timeout_s=config.message_timeout_s)
        self._requests = WaitLimit("a message", most=_MOST_SILENT, timeout_s=min(config.message_timeout_s, _IDLE_S))
        self._watches = WaitLimit("a change of health", most=_MOST_WATCHERS, timeout_s=None)

    async def check(self, _: object, context: Context) -> bytes:
        async with _errors_to_status(context):
            request = decoded(health_pb2.HealthCheckRequest.FromString, await first_message(context, self._checks))
            state = self._board.state(request.service)
            if state is None:
                raise NotFoundError("health knows no such service")
            return health_pb2.HealthCheckResponse(status=state).SerializeToString()

    async def watch(self, _: object, context: Context) -> None:
        async with _errors_to_status(context):
            request = decoded(health_pb2.HealthCheckRequest.FromString, await first_message(context, self._checks))

            async def follow() -> None:
                async for state in self._board.changes(request.service):
                    await context.write(health_pb2.HealthCheckResponse(status=state).SerializeToString())

            await self._watches.wait(follow())

    async def reflect(self, _: object, context: Context) -> None:
        async with _errors_to_status(context):
            if self._keys is not None:
                self._keys.find(metadata_of(context, "authorization"))
            async for reply in self._reflection.ServerReflectionInfo(self._asked(context), context):
                await context.write(reply.SerializeToString())

    async def _asked(self, context: Context) -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        while (data := await next_message(context, self._requests)) is not None:
            yield decoded(reflection_pb2.ServerReflectionRequest.FromString, data)


@asynccontextmanager
async def _errors_to_status(context: Context) -> AsyncIterator[None]:
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        await context.abort_with_status(grpc_status_of(error))
