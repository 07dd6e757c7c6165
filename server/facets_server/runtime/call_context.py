"""One running call as the services see it: who asks, how long there is, whether anyone still waits, where time goes.

Services get a ``CallContext`` in place of gRPC's context, so that they can be tested without gRPC and cannot set
codes or metadata past the error table. What a call has waited for and done is noted in its ``Stages``, for metrics,
traces and the access log.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError

# What a call may wait for or have done, in this order; every stage of the server is one of these.
STAGES = {
    "queue": "waiting for admission, or for a model that takes one call at a time",
    "tokenize": "text to tokens, before the model (models of passages do it within theirs)",
    "batch": "waiting in the queue of the model's batches",
    "model": "forward passes, or the library call of a model that takes one call at a time",
    "search": "from facets and words to hits",
    "store": "reading and writing the document store",
}
_KEPT = 64  # stages of one call that a trace shows; a stream has no end of them


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of one call.

    Attributes:
        name: A key of ``STAGES``.
        started: By ``time.monotonic()``.
        seconds: How long it took.
        num_items: Texts, queries or documents it was about; 0: not known.
    """

    name: str
    started: float
    seconds: float
    num_items: int = 0


class Stages:
    """The stages of one call, of a stream those of all its messages; may be shared by threads.

    Attributes:
        kept: The first of them, in the order of their ends.
    """

    def __init__(self, observe: Callable[[str, float], None] | None = None) -> None:
        """Begins without any.

        Args:
            observe: Told the name and the seconds of each stage that ends; None: nobody.
        """
        self.kept: deque[Stage] = deque()
        self._observe = observe
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, started: float, seconds: float, *, num_items: int = 0) -> None:
        """Notes a stage that has ended."""
        assert name in STAGES, name
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
            if len(self.kept) < _KEPT:
                self.kept.append(Stage(name, started, seconds, num_items))
        if self._observe is not None:
            self._observe(name, seconds)

    @contextmanager
    def measured(self, name: str, *, num_items: int = 0) -> Iterator[None]:
        """Notes what happens within a ``with`` block, whether it ends well or not."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.add(name, started, time.monotonic() - started, num_items=num_items)

    def seconds(self) -> dict[str, float]:
        """Seconds of each stage that there was, in the order of ``STAGES``."""
        with self._lock:
            return {name: self._seconds[name] for name in STAGES if name in self._seconds}


@dataclass(kw_only=True, eq=False)
class CallContext:
    """One running call.

    Attributes:
        method: Full name, ``/facets.v1.EmbeddingService/Embed``.
        request_id: Of the caller, or made by the server.
        deadline: When the caller gives up, by ``time.monotonic()``; None: never.
        caller: Who asks: the name of a key, else an address without its port.
        weight: What his share is measured by; that of a caller with 2 is twice that of one with 1.
        peer: Address and port that the call came from.
        trace_id: Of the trace it belongs to, 32 hexadecimal digits; empty: none.
        span: OpenTelemetry's span of the call; None: no traces are made.
        request_bytes: Bytes of the messages received so far.
        reply_bytes: Bytes of the messages sent so far.
        started: Arrival, by ``time.monotonic()``.
        queue_ms: Milliseconds waited so far for admission and in the model's queue.
        inference_ms: Milliseconds of forward passes so far.
        num_items: Texts, pairs or documents in the request, for the log.
        stages: Where the time went; of a stream those of all messages.
    """

    method: str = ""
    request_id: str = ""
    deadline: float | None = None
    caller: str = ""
    weight: float = 1.0
    peer: str = ""
    trace_id: str = ""
    span: Any = None
    request_bytes: int = 0
    reply_bytes: int = 0
    started: float = field(default_factory=time.monotonic)
    queue_ms: float = 0.0
    inference_ms: float = 0.0
    num_items: int = 0
    stages: Stages = field(default_factory=Stages)
    # Both shared by the messages of a stream.
    _over: threading.Event = field(default_factory=threading.Event)
    _waits: set[threading.Event] = field(default_factory=set)

    def for_message(self) -> "CallContext":
        """The same call with a clock of its own: one message of a stream."""
        return replace(self, started=time.monotonic(), queue_ms=0.0, inference_ms=0.0, num_items=0)

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, >= 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def total_ms(self) -> float:
        """Milliseconds since the arrival."""
        return (time.monotonic() - self.started) * 1000

    def is_active(self) -> bool:
        """False once the call has been answered, the caller has cancelled or the connection is gone."""
        return not self._over.is_set()

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
        """The call is over: wakes everybody who waits on behalf of it."""
        self._over.set()
        for event in tuple(self._waits):
            event.set()
