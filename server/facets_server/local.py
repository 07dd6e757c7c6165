"""The client of a folder: the services run in this process, and ``FacetsClient`` calls them without a port."""

import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from facets_client import FacetsClient
from facets_client.core.blocking import Background, BlockingStream
from facets_client.core.channel import rpc_of
from facets_client.core.requests import check_iterable
from facets_client.core.status import status_error
from facets_client.errors import FailedPreconditionError, UnavailableError
from facets_client.generated.types import Limits
from facets_proto.codec import from_message, to_message
from facets_proto.v1 import models_pb2
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from prometheus_client import CollectorRegistry

from facets.documents import CollectionEngine
from facets.documents.store import STORE_FILE
from facets.errors import ConfigError, FacetsError, InvalidInputError, NotFoundError
from facets.index.config import EngineConfig
from facets.language.interruption import interrupted_by
from facets.storage.directory import LOCK, MANIFEST
from facets.storage.files import clear_errors
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.errors import status_of
from facets_server.runtime.fair_queue import Pending
from facets_server.runtime.metrics import BatchMetrics, CallMetrics
from facets_server.runtime.models import ModelRegistry
from facets_server.runtime.rooms import load_models, services

_IDLE_S = 0.005


class LocalClient(FacetsClient):
    """A ``FacetsClient`` of a folder, made by ``facets.open``; safe to share between threads.

    Methods, results and errors are those of a server, but calls have no timeout. Models are opened by the first call
    that needs them. A program that does not close the client loses nothing: it is closed with the last reference to it,
    or at exit.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        models: Sequence[str] = (),
        device: str = "cpu",
        allow_downloads: bool = False,
    ) -> None:
        check_iterable("models", models)
        self._path = "" if path is None else os.fspath(path)
        with _client_errors(FacetsError), ExitStack() as undo:
            if path is None:
                path = undo.enter_context(tempfile.TemporaryDirectory(prefix="facets-"))
            folder = Path(os.path.expanduser(path)).absolute()  # Path.expanduser raises for an unknown user
            with clear_errors(f"data directory {folder} cannot be read"):
                _check_folder(folder)
            try:
                engine = EngineConfig(device=device)
                config = ServerConfig(
                    data_dir=folder, models=tuple(models), device=device, allow_downloads=allow_downloads, engine=engine
                )
            except ConfigError as error:  # of the arguments, not of a file
                raise InvalidInputError(str(error)) from error
            self._channel: Any = LocalChannel(config, self._path or "the store in memory", undo)  # a `BlockingChannel`
        window = config.admission.max_stream_window
        limits = to_message(config.limits, models_pb2.Limits, max_stream_window=window)
        self._known_limits = from_message(limits, Limits)

    @property
    def target(self) -> str:
        """The folder; empty: in memory."""
        return self._path


class LocalChannel:
    """Calls the handlers of the services; has the methods of a ``BlockingChannel``."""

    def __init__(self, config: ServerConfig, name: str, undo: ExitStack) -> None:
        """Opens the folder and its services; ``undo`` holds what was opened before, and is taken over."""
        self._name, self._pid = name, os.getpid()
        engine = undo.enter_context(CollectionEngine.open(config.data_dir, config.engine))
        self._admission = Admission(config.admission)
        registry = CollectorRegistry()
        metrics = CallMetrics(registry, self._admission)
        self._models = ModelRegistry(load_models(config, BatchMetrics(registry), engine.shared_database))
        self._calls: set[CallContext] = set()  # that run now
        closing = undo.enter_context(ExitStack())  # of what the services open
        self._services = services(
            self._models, engine, config, admission=self._admission, metrics=metrics, closing=closing
        )
        undo.callback(self._models.close)
        # The last comes first: no call runs when the models, the services and the folder are closed.
        undo.callback(_end_all, self._calls)
        undo.callback(self._admission.drain)
        self._closing = weakref.finalize(self, undo.pop_all().close)

    def close(self) -> None:
        """Ends running calls, then closes the folder; idempotent."""
        self._closing()

    def call(self, request: Message) -> Any:
        """Answers a request in another thread: Ctrl-C must not interrupt a write in the middle."""
        call = self._begin(type(request))
        try:
            return Background(partial(self._answer, request, call)).result()
        except BaseException:
            call.end()  # the caller may not have waited for the answer
            raise

    def open(self, request: type[Message]) -> BlockingStream:
        """Opens the stream that takes such requests."""
        call = self._begin(request)

        return BlockingStream(lambda messages: (self._stream(messages, call), call.end), timeout_s=float("inf"))

    def _begin(self, request: type[Message]) -> CallContext:
        if not self._closing.alive:
            raise UnavailableError(grpc.StatusCode.UNAVAILABLE, f"{self._name} is closed: open it again")
        if os.getpid() != self._pid:  # without the threads that answer, a call would wait forever
            rule = f"{self._name} was opened by process {self._pid}, which forked this one: call it there, or serve it"
            raise FailedPreconditionError(grpc.StatusCode.FAILED_PRECONDITION, rule)
        return CallContext(method=rpc_of(request).path)

    def _answer(self, request: Message, call: CallContext) -> Any:
        with self._running(call), _client_errors(), self._admission.turns.taken(call):
            if isinstance(request, health_pb2.HealthCheckRequest):
                return self._check(request.service)
            reply = self._handler(call.method).unary_unary(request, call)
            return reply() if isinstance(reply, Pending) else reply

    def _stream(self, messages: Iterator[Message], call: CallContext) -> Iterator[Any]:
        with self._running(call), _client_errors(), self._admission.stream_slot(call):
            with interrupted_by(call.check):
                yield from self._handler(call.method).stream_stream(messages, call)

    @contextmanager
    def _running(self, call: CallContext) -> Iterator[None]:
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)
            call.end()

    def _handler(self, path: str) -> Any:
        return self._services[path.split("/")[1]].handlers[path]

    def _check(self, name: str) -> health_pb2.HealthCheckResponse:
        checks: Sequence[Callable[[], None]] = self._models.checks()
        if name:
            checks = self._services[name].checks if name in self._services else ()
        if not checks:
            raise NotFoundError("unknown service")
        states = health_pb2.HealthCheckResponse
        try:
            for check in checks:
                check()
        except Exception:  # any error: a model does not answer
            return states(status=states.NOT_SERVING)
        return states(status=states.SERVING)


def _end_all(calls: set[CallContext]) -> None:
    while calls:
        for call in tuple(calls):
            call.end()
        time.sleep(_IDLE_S)


def _check_folder(folder: Path) -> None:
    """Raises InvalidInputError for a folder of other files: they are not searched, and the store stays out of them."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if any(not name.startswith(".") for name in names) and not names & {LOCK, MANIFEST, STORE_FILE}:
        rule = f"{folder} holds other files, expected a new folder; to search these: add_files({str(folder)!r})"
        raise InvalidInputError(rule)


@contextmanager
def _client_errors(kind: type[Exception] = Exception) -> Iterator[None]:
    """Raises the client's exceptions, with the codes and texts that a server would send."""
    try:
        yield
    except kind as error:
        raise status_error(status_of(error)) from error
