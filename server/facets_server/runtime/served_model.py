"""What every task serves a model with: one call at a time where the model needs it, warm-up, truthful health, close.

A task adds ``probe`` and what its service asks of the model.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from facets.errors import FacetsError
from facets.model.contract import ModelInfo
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.failures import Failures
from facets_server.runtime.fair_lock import FairLock

__all__ = ["ServedModel"]

logger = logging.getLogger(__name__)

_PROBE_S = 30.0

EngineT = TypeVar("EngineT")


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
