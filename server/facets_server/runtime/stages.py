"""Where the time of a call goes: a note for each stage that it went through, for metrics, traces and the access log."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["STAGES", "Stage", "Stages"]

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
