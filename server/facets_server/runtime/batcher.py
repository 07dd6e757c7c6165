"""Dynamic batching: one worker thread per lane of a model fuses the texts of many calls into forward passes.

The worker takes rows with callers taking turns, sorts them by length, and cuts batches within a token budget. After
each batch of long calls the short ones have their turn. After a batch of N calls the worker waits briefly until N/2
calls have arrived: callers that send one text at a time all send the next one together, else batches would shrink.
"""

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.devices import is_out_of_memory, no_memory_for
from facets_server.runtime.call_context import CallContext, Stage
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.errors import ModelFailureError
from facets_server.runtime.fair_queue import FairQueue, Waiter
from facets_server.runtime.models import Failures

if TYPE_CHECKING:
    from facets_server.runtime.metrics import BatchMetrics

logger = logging.getLogger(__name__)

RowT = TypeVar("RowT")
Columns = tuple[NDArray[Any], ...]  # arrays whose first axis is the rows; object arrays if the rows differ in shape

_ROWS_PER_TURN = 32  # most rows taken from one call per turn; a short call has no more than these
_LOOKAHEAD_BATCHES = 4  # batches' worth of long calls that are sorted by length together
MAX_BATCH_S = 0.01  # target for a forward pass, from the speed of earlier ones: new calls wait for it
MAX_LONE_BATCH_S = 0.2  # the same while there is one caller: larger batches take up to a quarter less time
_LONE_AFTER_S = 10.0  # without another caller
PATIENCE = 0.5  # longest wait for the previous batch's callers, as a multiple of that batch's time
_MAX_PARTS = 16  # the token budget shrinks to no less than its maximum divided by this
_SMOOTHING = 0.3  # weight of the newest batch in the running mean of the model's speed


class PendingRows(Waiter, Generic[RowT]):
    """Rows of one call that wait for the model; made by ``Batcher.submit``."""

    def __init__(self, rows: Sequence[RowT], call: CallContext) -> None:
        super().__init__(call)
        self.rows = rows
        self.submitted = self.started = time.monotonic()  # started: the first batch with one of the rows
        self.next_row = 0  # first row that the worker has not taken
        self.inference_s = 0.0  # of all batches with one of the rows
        self._columns: Columns | None = None
        self._num_missing = len(rows)

    @property
    def turn(self) -> range:
        """The rows of the next turn."""
        return range(self.next_row, min(self.next_row + _ROWS_PER_TURN, len(self.rows)))

    def columns(self) -> Columns:
        """Waits for the arrays of ``encode``, in the order of the rows; raises as ``Waiter.wait``."""
        self.wait()
        assert self._columns is not None
        waited_s, call = self.started - self.submitted, self.call
        call.stages.add(Stage("batch", self.submitted, waited_s, len(self.rows)))
        call.stages.add(Stage("model", self.started, self.inference_s, len(self.rows)))
        return self._columns

    def deliver(self, positions: Sequence[int], columns: Columns, *, started: float) -> None:
        """Stores the results of the rows at ``positions``, from a batch started at ``started``."""
        if self._columns is None:
            self.started = started
            self._columns = tuple(np.empty((len(self.rows), *part.shape[1:]), part.dtype) for part in columns)
        for whole, part in zip(self._columns, columns, strict=True):
            whole[list(positions)] = part
        self.inference_s += time.monotonic() - started
        self._num_missing -= len(positions)
        if not self._num_missing:
            self.end()


_Batch = list[tuple[PendingRows[RowT], int]]  # calls and positions of rows


