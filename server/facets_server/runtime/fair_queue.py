"""The one queue behind every wait of the server, for a permit or for the model, and the fair lock that is made of it.

Calls wait in the order of asking. Whoever has more to do than one share goes to the end again (round-robin), so that
a bulk request does not hold up a single question. Nobody waits past the end of the call: a waiter ends once, by
whoever comes first, the owner of the queue or the call itself, and a waiter that gave up is no longer in the queue.

The lock is for what only a few calls may do at a time: a model whose work is one library call rather than rows that a
batcher could fuse, and the permits of admission control. Long work takes the lock several times.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from facets.errors import FacetsError, NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError

__all__ = ["FairLock", "FairQueue", "QueueFullError", "Waiter"]


class QueueFullError(FacetsError):
    """As many wait as may wait."""


class Waiter:
    """One call that waits for something.

    Attributes:
        call: Its deadline and cancellation end the wait.
    """

    def __init__(self, call: CallContext) -> None:
        self.call = call
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._has_ended = False
        self._error: Exception | None = None
        self._when_ended: Callable[[], None] | None = None
        self._leave: Callable[[], None] | None = None

    def is_wanted(self) -> bool:
        """True while somebody waits."""
        return not self._has_ended and self.call.is_wanted()

    def was_granted(self) -> bool:
        """True when the wait has ended without an error."""
        return self._has_ended and self._error is None

    def end(self, error: Exception | None = None) -> bool:
        """Ends the wait, with an error or with what was waited for.

        Returns:
            False when it had ended before; then this changes nothing.
        """
        with self._lock:
            if self._has_ended:
                return False
            self._error, self._has_ended = error, True  # in this order: wait looks at them without the lock
            callback, self._when_ended = self._when_ended, None
        self._woken.set()
        if callback is not None:
            callback()
        return True

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Calls back once when the wait ends, at once when it has ended."""
        with self._lock:
            if not self._has_ended:
                self._when_ended = callback
                return
        callback()

    def wait(self) -> None:
        """Waits for the end, at most until the end of the call.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
            NotReadyError: The queue was closed first.
            Exception: What ``end`` was given.
        """
        while not self._has_ended:
            self.call.wait(self._woken)  # also woken by the end of the call
            self._look_at_call()
            if not self._has_ended:
                self._woken.clear()
        if self._error is not None:
            raise self._error

    async def ended(self) -> None:
        """The same on an event loop, which stays free; in place of ``when_ended``.

        Raises:
            asyncio.CancelledError: The task was cancelled; the wait has ended unless it ended well just before.
        """
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        wakes = _Wakes.of(loop)
        self.when_ended(lambda: wakes.wake(woken))
        timer = None if self.call.deadline is None else loop.call_at(self.call.deadline, self._look_at_call)
        try:
            await woken
        except asyncio.CancelledError:
            self.give_up(CallCancelledError("the caller cancelled the call"))
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if self._error is not None:
            raise self._error

    def give_up(self, error: Exception) -> bool:
        """Ends the wait and leaves the queue.

        Returns:
            False when it had ended before; then this changes nothing.
        """
        if not self.end(error):
            return False
        if self._leave is not None:
            self._leave()
        return True

    def _look_at_call(self) -> None:
        try:
            self.call.check()
        except FacetsError as error:
            self.give_up(error)


class _Wakes:
    """Wakes coroutines of one loop from other threads: those of a whole batch with one message to the loop."""

    _of_loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, "_Wakes"]] = WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._woken: deque[asyncio.Future[None]] = deque()
        self._is_told = False

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "_Wakes":
        """The one of a loop, which must be running in this thread."""
        if loop not in cls._of_loops:
            cls._of_loops[loop] = cls(loop)
        return cls._of_loops[loop]

    def wake(self, woken: "asyncio.Future[None]") -> None:
        self._woken.append(woken)
        loop = self._loop()
        if not self._is_told and loop is not None:
            self._is_told = True
            loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._is_told = False  # first: what comes from now on is told anew
        while self._woken:
            woken = self._woken.popleft()
            if not woken.done():
                woken.set_result(None)


WaiterT = TypeVar("WaiterT", bound=Waiter)


class FairQueue(Generic[WaiterT]):
    """Waiters in turn; may be shared by threads.

    Attributes:
        changed: Held while the queue changes, notified when a waiter comes and when the queue closes; the owner keeps
            what belongs together with the queue under it.
        is_closed: True once nobody may wait any more.
    """

    def __init__(self, on_leave: Callable[[WaiterT], None] | None = None) -> None:
        """Makes an empty queue.

        Args:
            on_leave: Called with a waiter that gave up and has left the queue.
        """
        self._on_leave = on_leave
        self.changed = threading.Condition()
        self.is_closed = False
        self._waiters: deque[WaiterT] = deque()
        self._notified_at = 1  # so many waiters

    def __len__(self) -> int:
        return len(self._waiters)

    def put(self, waiter: WaiterT, *, max_waiting: int | None = None) -> None:
        """Puts a waiter at the end.

        Raises:
            QueueFullError: ``max_waiting`` wait already.
            NotReadyError: The queue is closed.
        """
        with self.changed:
            if self.is_closed:
                raise NotReadyError("the server is shutting down")
            if max_waiting is not None and len(self._waiters) >= max_waiting:
                raise QueueFullError(f"{len(self._waiters)} calls wait, the limit is {max_waiting}")
            waiter._leave = lambda: self._discard(waiter)
            self._waiters.append(waiter)
            if len(self._waiters) >= self._notified_at:
                self.changed.notify_all()

    def wait_for_waiters(self, num_waiters: int, *, timeout_s: float | None = None) -> None:
        """Waits until so many wait or the queue is closed; for its only owner, who holds ``changed``."""
        self._notified_at = num_waiters
        try:
            self.changed.wait_for(lambda: len(self._waiters) >= num_waiters or self.is_closed, timeout_s)
        finally:
            self._notified_at = 1

    def take(self, wanted: Callable[[WaiterT], bool] | None = None) -> WaiterT | None:
        """Takes the first waiter out, of those that are wanted; None when no such one waits."""
        with self.changed:
            found = next((one for one in self._waiters if wanted is None or wanted(one)), None)
            if found is not None:
                self._waiters.remove(found)
            return found

    def put_back(self, waiter: WaiterT) -> None:
        """Puts a waiter that was taken at the end again: it has had its share of this round."""
        with self.changed:
            self._waiters.append(waiter)

    def snapshot(self) -> list[WaiterT]:
        """Who waits now, in order."""
        with self.changed:
            return list(self._waiters)

    def close(self) -> None:
        """Lets nobody wait any more."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def fail_all(self, error: Exception) -> None:
        """Ends every wait with an error."""
        while (waiter := self.take()) is not None:
            waiter.end(error)

    def _discard(self, waiter: WaiterT) -> None:
        with self.changed:
            if waiter not in self._waiters:
                return
            self._waiters.remove(waiter)
        if self._on_leave is not None:
            self._on_leave(waiter)


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
