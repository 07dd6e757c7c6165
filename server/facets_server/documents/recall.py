"""Sampled recall: a share of the approximate searches is done again exactly, in the background, and compared."""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable

from facets.documents import SearchResult
from facets_server.runtime.metrics import RecallMetrics

logger = logging.getLogger(__name__)

_DUTY = 0.02  # of the time of one thread, at most, once a search was checked
_CLOSE_S = 1.0

_WEIGHT = 0.05  # of the last query in what is known of its collection
Check = tuple[int, SearchResult, Callable[[], SearchResult]]


class RecallSampler:
    """Checks searches one at a time; while one is checked, and for a while after it, none is taken."""

    def __init__(self, share: float, metrics: RecallMetrics) -> None:
        """Starts a thread unless the share is 0.

        Args:
            share: Of the searches that are not exhaustive, in [0, 1].
            metrics: Where the result is counted.
        """
        self._share = share
        self._metrics = metrics
        self._random = random.Random()
        self._queue: queue.Queue[Check | None] = queue.Queue(maxsize=1)
        self._not_before = 0.0
        self._known: dict[int, float] = {}  # number of a collection -> recall
        self._thread = threading.Thread(target=self._work, name="recall", daemon=True)
        if share:
            self._thread.start()

    def of(self, collection: int) -> float | None:
        """Share of the exact hits that searches of a collection found of late; None: none was checked."""
        return self._known.get(collection)

    def offer(self, found: SearchResult, search_exactly: Callable[[], SearchResult], *, of: int) -> None:
        """Takes a search for checking, or not; never waits.

        Args:
            found: What it found.
            search_exactly: The same search, exhaustive.
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
        """Ends the thread after the search that it checks, if that does not take long."""
        if not self._thread.is_alive():
            return
        self._share = 0.0
        try:
            self._queue.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return  # it is a daemon
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
        except Exception as error:  # a collection that was deleted, a server that stops: the search itself was answered
            logger.debug("a search was not checked: %s", type(error).__name__)
            self._metrics.not_compared("failed")

    def _compare(self, of: int, found: SearchResult, exact: SearchResult) -> None:
        if exact.index_revision != found.index_revision:
            self._metrics.not_compared("changed")
            return
        for hits, exact_hits in zip(found.hits, exact.hits, strict=True):
            if exact_hits:
                wanted = {hit.id for hit in exact_hits}
                recall = len(wanted & {hit.id for hit in hits}) / len(wanted)
                self._metrics.compared(recall)
                self._known[of] = recall + (1 - _WEIGHT) * (self._known.get(of, recall) - recall)
