"""Sampled recall: a share of the approximate searches is repeated exactly in the background and compared."""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable

from facets.documents import SearchResult
from facets_server.runtime.metrics import RecallMetrics

logger = logging.getLogger(__name__)

_DUTY = 0.02  # largest share of one thread's time
_CLOSE_S = 1.0
_WEIGHT = 0.05  # weight of the newest query in the running mean for its collection
Check = tuple[int, SearchResult, Callable[[], SearchResult]]


class RecallSampler:
    """Checks searches one at a time, with pauses between them."""

    def __init__(self, share: float, metrics: RecallMetrics) -> None:
        """Starts a thread unless the share of approximate searches to check, in [0, 1], is 0."""
        self._share = share
        self._metrics = metrics
        self._random = random.Random()
        self._queue: queue.Queue[Check | None] = queue.Queue(maxsize=1)
        self._not_before = 0.0
        self._recall: dict[int, float] = {}  # by number of the collection
        self._thread = threading.Thread(target=self._work, name="recall", daemon=True)
        if share:
            self._thread.start()

    def of(self, collection: int) -> float | None:
        """Recent recall of the searches of a collection; None: none was checked."""
        return self._recall.get(collection)

    def offer(self, found: SearchResult, search_exactly: Callable[[], SearchResult], *, of: int) -> None:
        """Offers a search for checking; never waits.

        Args:
            found: The result of the search.
            search_exactly: Runs the same search exhaustively.
            of: Number of the collection.
        """
        if (
            found.exhaustive
            or found.left_out
            or self._random.random() >= self._share
            or time.monotonic() < self._not_before
        ):
            return
        try:
            self._queue.put_nowait((of, found, search_exactly))
        except queue.Full:
            return

    def close(self) -> None:
        """Ends the thread, after the running check if that is short."""
        if not self._thread.is_alive():
            return
        self._share = 0.0
        try:
            self._queue.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return  # a daemon thread does not block the exit
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while (check := self._queue.get()) is not None:
            started = time.monotonic()
            self._check(*check)
            ended = time.monotonic()
            self._not_before = ended + (ended - started) * (1 / _DUTY - 1)

    def _check(self, of: int, found: SearchResult, search_exactly: Callable[[], SearchResult]) -> None:
        try:
            self._compare(of, found, search_exactly())
        except Exception as error:  # a deleted collection or a stopping server: the search itself was answered
            logger.debug("a search was not checked: %s", type(error).__name__)
            self._metrics.not_compared("failed")

    def _compare(self, of: int, found: SearchResult, exact: SearchResult) -> None:
        if exact.index_revision != found.index_revision:
            self._metrics.not_compared("changed")
            return
        for hits, exact_hits in zip(found.hits, exact.hits, strict=True):
            if exact_hits:
                expected = {hit.id for hit in exact_hits}
                recall = len(expected & {hit.id for hit in hits}) / len(expected)
                self._metrics.compared(recall)
                self._recall[of] = recall + (1 - _WEIGHT) * (self._recall.get(of, recall) - recall)
