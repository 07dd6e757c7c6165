"""One running call as the services see it: caller, deadline, cancellation, and time spent by stage."""

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError

# Every stage of a call, in the order in which calls pass through them.
STAGES = {
    "queue": "waiting for admission, or for a model that takes one call at a time",
    "tokenize": "text to tokens, before the model (models of passages tokenize within the model stage)",
    "batch": "waiting in the queue of the model's batches",
    "model": "forward passes, or the library call of a model that takes one call at a time",
    "search": "from facets and words to hits",
    "store": "reading and writing the document store",
}
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_MAX_KEPT_STAGES = 64  # shown in a trace; a stream has any number of stages


def valid_request_id(sent: str) -> str:
    """The id that a caller sent if it is short and printable, else a new one."""
    return sent if _REQUEST_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"


class Stage(NamedTuple):
    """One finished stage of a call; ``started`` is a time of ``time.monotonic()``, 0 items means unknown."""

    name: str
    started: float
    seconds: float
    num_items: int = 0


class Stages:
    """The stages of one call, of a message of a stream, or of all its messages; thread-safe."""

    def __init__(self, observe: Callable[[Stage], None] | None = None) -> None:
        """Starts empty; ``observe`` is called with each stage that ends."""
        self.kept: list[Stage] = []  # the first stages, in the order in which they ended
        self._observe = observe
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, stage: Stage) -> None:
        """Records a stage that has ended."""
        assert stage.name in STAGES, stage
        with self._lock:
            self._seconds[stage.name] = self._seconds.get(stage.name, 0.0) + stage.seconds
            if len(self.kept) < _MAX_KEPT_STAGES:
                self.kept.append(stage)
        if self._observe is not None:
            self._observe(stage)

    @contextmanager
    def measured(self, name: str, *, num_items: int = 0) -> Iterator[None]:
        """Records a ``with`` block as a stage, even when the block raises."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.add(Stage(name, started, time.monotonic() - started, num_items))

    def seconds(self) -> dict[str, float]:
        """Total seconds by stage, in the order of ``STAGES``."""
        with self._lock:
            return {name: self._seconds[name] for name in STAGES if name in self._seconds}


@dataclass(kw_only=True, eq=False)
class CallContext:
    """One running call; times are those of ``time.monotonic()``."""

    method: str = ""  # full name, /facets.v1.EmbeddingService/Embed
    request_id: str = ""  # from the caller, else made by the server
    deadline: float | None = None
    caller: str = ""  # name of the key, or address without port
    weight: float = 1.0  # share of the server under load, relative to other callers
    peer: str = ""  # address and port of the connection
    trace_id: str = ""  # 32 hexadecimal digits; empty: no trace
    span: Any = None  # OpenTelemetry span; None: tracing is off
    request_bytes: int = 0
    reply_bytes: int = 0
    started: float = field(default_factory=time.monotonic)
    num_items: int = 0  # texts, pairs or documents in the request
    stages: Stages = field(default_factory=Stages)
    memory: ExitStack = field(default_factory=ExitStack)  # of the message read last; closed: given back
    over: Future[None] = field(default_factory=Future)  # done once the call was answered or cancelled

    def for_message(self) -> "CallContext":
        """The same call with its own clock and counters, for one message of a stream."""
        return replace(self, started=time.monotonic(), num_items=0, stages=Stages(self.stages.add))

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, >= 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def queue_ms(self) -> float:
        """Milliseconds of waiting, for admission and for the model."""
        spent = self.stages.seconds()
        return (spent.get("queue", 0.0) + spent.get("batch", 0.0)) * 1000

    @property
    def inference_ms(self) -> float:
        """Milliseconds of the model."""
        return self.stages.seconds().get("model", 0.0) * 1000

    @property
    def total_ms(self) -> float:
        """Milliseconds since the arrival."""
        return (time.monotonic() - self.started) * 1000

    def is_expired(self) -> bool:
        """True once the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def check(self) -> None:
        """Stops work whose answer is no longer wanted: raises DeadlineExceededError or CallCancelledError."""
        if self.is_expired():
            raise DeadlineExceededError("the deadline passed before the work was done")
        if self.over.done():
            raise CallCancelledError("the caller cancelled the call")

    def end(self) -> None:
        """Ends the call and wakes every thread that waits on its behalf."""
        if not self.over.done():
            self.over.set_result(None)
