"""One running call as the services see it: who asks, how long there is, whether anyone still waits.

Services get a ``CallContext`` in place of gRPC's context, so that they can be tested without gRPC and cannot set
codes or metadata past the error table.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError

__all__ = ["CallContext"]


def _always() -> bool:
    return True


@dataclass(kw_only=True, eq=False)
class CallContext:
    """One running call.

    Attributes:
        method: Full name, ``/facets.v1.EmbeddingService/Embed``.
        request_id: Of the caller, or made by the server.
        deadline: When the caller gives up, by ``time.monotonic()``; None: never.
        is_active: False once the caller has cancelled or the connection is gone.
        started: Arrival, by ``time.monotonic()``.
        queue_ms: Milliseconds waited so far for admission and in the model's queue.
        inference_ms: Milliseconds of forward passes so far.
        num_items: Texts, pairs or documents in the request, for the log.
    """

    method: str = ""
    request_id: str = ""
    deadline: float | None = None
    is_active: Callable[[], bool] = _always
    started: float = field(default_factory=time.monotonic)
    queue_ms: float = 0.0
    inference_ms: float = 0.0
    num_items: int = 0
    _waits: set[threading.Event] = field(default_factory=set)  # shared by the messages of a stream

    def for_message(self) -> "CallContext":
        """The same call with a clock of its own: one message of a stream."""
        return replace(self, started=time.monotonic(), queue_ms=0.0, inference_ms=0.0, num_items=0)

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, >= 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def elapsed_ms(self) -> float:
        """Milliseconds since the arrival."""
        return (time.monotonic() - self.started) * 1000

    def is_expired(self) -> bool:
        """True once the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def is_wanted(self) -> bool:
        """True while somebody waits for the answer."""
        return not self.is_expired() and self.is_active()

    def check(self) -> None:
        """Stops work nobody waits for.

        Raises:
            DeadlineExceededError: The deadline has passed.
            CallCancelledError: The caller has cancelled.
        """
        if self.is_expired():
            raise DeadlineExceededError("the deadline passed before the work was done")
        if not self.is_active():
            raise CallCancelledError("the caller cancelled the call")

    def wait(self, event: threading.Event) -> None:
        """Waits for an event, at most until the deadline or the end of the call."""
        self._waits.add(event)
        try:
            # Once in the set, the event is also set by the end of the call; before that, is_active says so.
            if self.is_active():
                event.wait(self.time_remaining())
        finally:
            self._waits.discard(event)

    def end(self) -> None:
        """Wakes everybody who waits on behalf of this call; called when gRPC ends the call."""
        for event in tuple(self._waits):
            event.set()
