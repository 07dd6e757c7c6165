"""A fair lock: first come, first served, and nobody waits past the end of the call.

For what only a few calls may do at a time: a model whose work is one library call rather than rows that a batcher
could fuse, and the permits of admission control. Long work takes the lock several times, so that a bulk request does
not hold up a single question.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from facets.errors import NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairQueue, Waiter

__all__ = ["FairLock"]


class FairLock:
    """A lock that up to ``num_holders`` calls hold at a time."""

    def __init__(self, num_holders: int = 1) -> None:
        self._most = num_holders
        self._num_held = 0
        self._queue: FairQueue[Waiter] = FairQueue()

    @property
    def num_held(self) -> int:
        """Calls that hold the lock now."""
        return self._num_held

    @property
    def num_waiting(self) -> int:
        """Calls that wait for it now."""
        return len(self._queue)

    def is_idle(self) -> bool:
        """True when nobody holds the lock or waits."""
        with self._queue.changed:
            return not (self._num_held or len(self._queue))

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
            self.release()

    def acquire(self, call: CallContext, *, max_waiting: int | None = None) -> None:
        """Takes the lock; adds the time it took to the call's. Whoever takes it calls ``release``.

        Args:
            call: For whom.
            max_waiting: Refused instead of waiting when so many wait; None: never.

        Raises:
            QueueFullError: ``max_waiting`` calls wait.
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
                    self.release()
                raise
        _count_wait(call, asked)

    def _ask(self, call: CallContext, max_waiting: int | None) -> Waiter | None:
        """Takes the lock when it is free, else joins the queue and returns the waiter."""
        with self._queue.changed:
            if self._num_held < self._most and not len(self._queue) and not self._queue.is_closed:
                self._num_held += 1
                return None
            waiter = Waiter(call)
            self._queue.put(waiter, max_waiting=max_waiting)
            return waiter

    def release(self) -> None:
        """Gives the lock back; it goes straight to whoever has waited longest."""
        with self._queue.changed:
            while (waiter := self._queue.take()) is not None:
                if waiter.end():
                    return
            self._num_held -= 1

    def close(self) -> None:
        """Refuses everybody from now on; whoever holds the lock keeps it to the end."""
        self._queue.close()
        self._queue.fail_all(NotReadyError("the server is shutting down"))


def _count_wait(call: CallContext, asked: float) -> None:
    seconds = time.monotonic() - asked
    call.queue_ms += seconds * 1000
    call.stages.add("queue", asked, seconds)
