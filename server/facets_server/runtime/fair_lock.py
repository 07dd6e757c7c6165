"""A fair lock: callers take turns, and nobody waits past the end of the call.

For what only a few calls may do at a time: a model whose work is one library call rather than rows that a batcher
could fuse, and the permits of admission control. Long work takes the lock several times.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from facets.errors import NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairQueue, QueueFullError, Waiter


class FairLock:
    """A lock that up to ``num_holders`` calls hold at a time."""

    def __init__(self, num_holders: int = 1, *, num_reserved: int = 0) -> None:
        """Held by nobody.

        Args:
            num_holders: How many may hold it at a time.
            num_reserved: Of these, how many only callers with fewer than that may have: whoever comes finds one.
        """
        self._most = num_holders
        self._num_reserved = num_reserved
        self._held: Counter[str] = Counter()  # by caller
        self._queue: FairQueue[Waiter] = FairQueue()

    @property
    def num_held(self) -> int:
        """Calls that hold the lock now."""
        return self._held.total()

    @property
    def num_waiting(self) -> int:
        """Calls that wait for it now."""
        return len(self._queue)

    def is_idle(self) -> bool:
        """True when nobody holds the lock or waits."""
        with self._queue.changed:
            return not (self._held or len(self._queue))

    @contextmanager
    def hold(self, call: CallContext) -> Iterator[None]:
        """Waits for the lock and gives it back at the end; adds both times to the call.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
            NotReadyError: Closed.
        """
        self.acquire(call)
        started = time.monotonic()
        try:
            call.check()
            yield
        finally:
            seconds = time.monotonic() - started
            call.inference_ms += seconds * 1000
            call.stages.add("model", started, seconds)
            self.release(call)

    def acquire(self, call: CallContext, *, max_waiting: int | None = None) -> None:
        """Takes the lock; adds the time it took to the call's. Whoever takes it calls ``release``.

        Args:
            call: For whom.
            max_waiting: When so many wait, one of a caller who has more places than this one is refused, else this
                call; None: never.

        Raises:
            QueueFullError: ``max_waiting`` calls wait, at once or later.
            DeadlineExceededError, CallCancelledError, NotReadyError: As for ``hold``.
        """
        asked = time.monotonic()
        waiter = self._ask(call, max_waiting)
        if waiter is not None:
            waiter.wait()
        _count_wait(call, asked)

    async def acquired(self, call: CallContext, *, max_waiting: int | None = None) -> None:
        """``acquire`` on an event loop, which stays free."""
        asked = time.monotonic()
        waiter = self._ask(call, max_waiting)
        if waiter is not None:
            try:
                await waiter.ended()
            except asyncio.CancelledError:
                if waiter.was_granted():  # and nobody is there to take it
                    self.release(call)
                raise
        _count_wait(call, asked)

    def _ask(self, call: CallContext, max_waiting: int | None) -> Waiter | None:
        """Takes the lock when it is free, else joins the queue and returns the waiter."""
        with self._queue.changed:
            # Callers who wait while it is free may not have it: what is left is reserved for others.
            if self._may_have(call.caller) and not self._queue.is_closed:
                self._held[call.caller] += 1
                return None
            waiter = Waiter(call, may_give_way=max_waiting is not None)
            gone = self._make_place(call, max_waiting)
            self._queue.put(waiter)
        if gone is not None:
            gone.end(QueueFullError(f"{max_waiting} calls wait, and other callers have fewer places"))
        return waiter

    def _make_place(self, call: CallContext, max_waiting: int | None) -> Waiter | None:
        """Whoever has to leave the queue, so that a call may wait."""
        if max_waiting is None or len(self._queue) < max_waiting:
            return None
        gone = self._queue.give_way(call)
        if gone is None:
            raise QueueFullError(f"{len(self._queue)} calls wait, the limit is {max_waiting}")
        return gone

    def has_place(self, call: CallContext, max_waiting: int) -> bool:
        """Whether ``acquire`` would not refuse at once."""
        with self._queue.changed:
            is_free = self._may_have(call.caller) or len(self._queue) < max_waiting
            return is_free or self._queue.would_give_way(call)

    def _may_have(self, caller: str) -> bool:
        left = self._most - self._held.total()
        return left > (0 if self._held[caller] < self._num_reserved else self._num_reserved)

    def release(self, call: CallContext) -> None:
        """Gives the lock back; it goes straight to the caller whose turn it is.

        Args:
            call: That had it.
        """
        with self._queue.changed:
            self._held[call.caller] -= 1
            self._held += Counter()  # drops those who hold nothing: callers come and go without end
            while (waiter := self._queue.take(may_have=self._may_have)) is not None:
                if waiter.end():
                    self._held[waiter.call.caller] += 1

    def close(self) -> None:
        """Refuses everybody from now on; whoever holds the lock keeps it to the end."""
        self._queue.close()
        self._queue.fail_all(NotReadyError("the server is shutting down"))


def _count_wait(call: CallContext, asked: float) -> None:
    seconds = time.monotonic() - asked
    call.queue_ms += seconds * 1000
    call.stages.add("queue", asked, seconds)
