"""Health that tells the truth, and gRPC's services that show it and what else there is (reflection).

A service is SERVING only while it can answer: everything is NOT_SERVING until the models are warm, again while a model
keeps failing, and from the first moment of shutting down. A model that failed is probed with a real text, so that
health comes back by itself. Calls are answered on the event loop, beside any work, each within bounds.

And memory that goes back to the system when the server has nothing to do.
"""

import asyncio
import ctypes
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_reflection.v1alpha import reflection, reflection_pb2

from facets.errors import NotFoundError
from facets_server.runtime.errors import grpc_status_of
from facets_server.runtime.keys import Keys
from facets_server.runtime.limits import AdmissionConfig
from facets_server.runtime.messages import WaitLimit, decoded, first_message, metadata_of, next_message

logger = logging.getLogger(__name__)

# Many fewer than calls of facets.v1: a message may be large, and everybody may call health.
_MOST_SILENT = 64
_MOST_WATCHERS = 256
_IDLE_S = 60.0
_CHECK_EVERY_S = 1.0
PATIENCE_S = 5.0  # with a check; a database or a disk that hangs answers none, and says nothing

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


class HealthMonitor:
    """Keeps gRPC's standard health service up to date."""

    def __init__(
        self,
        board: HealthBoard,
        services: Mapping[str, Sequence[Callable[[], bool]]],
        *,
        dependencies: Mapping[str, Callable[[], bool]] | None = None,
    ) -> None:
        """Sets everything to NOT_SERVING.

        Args:
            board: What gRPC's health service shows.
            services: Full service name -> checks that must all hold. The empty name (the whole server) is
                SERVING when all services are.
            dependencies: Name -> check of what services go on without, with less: shown under its name.
        """
        self._board = board
        self._dependencies = {name: (check,) for name, check in (dependencies or {}).items()}
        self._services = {**services, **self._dependencies}
        self._shown: dict[str, bool] = {}
        self._checks = {check for checks in self._services.values() for check in checks}
        self._asked: dict[Callable[[], bool], Future[bool]] = {}  # and not answered yet
        self._askers = ThreadPoolExecutor(max(1, len(self._checks)), thread_name_prefix="health-check")
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="health", daemon=True)
        for name in ("", *self._services):
            self._show(name, False)

    def start(self) -> None:
        """Shows the true state from now on, checked every second; called once the models are warm."""
        self._refresh()
        self._thread.start()

    def drain(self) -> None:
        """Everything is NOT_SERVING from now on, for good."""
        with self._lock:
            if self._stopped.is_set():
                return
            self._stopped.set()
            self._askers.shutdown(wait=False, cancel_futures=True)
            for name in ("", *self._services):
                self._show(name, False)

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_EVERY_S):
            self._refresh()

    def _refresh(self) -> None:
        holds = {check: self._holds(check) for check in self._checks}
        states = {name: all(holds[check] for check in checks) for name, checks in self._services.items()}
        with self._lock:
            if self._stopped.is_set():
                return
            whole = all(is_serving for name, is_serving in states.items() if name not in self._dependencies)
            for name, is_serving in {**states, "": whole}.items():
                if self._shown.get(name) != is_serving:
                    self._show(name, is_serving)
                    logger.info("health of %s: %s", name or "the server", "SERVING" if is_serving else "NOT_SERVING")

    def _holds(self, check: Callable[[], bool]) -> bool:
        try:
            if check not in self._asked:
                self._asked[check] = self._askers.submit(check)
            if wait([self._asked[check]], PATIENCE_S).not_done:  # it hangs, and is not asked again before it answers
                return False
            return self._asked.pop(check).result()
        except Exception as error:  # a mistake of ours: without this thread health would show the last state for ever
            if not self._stopped.is_set():
                logger.error("a check of health failed: %s", error, exc_info=True)
            return False

    def _show(self, name: str, is_serving: bool) -> None:
        self._board.set(name, is_serving)
        self._shown[name] = is_serving


_libc = ctypes.CDLL(None)
_M_ARENA_MAX = -8  # glibc's number for mallopt
_RELEASE_EVERY_S = 5.0
_WORTH_RELEASING_S = 0.5  # of processor time since the last release


def bound_heaps() -> None:
    """Threads share two heaps of glibc, where each of dozens would keep what its largest batch took.

    Called before there are threads. Does nothing with another C library.
    """
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 2)


def release_memory() -> None:
    """Gives memory that nobody uses back to the system; does nothing with another C library than glibc."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


@contextmanager
def released_when_idle(is_idle: Callable[[], bool]) -> Iterator[None]:
    """Releases memory after work, inside, whenever nothing is being worked on."""
    ended = threading.Event()

    def watch() -> None:
        released_at = float("-inf")
        while not ended.wait(_RELEASE_EVERY_S):
            if is_idle() and time.process_time() - released_at > _WORTH_RELEASING_S:
                release_memory()
                released_at = time.process_time()

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
