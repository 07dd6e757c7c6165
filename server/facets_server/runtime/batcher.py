"""The dynamic batcher: one worker thread a model, texts of many calls in one forward pass.

Calls put their token rows in and wait. The worker takes what has gathered while the batch before was running,
a few rows of each call round-robin (so that a bulk load does not hold up a single query), sorts by length, and
cuts batches of at most a token budget with padding counted. Rows that nobody waits for any more are dropped
before the model sees them. When a batch of several calls fails, each call is run alone: one bad text does not
fail its neighbours.

    rows of calls -> round-robin -> sort by length -> token budget -> encode_rows -> back to the calls
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError, ModelFailureError
from facets_server.runtime.failures import Failures
from facets_server.runtime.fair_queue import FairQueue, Waiter
from facets_server.runtime.metrics import BatchMetrics

__all__ = ["Batcher", "EncodedRows", "PendingRows"]

logger = logging.getLogger(__name__)

Row = NDArray[np.int64]
EncodeRows = Callable[[Sequence[Row]], NDArray[np.float32]]

_ROWS_A_TURN = 32  # rows taken of one call before the next call's turn


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """What the model made of the rows of one call.

    Attributes:
        facets: ``[rows, K, D]``, float32, in the order of the rows.
        queue_ms: Milliseconds from submission to the first batch that held one of the rows.
        inference_ms: Milliseconds of all the batches that held one of the rows.
    """

    facets: NDArray[np.float32]
    queue_ms: float
    inference_ms: float


class PendingRows(Waiter):
    """Rows that wait for the model; made by ``Batcher.submit``."""

    def __init__(self, rows: Sequence[Row], call: CallContext) -> None:
        super().__init__(call)
        self.rows = rows
        self.submitted = time.monotonic()
        self.next_row = 0  # first row not yet taken by the worker
        self._facets: NDArray[np.float32] | None = None
        self._num_missing = len(rows)
        self._started = self.submitted
        self._inference_s = 0.0

    def result(self) -> EncodedRows:
        """Waits until all rows are encoded, at most until the deadline of the call.

        Raises:
            DeadlineExceededError: The deadline passed first; rows that were not yet encoded are dropped.
            CallCancelledError: The caller cancelled first; likewise.
            ModelFailureError: The model failed on these rows.
            NotReadyError: The batcher was closed first.
        """
        self.wait()
        assert self._facets is not None
        return EncodedRows(self._facets, (self._started - self.submitted) * 1000, self._inference_s * 1000)

    def deliver(self, positions: Sequence[int], facets: NDArray[np.float32], *, started: float) -> None:
        """Takes the facets of some rows; the worker calls it.

        Args:
            positions: Which rows.
            facets: ``[len(positions), K, D]``.
            started: When their batch was started, by ``time.monotonic()``.
        """
        if self._facets is None:
            self._facets = np.empty((len(self.rows), *facets.shape[1:]), np.float32)
            self._started = started
        self._facets[list(positions)] = facets
        self._inference_s += time.monotonic() - started
        self._num_missing -= len(positions)
        if not self._num_missing:
            self.end()


Item = tuple[PendingRows, int]


class Batcher:
    """Fuses the rows of concurrent calls into batches for one model."""

    def __init__(
        self,
        encode_rows: EncodeRows,
        config: BatcherConfig,
        *,
        name: str,
        metrics: BatchMetrics,
        failures: Failures | None = None,
    ) -> None:
        """Starts the worker thread.

        Args:
            encode_rows: Rows of word numbers in, ``[rows, K, D]`` out; only called on the worker thread.
            config: Token budget, batch size, waiting time.
            name: Of the model, for the thread and the metrics.
            metrics: Where batches are counted.
            failures: Where failed batches are counted; None: apart.
        """
        self._encode_rows = encode_rows
        self._config = config
        self._name = name
        self._metrics = metrics
        self._failures = failures if failures is not None else Failures()
        self._queue: FairQueue[PendingRows] = FairQueue(self._count_left)
        self._thread = threading.Thread(target=self._work, name=f"batcher-{name}", daemon=True)
        self._thread.start()

    @property
    def num_waiting_texts(self) -> int:
        """Texts in the queue now."""
        return sum(len(pending.rows) - pending.next_row for pending in self._queue.snapshot())

    def is_healthy(self) -> bool:
        """False when the last batches failed one after the other or the worker is gone."""
        return self._thread.is_alive() and not self._failures.are_many()

    def submit(self, rows: Sequence[Row], call: CallContext) -> PendingRows:
        """Puts rows into the queue.

        Args:
            rows: At least one row, each with at least one number.
            call: For whom; its deadline and cancellation hold for the rows.

        Raises:
            NotReadyError: The batcher is closed.
        """
        if not rows:
            raise ValueError("rows has 0 items, expected at least 1")
        pending = PendingRows(rows, call)
        self._queue.put(pending)
        return pending

    def close(self) -> None:
        """Ends the worker after its running batch; what still waits fails with NotReadyError."""
        self._queue.close()
        self._thread.join()
        self._queue.fail_all(NotReadyError("the server is shutting down"))

    def _work(self) -> None:
        while True:
            with self._queue.changed:
                self._queue.changed.wait_for(lambda: len(self._queue) or self._queue.is_closed)
                if self._config.max_wait_ms:
                    self._queue.changed.wait_for(self._has_full_batch, self._config.max_wait_ms / 1000)
                if self._queue.is_closed:
                    return
                window = self._take_window()
            for batch in _batches(window, self._config):
                self._run([item for item in batch if self._keep(item)])

    def _has_full_batch(self) -> bool:
        return self._queue.is_closed or self.num_waiting_texts >= self._config.max_batch_texts

    def _take_window(self) -> list[Item]:
        """Takes waiting rows of the calls in turn, about ``lookahead_batches`` batches' worth."""
        budget = self._config.max_batch_tokens * self._config.lookahead_batches
        most = self._config.max_batch_texts * self._config.lookahead_batches
        items: list[Item] = []
        while len(items) < most and budget > 0:
            pending = self._queue.take()
            if pending is None:
                break
            end = min(pending.next_row + _ROWS_A_TURN, len(pending.rows))
            items += [(pending, row) for row in range(pending.next_row, end)]
            budget -= sum(len(row) for row in pending.rows[pending.next_row : end])
            pending.next_row = end
            if end < len(pending.rows):
                self._queue.put_back(pending)
        return items

    def _keep(self, item: Item) -> bool:
        pending = item[0]
        if pending.is_wanted():
            return True
        pending.end(
            DeadlineExceededError("the deadline passed before the texts were encoded")
            if pending.call.is_expired()
            else CallCancelledError("the caller cancelled before the texts were encoded")
        )
        self._count_dropped(pending, num_rows=1)
        return False

    def _count_left(self, pending: PendingRows) -> None:
        self._count_dropped(pending, num_rows=len(pending.rows) - pending.next_row)

    def _count_dropped(self, pending: PendingRows, *, num_rows: int) -> None:
        self._metrics.dropped(self._name, "expired" if pending.call.is_expired() else "cancelled", num_rows)

    def _run(self, items: list[Item]) -> None:
        if not items:
            return
        started = time.monotonic()
        places: dict[PendingRows, list[int]] = {}  # where the rows of each call are in the batch
        for place, (pending, _) in enumerate(items):
            places.setdefault(pending, []).append(place)
        try:
            facets = self._encode_rows([pending.rows[row] for pending, row in items])
            _check_facets(facets, len(items))
        except Exception as error:  # any failure of the model belongs to these calls, not to the worker
            self._handle_failure(error, items, list(places))
            return
        self._failures.forget()
        self._metrics.ran(
            self._name,
            texts=len(items),
            calls=len(places),
            seconds=time.monotonic() - started,
            tokens=sum(len(pending.rows[row]) for pending, row in items),
        )
        for pending, own in places.items():
            pending.deliver([items[place][1] for place in own], facets[own], started=started)

    def _handle_failure(self, error: Exception, items: list[Item], calls: list[PendingRows]) -> None:
        if len(calls) > 1:
            for pending in calls:
                self._run([item for item in items if item[0] is pending])
            return
        self._failures.count()
        # Not the message: it may hold words of the text.
        stack = "".join(traceback.format_tb(error.__traceback__))
        logger.error("model %s failed on a batch: %s\n%s", self._name, type(error).__name__, stack)
        calls[0].end(error)


def _check_facets(facets: NDArray[np.float32], num_rows: int) -> None:
    if facets.ndim != 3 or len(facets) != num_rows:
        raise ModelFailureError(f"the model returned shape {facets.shape} for {num_rows} texts")
    if not np.isfinite(facets).all():
        raise ModelFailureError("the model returned numbers that are not finite")


def _batches(items: list[Item], config: BatcherConfig) -> list[list[Item]]:
    """Cuts rows into batches of similar length within the token budget, padding counted; longest first."""
    batches: list[list[Item]] = []
    longest = 0
    for item in sorted(items, key=lambda item: -len(item[0].rows[item[1]])):
        fits = batches and len(batches[-1]) < config.max_batch_texts
        if not fits or longest * (len(batches[-1]) + 1) > config.max_batch_tokens:
            batches.append([])
            longest = len(item[0].rows[item[1]])
        batches[-1].append(item)
    return batches
