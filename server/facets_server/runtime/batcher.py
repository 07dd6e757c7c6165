"""The dynamic batcher: one worker thread a model, texts of many calls in one forward pass.

Calls put their rows in, token rows or texts, and wait. The worker takes what has gathered while the batch before was
running, a few rows a turn and turns by caller, sorts by length, and cuts batches of at most a token budget, padding
counted where the model pads. Rows of short calls and of long ones are never in one batch, and after each batch of long
calls it is the turn of the short ones: a single query waits for one batch of a bulk load. Rows that nobody waits for
any more are dropped before the model sees them. When a batch of several calls fails, each call is run alone: one bad
text does not fail its neighbours.

    rows of calls -> turns by caller -> sort by length -> token budget -> encode -> back to the calls

Many callers who send one text each and wait for it come back together: after a batch of N calls the worker waits until
N/2 are there again, though not for long. Without that it would take the first few at once, and batches would get
ever smaller.

A batch takes at most about ``max_batch_s``, by the speed of those before, whatever the machine: who comes waits for it.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.devices import is_out_of_memory, no_memory_for
from facets.errors import NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError, ModelFailureError
from facets_server.runtime.fair_queue import FairQueue, Waiter
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.models import Failures

logger = logging.getLogger(__name__)

RowT = TypeVar("RowT")
Columns = tuple[NDArray[Any], ...]  # arrays whose first axis is the rows; objects where these differ in shape

_ROWS_A_TURN = 32  # rows taken of one call before the next turn; a call of no more is a short one
_SMALLEST_PART = 16  # of the most tokens of a batch, to which it may shrink that it takes no longer than it may
_SMOOTHING = 0.3  # weight of the newest batch in the running mean of the model's speed
_SHORT, _LONG = "short", "long"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchLane(Generic[RowT]):
    """What one batcher asks of a model.

    Attributes:
        name: Of the worker.
        model: Name of the model, for the metrics.
        encode: Rows in, arrays out, one row of each for each of them; only called by the worker.
        length: Tokens of a row, at least about.
        max_tokens: Most tokens of one forward pass; a longer row has one of its own.
        pads: Whether every row of a forward pass costs as much as the longest.
    """

    name: str
    model: str
    encode: Callable[[Sequence[RowT]], Columns]
    length: Callable[[RowT], int]
    max_tokens: int
    pads: bool


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """What the model made of the rows of one call.

    Attributes:
        columns: What ``BatchLane.encode`` gives, in the order of the rows.
        queue_ms: Milliseconds from submission to the first batch that held one of the rows.
        inference_ms: Milliseconds of all the batches that held one of the rows.
        submitted: When they were submitted, by ``time.monotonic()``.
    """

    columns: Columns
    queue_ms: float
    inference_ms: float
    submitted: float


class PendingRows(Waiter, Generic[RowT]):
    """Rows that wait for the model; made by ``Batcher.submit``."""

    def __init__(self, rows: Sequence[RowT], call: CallContext) -> None:
        super().__init__(call, kind=_SHORT if len(rows) <= _ROWS_A_TURN else _LONG)
        self.rows = rows
        self.submitted = time.monotonic()
        self.next_row = 0  # first row not yet taken by the worker
        self._columns: Columns | None = None
        self._num_missing = len(rows)
        self._started = self.submitted
        self._inference_s = 0.0

    def result(self) -> EncodedRows:
        """Waits until all rows are encoded, at most until the deadline of the call.

        Raises:
            DeadlineExceededError: The deadline passed first; rows that were not yet encoded are dropped.
            CallCancelledError: The caller cancelled first; likewise.
            ModelFailureError: The model failed on these rows.
            OverloadedError: The device has no memory left, not even for one of them.
            NotReadyError: The batcher was closed first.
        """
        self.wait()
        assert self._columns is not None
        queue_ms = (self._started - self.submitted) * 1000
        return EncodedRows(self._columns, queue_ms, self._inference_s * 1000, self.submitted)

    def deliver(self, positions: Sequence[int], columns: Columns, *, started: float) -> None:
        """Takes what the model made of some rows; the worker calls it.

        Args:
            positions: Which rows.
            columns: Arrays of ``len(positions)`` rows.
            started: When their batch was started, by ``time.monotonic()``.
        """
        if self._columns is None:
            self._started = started
            if len(positions) == 1 == len(self.rows):  # the many small calls
                self._columns = columns
            else:
                self._columns = tuple(np.empty((len(self.rows), *part.shape[1:]), part.dtype) for part in columns)
        if self._columns is not columns:
            for whole, part in zip(self._columns, columns, strict=True):
                whole[list(positions)] = part
        self._inference_s += time.monotonic() - started
        self._num_missing -= len(positions)
        if not self._num_missing:
            self.end()


class Batcher(Generic[RowT]):
    """Fuses the rows of concurrent calls into batches for one model."""

    def __init__(
        self, lane: BatchLane[RowT], config: BatcherConfig, *, metrics: BatchMetrics, failures: Failures | None = None
    ) -> None:
        """Starts the worker thread.

        Args:
            lane: What is asked of the model.
            config: Batch size, waiting time.
            metrics: Where batches are counted.
            failures: Where failed batches are counted; None: apart.
        """
        self._lane = lane
        self._config = config
        self._metrics = metrics
        self._failures = failures if failures is not None else Failures()
        self._queue: FairQueue[PendingRows[RowT]] = FairQueue(self._count_left)
        self._num_taken = 0  # rows that the worker has taken and not yet begun with
        self._calls_before, self._seconds_before = 0, 0.0  # of the batch before
        self._seconds_per_token = 0.0
        self._thread = threading.Thread(target=self._work, name=f"batcher-{lane.name}", daemon=True)
        self._thread.start()

    @property
    def num_waiting_texts(self) -> int:
        """Texts that wait for the model now: in the queue, or taken from it for one of the next batches."""
        return self._num_taken + sum(len(pending.rows) - pending.next_row for pending in self._queue.snapshot())

    def is_healthy(self) -> bool:
        """False when the last batches failed one after the other or the worker is gone."""
        return self._thread.is_alive() and not self._failures.are_many()

    def submit(self, rows: Sequence[RowT], call: CallContext) -> PendingRows[RowT]:
        """Puts rows into the queue.

        Args:
            rows: At least one row, none of them empty.
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
        long: list[list[tuple[PendingRows[RowT], int]]] = []  # taken together, to be sorted, and run one by one
        while long or self._gather():
            for batch in self._batches(self._take(1, _SHORT)):
                self._begin(batch)
            if not long:
                long = self._batches(self._take(self._config.lookahead_batches, _LONG))
            if long:
                self._begin(long.pop(0))

    def _begin(self, batch: list[tuple[PendingRows[RowT], int]]) -> None:
        self._num_taken -= len(batch)
        self._run([item for item in batch if self._keep(item)])

    def _gather(self) -> bool:
        """Waits until there is enough to begin with; False: closed."""
        with self._queue.changed:
            self._queue.wait_for_waiters(1)
            if self._config.max_wait_ms:
                self._queue.changed.wait_for(self._has_full_batch, self._config.max_wait_ms / 1000)
            else:
                patience_s = self._config.patience * self._seconds_before
                self._queue.wait_for_waiters(self._calls_before // 2, timeout_s=patience_s)
            return not self._queue.is_closed

    def _has_full_batch(self) -> bool:
        return self._queue.is_closed or self.num_waiting_texts >= self._config.max_batch_texts

    def _take(self, num_batches: int, kind: str) -> list[tuple[PendingRows[RowT], int]]:
        """Takes waiting rows of the calls of one kind, in turn, for about so many batches; none once closed."""
        budget = self._max_tokens() * num_batches
        most = self._config.max_batch_texts * num_batches
        items: list[tuple[PendingRows[RowT], int]] = []
        while len(items) < most and budget > 0 and not self._queue.is_closed:
            pending = self._queue.take(kind, cost=self._tokens_of_turn)
            if pending is None:
                break
            rows = _turn_of(pending)
            items += [(pending, row) for row in rows]
            budget -= self._tokens_of_turn(pending)
            pending.next_row = rows.stop
            if rows.stop < len(pending.rows):
                self._queue.put_back(pending)
        self._num_taken += len(items)
        return items

    def _max_tokens(self) -> int:
        """Of the next batch: what is there to come waits for it.

        A power of two of parts of the most, so that on one machine the same texts make the same batches: in half
        precision the last bits of a facet depend on what it is computed with.
        """
        most, per_token = self._lane.max_tokens, self._seconds_per_token
        parts = 1
        while per_token and parts < _SMALLEST_PART and most // parts * per_token > self._config.max_batch_s:
            parts *= 2
        return most // parts

    def _tokens_of_turn(self, pending: PendingRows[RowT]) -> int:
        return sum(self._lane.length(pending.rows[row]) for row in _turn_of(pending))

    def _batches(self, items: list[tuple[PendingRows[RowT], int]]) -> list[list[tuple[PendingRows[RowT], int]]]:
        """Cuts rows into batches of similar length within the token budget; longest first."""
        batches: list[list[tuple[PendingRows[RowT], int]]] = []
        used, longest, most = 0, 0, self._max_tokens()
        lengths = [self._lane.length(pending.rows[row]) for pending, row in items]
        for place in sorted(range(len(items)), key=lambda place: -lengths[place]):
            used += longest if self._lane.pads else lengths[place]
            if not batches or len(batches[-1]) == self._config.max_batch_texts or used > most:
                batches.append([])
                used = longest = lengths[place]
            batches[-1].append(items[place])
        return batches

    def _keep(self, item: tuple[PendingRows[RowT], int]) -> bool:
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

    def _count_left(self, pending: PendingRows[RowT]) -> None:
        self._count_dropped(pending, num_rows=len(pending.rows) - pending.next_row)

    def _count_dropped(self, pending: PendingRows[RowT], *, num_rows: int) -> None:
        self._metrics.dropped(self._lane.model, "expired" if pending.call.is_expired() else "cancelled", num_rows)

    def _run(self, items: list[tuple[PendingRows[RowT], int]]) -> None:
        if not items:
            return
        started = time.monotonic()
        places: dict[PendingRows[RowT], list[int]] = {}  # where the rows of each call are in the batch
        for place, (pending, _) in enumerate(items):
            places.setdefault(pending, []).append(place)
        try:
            columns = self._lane.encode([pending.rows[row] for pending, row in items])
            _check_columns(columns, len(items))
        except Exception as error:  # any failure of the model belongs to these calls, not to the worker
            self._handle_failure(error, items, list(places))
            return
        self._failures.forget()
        self._calls_before, self._seconds_before = len(places), time.monotonic() - started
        lengths = [self._lane.length(pending.rows[row]) for pending, row in items]
        self._note_speed(max(lengths) * len(items) if self._lane.pads else sum(lengths), self._seconds_before)
        self._metrics.ran(
            self._lane.model, texts=len(items), calls=len(places), seconds=self._seconds_before, tokens=sum(lengths)
        )
        for pending, own in places.items():
            try:
                columns_of_it = tuple(part[own] for part in columns)
                pending.deliver([items[place][1] for place in own], columns_of_it, started=started)
            except Exception as error:  # no room for it, or nobody to tell: the worker goes on with the others
                self._fail(pending, error)

    def _note_speed(self, num_tokens: int, seconds: float) -> None:
        """Small batches say little: most of their time is not that of their tokens."""
        if num_tokens >= self._lane.max_tokens // _SMALLEST_PART:
            now, before = seconds / max(1, num_tokens), self._seconds_per_token
            self._seconds_per_token = before + _SMOOTHING * (now - before) if before else now

    def _handle_failure(
        self, error: Exception, items: list[tuple[PendingRows[RowT], int]], calls: list[PendingRows[RowT]]
    ) -> None:
        if len(calls) > 1:
            for pending in calls:
                self._run([item for item in items if item[0] is pending])
            return
        if is_out_of_memory(error):
            if len(items) > 1:
                for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                    self._run([item for item in half if self._keep(item)])
                return
            error = no_memory_for("one text")
        self._fail(calls[0], error)

    def _fail(self, pending: PendingRows[RowT], error: Exception) -> None:
        self._failures.count()
        # Not the message: it may hold words of the text.
        stack = "".join(traceback.format_tb(error.__traceback__))
        logger.error("model %s failed on a batch: %s\n%s", self._lane.model, type(error).__name__, stack)
        pending.end(error)


def _turn_of(pending: PendingRows[Any]) -> range:
    """The rows of one turn of a call."""
    return range(pending.next_row, min(pending.next_row + _ROWS_A_TURN, len(pending.rows)))


def _check_columns(columns: Columns, num_rows: int) -> None:
    if not columns or any(len(part) != num_rows for part in columns):
        shapes = ", ".join(str(part.shape) for part in columns)
        raise ModelFailureError(f"the model returned shapes {shapes} for {num_rows} texts")
    if not all(np.isfinite(part).all() for part in columns if part.dtype != object):
        raise ModelFailureError("the model returned numbers that are not finite")
