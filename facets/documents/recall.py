"""Sampled recall: a share of the approximate searches is repeated exactly in the background and compared."""

import random
import threading
import time
from collections.abc import Callable

from facets.documents.types import SearchResult

_DUTY = 0.02  # largest share of one thread's time
_CLOSE_S = 1.0
_WEIGHT = 0.05  # weight of the newest query in the running mean for its collection


class RecallSampler:
    """Checks searches one at a time, with pauses between them."""

    def __init__(self, share: float, observe: Callable[[str, float | None], None]) -> None:
        """``share``: of approximate searches to check, in [0, 1].

        ``observe``: called with the outcome of each check: ``compared`` with the recall, ``changed`` (by a write), or
        ``failed``.
        """
        self.recall: dict[int, float] = {}  # recent recall, by number of the collection
        self._share = share
        self._observe = observe
        self._busy = threading.Lock()  # held during a check
        self._not_before = 0.0

    def offer(self, found: SearchResult, search_exactly: Callable[[], SearchResult], *, of: int) -> None:
        """Offers a search of a collection, given by its number, for checking; never waits."""
        is_approximate = not (found.exhaustive or found.left_out)
        is_due = random.random() < self._share and time.monotonic() >= self._not_before
        if is_approximate and is_due and self._busy.acquire(blocking=False):
            threading.Thread(target=self._check, args=(of, found, search_exactly), name="recall", daemon=True).start()

    def close(self) -> None:
        """Begins no more checks, and waits for the running one if that is short."""
        self._share = 0.0
        if self._busy.acquire(timeout=_CLOSE_S):
            self._busy.release()

    def _check(self, of: int, found: SearchResult, search_exactly: Callable[[], SearchResult]) -> None:
        started = time.monotonic()
        try:
            self._compare(of, found, search_exactly())
        except Exception:  # a deleted collection or a stopping server: the search itself was answered
            self._observe("failed", None)
        ended = time.monotonic()
        self._not_before = ended + (ended - started) * (1 / _DUTY - 1)
        self._busy.release()

    def _compare(self, of: int, found: SearchResult, exact: SearchResult) -> None:
        if exact.index_revision != found.index_revision:
            self._observe("changed", None)
            return
        for hits, exact_hits in zip(found.hits, exact.hits, strict=True):
            if exact_hits:
                expected = {hit.id for hit in exact_hits}
                recall = len(expected & {hit.id for hit in hits}) / len(expected)
                self._observe("compared", recall)
                self.recall[of] = recall + (1 - _WEIGHT) * (self.recall.get(of, recall) - recall)
