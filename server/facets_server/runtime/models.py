"""The models that are served: how one is run and watched, and which one answers a request.

A model takes one call at a time where it needs that, is warmed up, and tells whether it answers; a task adds ``probe``
and what its service asks. A model of one task cannot answer a request of another, but some requests are for models of
several tasks.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Self, TypeVar

from facets.errors import ConfigError, FacetsError, InvalidInputError, NotFoundError
from facets.model.contract import ModelInfo
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_lock import FairLock

logger = logging.getLogger(__name__)

_MANY = 3
_PROBE_S = 30.0

EngineT = TypeVar("EngineT")


class Failures:
    """A count that whoever runs the model keeps; a lost update between threads does no harm."""

    def __init__(self) -> None:
        self._num = 0

    def count(self) -> None:
        """The model failed."""
        self._num += 1

    def forget(self) -> None:
        """The model answered."""
        self._num = 0

    def are_many(self) -> bool:
        """True when the last calls failed one after the other."""
        return self._num >= _MANY


class ServedModel(ABC, Generic[EngineT]):
    """One model with whatever runs it; may be shared by threads.

    Attributes:
        info: What ModelService returns of the model.
        engine: What runs it; where it takes one call at a time, use it through ``exclusive``.
        failures: How often it failed in a row.
    """

    def __init__(self, info: ModelInfo, engine: EngineT) -> None:
        self.info = info
        self.engine = engine
        self.failures = Failures()
        self._lock = FairLock()

    @contextmanager
    def exclusive(self, call: CallContext) -> Iterator[EngineT]:
        """Waits until no other call has the engine and gives it back at the end; counts failures of the model.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
            NotReadyError: The server is shutting down.
        """
        with self._lock.hold(call), self._counted():
            yield self.engine

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts failures of the model in a row."""
        try:
            yield
        except FacetsError:
            raise  # the caller's mistake, or the disk's
        except Exception:
            self.failures.count()
            raise
        self.failures.forget()

    @property
    def num_waiting(self) -> int:
        """What waits for the model now: calls, of a model behind batchers texts."""
        return self._lock.num_waiting

    @abstractmethod
    def probe(self, call: CallContext) -> None:
        """Runs the model on inputs of our own; raises what the model raises."""

    def warm_up(self) -> None:
        """Runs the model once; raises what the model raises."""
        self.probe(CallContext(method="warm-up"))

    def has_answered(self) -> bool:
        """False when the last calls failed one after the other."""
        return not self.failures.are_many()

    def is_healthy(self) -> bool:
        """True while the model answers; after failures in a row it is asked with inputs of our own."""
        if self.has_answered():
            return True
        try:
            self.probe(CallContext(method="probe", deadline=time.monotonic() + _PROBE_S))
        except Exception as error:  # whatever it is: the model does not answer
            logger.warning("model %s does not answer: %s", self.info.name, type(error).__name__)
            return False
        return True

    def close(self) -> None:
        """Refuses further work."""
        self._lock.close()


ServedT = TypeVar("ServedT", bound=ServedModel[Any])


class TaskModels(Generic[ServedT]):
    """The models of some tasks; the first one answers requests that name none."""

    def __init__(self, task: str, served: Sequence[ServedT], tasks: Mapping[str, str]) -> None:
        """Keeps the order.

        Args:
            task: Of all of them, in words: ``passages or sentences``.
            served: Any number.
            tasks: Name -> task of every model of the server, to tell a wrong task from a wrong name.
        """
        self.task = task
        self._served = {one.info.name: one for one in served}
        self._tasks = tasks

    def get(self, name: str) -> ServedT:
        """The model of that name; the first one for the empty name.

        Raises:
            NotFoundError: There is none.
            InvalidInputError: It is served for another task.
        """
        if name in self._served:
            return self._served[name]
        ours = ", ".join(self._served)
        if not ours:
            raise NotFoundError(
                f"no model for {self.task} is served, expected one: name it when the server is started (--model)",
                resource_type="model",
                resource_name=name,
            )
        if not name:
            return next(iter(self._served.values()))
        if name in self._tasks:
            raise InvalidInputError(
                f"{name!r} is one for {self._tasks[name]}, expected one for {self.task}: {ours}", path="model"
            )
        raise NotFoundError(
            f"model {name!r} is not served, expected one of {ours}", resource_type="model", resource_name=name
        )

    def all(self) -> list[ServedT]:
        """The models in order."""
        return list(self._served.values())

    def preferring(self, name: str) -> Self:
        """The same with another model for requests that name none.

        Args:
            name: Of the model; empty: the first one, as before.

        Raises:
            ConfigError: It is not among them.
        """
        if not name:
            return self
        if name not in self._served:
            raise ConfigError(
                f"model {name!r} is not served for {self.task}, expected one of {', '.join(self._served)}"
            )
        ordered = sorted(self._served.values(), key=lambda one: one.info.name != name)
        return type(self)(self.task, ordered, self._tasks)


class ModelRegistry:
    """The models of all tasks."""

    def __init__(self, served: Sequence[ServedModel[Any]]) -> None:
        """Keeps the order: the first model is the server's default, the first of each task that task's.

        Raises:
            ConfigError: There is no model, or two have the same name.
        """
        names = [one.info.name for one in served]
        if not names:
            raise ConfigError("models has 0 items, expected at least 1")
        if len(set(names)) != len(names):
            raise ConfigError(f"models must have distinct names, got {', '.join(names)}")
        self._served = dict(zip(names, served, strict=True))
        self.tasks: dict[str, str] = {name: one.info.task for name, one in self._served.items()}
        self.default = served[0]
        self._health: dict[frozenset[str], Callable[[], bool]] = {}

    def of(self, kind: type[ServedT], *tasks: str) -> TaskModels[ServedT]:
        """The models that are served for some tasks, those of the first task first."""
        found = [one for task in tasks for one in self._served.values() if one.info.task == task]
        return TaskModels(" or ".join(tasks), [one for one in found if isinstance(one, kind)], self.tasks)

    def health_of(self, tasks: Collection[str]) -> Callable[[], bool] | None:
        """True while every model of some tasks answers; None: none is served.

        The same function each time, so that a failing model is probed once for all services of its tasks.
        """
        served = frozenset(tasks) & set(self.tasks.values())
        return self._health.setdefault(served, partial(self._answers, served)) if served else None

    def get(self, name: str) -> ServedModel[Any]:
        """The model of that name, whatever its task; the default one for the empty name.

        Raises:
            NotFoundError: There is none.
        """
        if not name:
            return self.default
        if name not in self._served:
            raise NotFoundError(
                f"model {name!r} is not served, expected one of {', '.join(self._served)}",
                resource_type="model",
                resource_name=name,
            )
        return self._served[name]

    def all(self) -> list[ServedModel[Any]]:
        """The default model first, then the others by name."""
        others = sorted(
            (one for one in self._served.values() if one is not self.default), key=lambda one: one.info.name
        )
        return [self.default, *others]

    def is_default(self, served: ServedModel[Any]) -> bool:
        """True for the first model of its task."""
        task = served.info.task
        return next(one for one in self._served.values() if one.info.task == task) is served

    def _answers(self, tasks: Collection[str]) -> bool:
        return all(one.is_healthy() for one in self._served.values() if one.info.task in tasks)

    def is_healthy(self) -> bool:
        """True while every model answers."""
        return all(one.is_healthy() for one in self._served.values())

    def close(self) -> None:
        """Ends the threads of all models."""
        for one in self._served.values():
            one.close()
