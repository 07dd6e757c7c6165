"""Sampled recall: a share of the approximate searches is repeated exactly in the background and compared."""

import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from facets.documents.types import SearchResult

_DUTY = 0.02  # largest share of one thread's time
_CLOSE_S = 1.0
_WEIGHT = 0.05  # weight of the newest query in the running mean for its collection
Check = tuple[int, SearchResult, Callable[[], SearchResult]]
Observe = Callable[[str, float | None], None]
"""Called with the outcome of each check: ``compared`` with the recall, ``changed`` (by a write), or ``failed``."""


class RecallSampler:
    """Checks searches one at a time, with pauses between them."""

    def __init__(self, share: float, observe: Observe) -> None:
        """Starts a thread unless the share of approximate searches to check, in [0, 1], is 0."""
        self.recall: dict[int, float] = {}  # recent recall, by number of the collection
        self._share = share
        self._observe = observe
        self._queue: queue.Queue[Check | None] = queue.Queue(maxsize=1)
        self._not_before = 0.0
        self._thread = threading.Thread(target=self._work, name="recall", daemon=True)
        if share:
            self._thread.start()

    def offer(self, found: SearchResult, search_exactly: Callable[[], SearchResult], *, of: int) -> None:
        """Offers a search of a collection, given by its number, for checking; never waits."""
        is_approximate = not (found.exhaustive or found.left_out)
        if is_approximate and random.random() < self._share and time.monotonic() >= self._not_before:
            with suppress(queue.Full):
                self._queue.put_nowait((of, found, search_exactly))

    def close(self) -> None:
        """Ends the thread, after the running check if that is short; a daemon thread does not block the exit."""
        if self._thread.is_alive():
            self._share = 0.0
            with suppress(queue.Full):
                self._queue.put(None, timeout=_CLOSE_S)
            self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while (check := self._queue.get()) is not None:
            started = time.monotonic()
            try:
                self._compare(*check)
            except Exception:  # a deleted collection or a stopping server: the search itself was answered
                self._observe("failed", None)
            ended = time.monotonic()
            self._not_before = ended + (ended - started) * (1 / _DUTY - 1)

    def _compare(self, of: int, found: SearchResult, search_exactly: Callable[[], SearchResult]) -> None:
        exact = search_exactly()
        if exact.index_revision != found.index_revision:
            self._observe("changed", None)
            return
        for hits, exact_hits in zip(found.hits, exact.hits, strict=True):
            if exact_hits:
                expected = {hit.id for hit in exact_hits}
                recall = len(expected & {hit.id for hit in hits}) / len(expected)
                self._observe("compared", recall)
                self.recall[of] = recall + (1 - _WEIGHT) * (self.recall.get(of, recall) - recall)
