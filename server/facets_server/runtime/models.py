"""The served models: how a model runs and is monitored, and which model answers a request."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from facets.errors import FacetsError, InvalidInputError, NotFoundError, NotReadyError
from facets.model.contract import ModelInfo
from facets.model.shipped import ENCODER_PREFIX, served_name
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairLock

_MAX_FAILURES = 3
_PROBE_S = 30.0

EngineT = TypeVar("EngineT")
ValueT = TypeVar("ValueT")


class Lazy(Generic[ValueT]):
    """A value that is opened when it is first used, once. Thread-safe."""

    def __init__(self, make: Callable[[], ValueT], close: Callable[[ValueT], None] = lambda value: None) -> None:
        self._make, self._close = make, close
        self.value: ValueT | None = None  # None: not open
        self.was_asked = self._is_closed = False
        self._lock = threading.Lock()

    def opened(self) -> ValueT:
        """The value; raises what opening it raises, and NotReadyError after ``close``."""
        if self.value is None:
            with self._lock:
                if self.value is None and not self._is_closed:
                    self.was_asked = True
                    self.value = self._make()
        if self.value is None or self._is_closed:
            raise NotReadyError("the server is shutting down")
        return self.value

    def close(self) -> None:
        """Closes the value; it is not opened any more. Idempotent."""
        with self._lock:
            self._is_closed = True
            if self.value is not None:
                self._close(self.value)


class Failures:
    """Counts consecutive failures. Needs no lock: a lost update between threads is harmless."""

    num = 0

    def are_many(self) -> bool:
        """True after several failures in a row."""
        return self.num >= _MAX_FAILURES


class ServedModel(ABC, Generic[EngineT]):
    """One model with the engine that runs it, exclusively for one call at a time or by batches; thread-safe."""

    is_open = True  # unlike some ``LazyModel``

    def __init__(self, info: ModelInfo, engine: EngineT) -> None:
        self.info = info
        self.name, self.task = info.name, info.task
        self.engine = engine
        self.failures = Failures()
        self._lock = FairLock()

    def opened(self) -> Self:
        """The model itself; a ``LazyModel`` opens its model."""
        return self

    @contextmanager
    def exclusive(self, call: CallContext, lock: FairLock | None = None) -> Iterator[EngineT]:
        """Holds the engine's lock, or another one, for a ``with`` block and adds its time to the call.

        Raises as ``Waiter.wait``. Other exceptions than a ``FacetsError`` within the block are failures of the model.
        """
        with (lock or self._lock).acquire(call), call.stages.measured("model"):
            try:
                call.check()
                yield self.engine
                self.failures.num = 0
            except Exception as error:
                self.failures.num += not isinstance(error, FacetsError)
                raise

    @property
    def num_waiting(self) -> int:
        """Calls waiting for the model; texts for a model behind batchers."""
        return self._lock.num_waiting

    @abstractmethod
    def probe(self, call: CallContext) -> None:
        """Runs the model on fixed inputs; raises whatever the model raises."""

    def has_answered(self) -> bool:
        """False after several failures in a row."""
        return not self.failures.are_many()

    def check(self) -> None:
        """Probes the model after several failures in a row; raises what the model raises."""
        if not self.has_answered():
            self.probe(CallContext(method="probe", deadline=time.monotonic() + _PROBE_S))

    def close(self) -> None:
        """Refuses further work."""
        self._lock.close()


ServedT = TypeVar("ServedT", bound=ServedModel[Any])


class LazyModel(Lazy[ServedT]):
    """A model that is opened when it is first used; ``describe`` does not open it."""

    def __init__(
        self, name: str, task: str, open_model: Callable[[], ServedT], describe: Callable[[], ModelInfo]
    ) -> None:
        super().__init__(open_model, lambda served: served.close())
        self.name, self.task = name, task
        self._describe = describe

    @property
    def info(self) -> ModelInfo:
        """Its description; raises CheckpointError for an incomplete folder."""
        return self._describe() if self.value is None else self.value.info

    @property
    def is_open(self) -> bool:
        """Whether ``opened`` returns at once."""
        return self.value is not None

    @property
    def num_waiting(self) -> int:
        """See ``ServedModel.num_waiting``."""
        return 0 if self.value is None else self.value.num_waiting

    def check(self) -> None:
        """Like ``ServedModel.check``; raises what opening the model raises, once that has failed."""
        if self.was_asked:
            self.opened().check()


AnyModel: TypeAlias = ServedModel[Any] | LazyModel[Any]


class TaskModels(Generic[ServedT]):
    """The models of some tasks, ``task`` in messages; the first answers requests that name none.

    ``tasks`` maps the name of every model of the server to its task, to tell a wrong task from a wrong name.
    """

    def __init__(self, task: str, served: Sequence[AnyModel], tasks: Mapping[str, str]) -> None:
        self.task = task
        self._served = {model.name: model for model in served}
        self._tasks = tasks

    def checks(self) -> list[Callable[[], None]]:
        """For each model a function that raises if it does not answer; a model has the same function in all tasks."""
        return [model.check for model in self._served.values()]

    def get(self, name: str) -> ServedT:
        """The model of that name, or the first one; NotFoundError, InvalidInputError, or what opening it raises."""
        return cast(ServedT, self.find(name).opened())

    def find(self, name: str) -> AnyModel:
        """Like ``get``, without opening the model."""
        name = served_name(name)
        if name in self._served:
            return self._served[name]
        if self._served and not name:
            return next(iter(self._served.values()))
        served_names = ", ".join(self._served)
        if self._served and name in self._tasks:
            rule = f"{name!r} is a model for {self._tasks[name]}, expected one for {self.task}: {served_names}"
            raise InvalidInputError(rule, path="model")
        rule = f"model {name!r} is not served, expected one of {served_names}"
        if not self._served:
            rule = f"no model for {self.task} is served, expected one"
        how = "facets serve --model, FACETS_SERVER_MODELS of a background server or facets.open(models=[...]) names it"
        how += f", an encoder as '{ENCODER_PREFIX}NAME_OR_PATH'"
        raise NotFoundError(f"{rule}: {how}", resource_type="model", resource_name=name)


class ModelRegistry(TaskModels[ServedModel[Any]]):
    """The models of all tasks, in order: the first is the server's default, the first of each task is the task's."""

    def __init__(self, served: Sequence[AnyModel]) -> None:
        """Raises InvalidInputError when two models have the same name."""
        names = [model.name for model in served]
        if len(set(names)) != len(names):
            rule = f"must have distinct names, got {', '.join(names)}: give a folder another name"
            raise InvalidInputError(rule, path="models")
        super().__init__("any task", served, {model.name: model.task for model in served})

    def of(self, *tasks: str) -> TaskModels[Any]:
        """The models for some tasks, those of the first task first."""
        models = [model for task in tasks for model in self._served.values() if model.task == task]
        return TaskModels(" or ".join(tasks), models, self._tasks)

    def all(self) -> list[AnyModel]:
        """The default model first, then the others by name."""
        default, *others = self._served.values()
        return [default, *sorted(others, key=lambda model: model.name)]

    def is_default(self, served: AnyModel) -> bool:
        """True for the first model of its task."""
        return next(model.name for model in self._served.values() if model.task == served.task) == served.name

    def close(self) -> None:
        """Ends the threads of all models."""
        for model in self._served.values():
            model.close()