class Batcher(Generic[RowT]):
    """Fuses the rows of concurrent calls into batches for one lane of the model with the name ``model``.

    Only the worker calls ``encode``, which turns rows into arrays with one row for each. ``length`` is the number of
    tokens of a row, possibly approximate; with ``pads`` every row of a forward pass costs as much as the longest.
    """

    def __init__(
        self,
        lane: str,
        encode: Callable[[Sequence[RowT]], Columns],
        length: Callable[[RowT], int],
        config: BatcherConfig,
        *,
        model: str,
        pads: bool,
        metrics: "BatchMetrics",
        failures: Failures,
    ) -> None:
        """Starts the worker thread; ``failures`` counts failed batches."""
        self._encode, self._length, self._pads = encode, length, pads
        self._config = config
        self._model = model
        self._metrics = metrics
        self._failures = failures
        self._changed = threading.Condition()
        self._short: FairQueue[PendingRows[RowT]] = FairQueue(self._changed)
        self._long: FairQueue[PendingRows[RowT]] = FairQueue(self._changed)
        self._num_awaited = 1  # number of waiting calls that wakes the worker
        self._num_taken = 0  # rows taken from the queues whose batch has not begun
        self._last_num_calls, self._last_seconds = 0, 0.0  # of the previous batch
        self._seconds_per_token = 0.0
        self._last_caller, self._last_change = "", -math.inf  # named one, and when it came after another
        self._thread = threading.Thread(target=self._work, name=f"batcher-{lane}", daemon=True)
        self._thread.start()

    @property
    def num_waiting_texts(self) -> int:
        """Texts in the queues, or taken from them for one of the next batches."""
        waiting = [*self._short.snapshot(), *self._long.snapshot()]
        return self._num_taken + sum(len(pending.rows) - pending.next_row for pending in waiting)

    def is_healthy(self) -> bool:
        """False when the last batches failed one after the other or the worker is gone."""
        return self._thread.is_alive() and not self._failures.are_many()

    def submit(self, rows: Sequence[RowT], call: CallContext) -> PendingRows[RowT]:
        """Puts at least one row, none of them empty, into the queue; once closed, they fail with NotReadyError."""
        if not rows:
            raise ValueError("rows has 0 items, expected at least 1")
        pending = PendingRows(rows, call)
        queue = self._short if len(rows) <= _ROWS_PER_TURN else self._long
        with self._changed:
            if call.caller not in ("", self._last_caller):
                self._last_change = pending.submitted if self._last_caller else -math.inf
                self._last_caller = call.caller
            queue.put(pending)
            if self._num_waiting_calls() >= self._num_awaited:
                self._changed.notify_all()

        def leave(ended: Any) -> None:  # without `pending`: a cycle would keep the call until the next collection
            num_rows = len(ended.rows) - ended.next_row
            if num_rows and queue.remove(ended):
                self._count_dropped(ended, num_rows=num_rows)

        pending.add_done_callback(leave)
        return pending

    def close(self) -> None:
        """Ends the worker after the running batch; waiting rows fail with NotReadyError."""
        for queue in (self._short, self._long):
            queue.close()
        self._thread.join()

    def _work(self) -> None:
        long: list[_Batch[RowT]] = []  # taken and sorted together, run one by one
        while long or self._gather():
            for batch in self._batches(self._take(self._short, 1)):
                self._begin(batch)
            if not long:
                long = self._batches(self._take(self._long, _LOOKAHEAD_BATCHES))
            if long:
                self._begin(long.pop(0))

    def _gather(self) -> bool:
        """Waits until there are rows, and briefly for the callers of the previous batch; False: closed."""
        with self._changed:
            for num_calls, timeout_s in ((1, None), (self._last_num_calls // 2, PATIENCE * self._last_seconds)):
                self._num_awaited = num_calls
                self._changed.wait_for(
                    lambda: self._short.is_closed or self._num_waiting_calls() >= self._num_awaited, timeout_s
                )
            self._num_awaited = 1
            return not self._short.is_closed

    def _num_waiting_calls(self) -> int:
        return len(self._short) + len(self._long)

    def _begin(self, batch: _Batch[RowT]) -> None:
        self._num_taken -= len(batch)
        self._run([item for item in batch if self._is_wanted(item)])

    def _take(self, queue: FairQueue[PendingRows[RowT]], num_batches: int) -> _Batch[RowT]:
        """Takes rows from calls, in turns, for about ``num_batches`` batches; none once closed."""
        budget = self._max_tokens() * num_batches
        max_rows = self._config.max_batch_texts * num_batches
        items: _Batch[RowT] = []
        while len(items) < max_rows and budget > 0 and not queue.is_closed:
            pending = queue.take(cost=self._tokens_of_turn)
            if pending is None:
                break
            rows = pending.turn
            items += [(pending, row) for row in rows]
            budget -= self._tokens_of_turn(pending)
            pending.next_row = rows.stop
            if rows.stop < len(pending.rows):
                queue.put(pending)
        self._num_taken += len(items)
        return items

    def _max_tokens(self) -> int:
        """Token budget of the next batch: the maximum, halved so that equal texts form equal batches on a machine."""
        max_tokens, per_token = self._config.max_batch_tokens, self._seconds_per_token
        is_lone, num_parts = time.monotonic() - self._last_change > _LONE_AFTER_S, 1
        max_s = MAX_LONE_BATCH_S if is_lone else MAX_BATCH_S
        while per_token and num_parts < _MAX_PARTS and max_tokens // num_parts * per_token > max_s:
            num_parts *= 2  # in half precision the last bits of a facet depend on the batch
        return max(1, max_tokens // num_parts)  # 0 would take no rows for ever

    def _num_tokens(self, lengths: Sequence[int]) -> int:
        """Tokens of rows that are read together, with padding."""
        return max(lengths, default=0) * len(lengths) if self._pads else sum(lengths)

    def _tokens_of_turn(self, pending: PendingRows[RowT]) -> int:
        return sum(self._length(pending.rows[row]) for row in pending.turn)

    def _batches(self, items: _Batch[RowT]) -> list[_Batch[RowT]]:
        """Cuts rows into batches of similar length and of about the token budget, longest first."""
        batches: list[_Batch[RowT]] = []
        used, longest, budget = 0, 0, float(self._max_tokens())
        lengths = [self._length(pending.rows[row]) for pending, row in items]
        if (ratio := self._num_tokens(lengths) / budget) < 1.5:  # a second batch would hold a few rows
            budget *= max(1.0, ratio)
        for index in sorted(range(len(items)), key=lambda index: -lengths[index]):
            used += longest if self._pads else lengths[index]
            if not batches or len(batches[-1]) == self._config.max_batch_texts or used > budget:
                batches.append([])
                used = longest = lengths[index]
            batches[-1].append(items[index])
        return batches

    def _is_wanted(self, item: tuple[PendingRows[RowT], int]) -> bool:
        pending = item[0]
        pending.check_call()
        if pending.done():
            self._count_dropped(pending, num_rows=1)
        return not pending.done()

    def _count_dropped(self, pending: PendingRows[RowT], *, num_rows: int) -> None:
        reason = "expired" if pending.call.is_expired() else "cancelled"
        self._metrics.dropped.labels(self._model, reason).inc(num_rows)

    def _run(self, items: _Batch[RowT]) -> None:
        if not items:
            return
        started, worked = time.monotonic(), time.thread_time()
        batch_rows: dict[PendingRows[RowT], list[int]] = {}  # of each call
        for index, (pending, _) in enumerate(items):
            batch_rows.setdefault(pending, []).append(index)
        try:
            columns = self._encode([pending.rows[row] for pending, row in items])
            _check_columns(columns, len(items))
        except Exception as error:  # a model failure affects these calls, not the worker
            self._handle_failure(error, items, list(batch_rows))
            return
        self._failures.num = 0
        self._last_num_calls, self._last_seconds = len(batch_rows), time.monotonic() - started
        lengths = [self._length(pending.rows[row]) for pending, row in items]
        # Processor time: batches must not shrink because others use the machine.
        self._note_speed(self._num_tokens(lengths), time.thread_time() - worked)
        self._metrics.ran(
            self._model, texts=len(items), calls=len(batch_rows), seconds=self._last_seconds, tokens=sum(lengths)
        )
        for pending, indices in batch_rows.items():
            try:
                columns_of_call = tuple(part[indices] for part in columns)
                pending.deliver([items[index][1] for index in indices], columns_of_call, started=started)
            except Exception as error:  # for example no memory for its arrays
                self._fail(pending, error)

    def _note_speed(self, num_tokens: int, seconds: float) -> None:
        if num_tokens >= self._config.max_batch_tokens // _MAX_PARTS:  # fixed costs dominate smaller batches
            newest, mean = seconds / max(1, num_tokens), self._seconds_per_token
            self._seconds_per_token = mean + _SMOOTHING * (newest - mean) if mean else newest

    def _handle_failure(self, error: Exception, items: _Batch[RowT], calls: list[PendingRows[RowT]]) -> None:
        if len(calls) > 1:
            for pending in calls:
                self._run([item for item in items if item[0] is pending])
        elif is_out_of_memory(error) and len(items) > 1:
            for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                self._run([item for item in half if self._is_wanted(item)])
        else:
            self._fail(calls[0], no_memory_for("one text") if is_out_of_memory(error) else error)

    def _fail(self, pending: PendingRows[RowT], error: Exception) -> None:
        self._failures.num += 1
        # The stack without the message of the exception, which may hold user text.
        stack = "".join(traceback.format_tb(error.__traceback__))
        logger.error("model %s failed on a batch: %s\n%s", self._model, type(error).__name__, stack)
        pending.end(error)


def _check_columns(columns: Columns, num_rows: int) -> None:
    if not columns or any(len(part) != num_rows for part in columns):
        shapes = ", ".join(str(part.shape) for part in columns)
        raise ModelFailureError(f"the model returned shapes {shapes} for {num_rows} texts")
    if not all(np.isfinite(part).all() for part in columns if part.dtype != object):
        raise ModelFailureError("the model returned numbers that are not finite")
