"""Queue and lock that share a scarce resource fairly between callers.

A caller is an API key, or a network address where the call has no key. The next turn goes to the caller with the least
virtual time, and to the oldest waiter of that caller. A turn adds its cost, divided by the weight of the caller, to the
caller's virtual time (start-time fair queueing, Goyal, Vin and Cheng 1996). A caller that arrives starts at the virtual
time of the caller being served: it gets no credit for the time it was away. A lone caller gets the full capacity.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from facets.errors import FacetsError, NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError

_MAX_REMEMBERED_CALLERS = 1024  # callers without waiters whose virtual time is still ahead of the clock


class QueueFullError(FacetsError):
    """The queue holds the maximum number of waiters."""


class Waiter:
    """A call that waits for a turn; the owner of the queue or the end of the call ends the wait.

    Waiters of different kinds wait in separate queues. A waiter that ``may_give_way`` may be refused in favour of a
    caller with fewer waiters.
    """

    def __init__(self, call: CallContext, *, kind: str = "", may_give_way: bool = False) -> None:
        self.call = call
        self.kind = kind
        self.may_give_way = may_give_way
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._has_ended = False
        self._error: Exception | None = None
        self._when_ended: Callable[[], None] | None = None
        self._leave_queue: Callable[[], None] | None = None

    def is_wanted(self) -> bool:
        """True while the wait has not ended and the caller still wants an answer."""
        return not self._has_ended and self.call.is_wanted()

    def was_granted(self) -> bool:
        """True when the wait has ended without an error."""
        return self._has_ended and self._error is None

    def end(self, error: Exception | None = None) -> bool:
        """Ends the wait, with an error or successfully; returns False when it had ended before."""
        with self._lock:
            if self._has_ended:
                return False
            self._error, self._has_ended = error, True  # the error first: wait reads both without the lock
            callback, self._when_ended = self._when_ended, None
        self._woken.set()
        if callback is not None:
            callback()
        return True

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Calls back once when the wait ends, or immediately if it has ended."""
        with self._lock:
            if not self._has_ended:
                self._when_ended = callback
                return
        callback()

    def wait(self) -> None:
        """Waits in a worker thread, at most until the end of the call.

        Raises:
            DeadlineExceededError, CallCancelledError: The call ended first.
            NotReadyError: The queue was closed first.
            Exception: The error given to ``end``.
        """
        while not self._has_ended:
            self.call.wait(self._woken)  # set when the call ends, too
            self._check_call()
            if not self._has_ended:
                self._woken.clear()
        if self._error is not None:
            raise self._error

    async def ended(self) -> None:
        """``wait`` for coroutines; replaces ``when_ended``. A wait may be granted just before it is cancelled."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        waker = _LoopWaker.of(loop)
        self.when_ended(lambda: waker.wake(woken))
        timer = None if self.call.deadline is None else loop.call_at(self.call.deadline, self._check_call)
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

    def give_up(self, error: Exception) -> None:
        """Ends the wait with an error and leaves the queue; does nothing when the wait has ended."""
        if self.end(error) and self._leave_queue is not None:
            self._leave_queue()

    def _check_call(self) -> None:
        try:
            self.call.check()
        except FacetsError as error:
            self.give_up(error)


class _LoopWaker:
    """Wakes coroutines of one event loop from other threads, with one message to the loop per batch."""

    _of_loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, "_LoopWaker"]] = WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._woken: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "_LoopWaker":
        """The waker of a loop; called in the thread of the loop."""
        if loop not in cls._of_loops:
            cls._of_loops[loop] = cls(loop)
        return cls._of_loops[loop]

    def wake(self, woken: "asyncio.Future[None]") -> None:
        self._woken.append(woken)
        loop = self._loop()
        if not self._is_scheduled and loop is not None:
            self._is_scheduled = True
            loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._is_scheduled = False  # reset first, so that a future added from now on schedules another run
        while self._woken:
            woken = self._woken.popleft()
            if not woken.done():
                woken.set_result(None)


WaiterT = TypeVar("WaiterT", bound=Waiter)


class _Turns(Generic[WaiterT]):
    """Waiters of one kind by caller, and the virtual times of the callers."""

    def __init__(self) -> None:
        self.waiters: dict[str, deque[WaiterT]] = {}  # only callers with waiters
        self._clock = 0.0  # virtual time of the caller served last
        self._virtual_times: dict[str, float] = {}

    def put(self, waiter: WaiterT) -> None:
        caller = waiter.call.caller
        if caller not in self.waiters:
            self.waiters[caller] = deque()
            self._virtual_times[caller] = max(self._clock, self._virtual_times.get(caller, 0.0))
        self.waiters[caller].append(waiter)

    def take(self, may_have: Callable[[str], bool], cost: Callable[[WaiterT], float]) -> WaiterT | None:
        callers = [caller for caller in self.waiters if may_have(caller)]
        if not callers:
            return None
        caller = min(callers, key=self._virtual_times.__getitem__)
        waiter = self.waiters[caller][0]
        self._clock = max(self._clock, self._virtual_times[caller])
        self._virtual_times[caller] += cost(waiter) / waiter.call.weight
        self.remove(waiter)
        return waiter

    def remove(self, waiter: WaiterT) -> bool:
        caller = waiter.call.caller
        waiters = self.waiters.get(caller, deque())
        if waiter not in waiters:
            return False
        waiters.remove(waiter)
        if not waiters:
            del self.waiters[caller]
            if len(self._virtual_times) > _MAX_REMEMBERED_CALLERS + len(self.waiters):
                self._forget_absent_callers()
        return True

    def _forget_absent_callers(self) -> None:
        """Bounds memory: the number of callers over time is unbounded."""
        absent = {c: t for c, t in self._virtual_times.items() if c not in self.waiters and t > self._clock}
        kept = list(absent.items())[-_MAX_REMEMBERED_CALLERS // 2 :]
        self._virtual_times = {c: t for c, t in self._virtual_times.items() if c in self.waiters} | dict(kept)


class FairQueue(Generic[WaiterT]):
    """Thread-safe queue whose callers take turns.

    ``changed`` is held while the queue changes, and notified when a waiter arrives and when the queue closes. The owner
    may hold it to keep its own state consistent with the queue.
    """

    def __init__(self, on_leave: Callable[[WaiterT], None] | None = None) -> None:
        """Creates an empty queue; ``on_leave`` is called with each waiter that gives up."""
        self._on_leave = on_leave
        self.changed = threading.Condition()
        self.is_closed = False
        self._turns: dict[str, _Turns[WaiterT]] = {}  # by kind
        self._num_waiters = 0
        self._notify_at = 1  # number of waiters that wakes the owner

    def __len__(self) -> int:
        return self._num_waiters

    def put(self, waiter: WaiterT) -> None:
        """Adds a waiter; raises NotReadyError when the queue is closed."""
        with self.changed:
            if self.is_closed:
                raise NotReadyError("the server is shutting down")
            waiter._leave_queue = lambda: self._discard(waiter)
            self.put_back(waiter)
            if self._num_waiters >= self._notify_at:
                self.changed.notify_all()

    def put_back(self, waiter: WaiterT) -> None:
        """Puts a taken waiter that needs more turns behind the other waiters of its caller."""
        with self.changed:
            self._turns.setdefault(waiter.kind, _Turns()).put(waiter)
            self._num_waiters += 1

    def wait_for_waiters(self, num_waiters: int, *, timeout_s: float | None = None) -> None:
        """Waits until the queue has so many waiters or is closed; the calling thread holds ``changed``."""
        self._notify_at = num_waiters
        try:
            self.changed.wait_for(lambda: self._num_waiters >= num_waiters or self.is_closed, timeout_s)
        finally:
            self._notify_at = 1

    def take(
        self,
        kind: str = "",
        *,
        may_have: Callable[[str], bool] = lambda caller: True,
        cost: Callable[[WaiterT], float] = lambda waiter: 1.0,
    ) -> WaiterT | None:
        """Removes and returns the waiter whose turn it is, among the eligible callers; None: there is none."""
        with self.changed:
            turns = self._turns.get(kind)
            waiter = turns.take(may_have, cost) if turns is not None else None
            if waiter is not None:
                self._num_waiters -= 1
            return waiter

    def give_way(self, call: CallContext) -> WaiterT | None:
        """Removes the newest waiter of the caller with the most waiters for its weight, to make room for ``call``.

        Returns None when no caller has more waiters than the caller of the call would have.
        """
        with self.changed:
            waiter = self._which_gives_way(call)
            if waiter is not None:
                self._remove(waiter)
            return waiter

    def would_give_way(self, call: CallContext) -> bool:
        """True when ``give_way`` would remove a waiter."""
        with self.changed:
            return self._which_gives_way(call) is not None

    def snapshot(self) -> list[WaiterT]:
        """The waiters, grouped by caller."""
        with self.changed:
            return [waiter for turns in self._turns.values() for line in turns.waiters.values() for waiter in line]

    def close(self) -> None:
        """Accepts no further waiters."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def fail_all(self, error: Exception) -> None:
        """Ends every wait with an error."""
        for waiter in self.snapshot():
            if self._remove(waiter):
                waiter.end(error)

    def _which_gives_way(self, call: CallContext) -> WaiterT | None:
        counts: Counter[str] = Counter()
        newest: dict[str, WaiterT] = {}
        for waiter in self.snapshot():
            counts[waiter.call.caller] += 1
            if waiter.may_give_way:
                newest[waiter.call.caller] = waiter
        shares = {caller: counts[caller] / waiter.call.weight for caller, waiter in newest.items()}
        largest = max(shares, key=shares.__getitem__, default="")
        if not shares or shares[largest] <= (counts[call.caller] + 1) / call.weight:
            return None
        return newest[largest]

    def _remove(self, waiter: WaiterT) -> bool:
        with self.changed:
            was_removed = waiter.kind in self._turns and self._turns[waiter.kind].remove(waiter)
            self._num_waiters -= was_removed
            return was_removed

    def _discard(self, waiter: WaiterT) -> None:
        if self._remove(waiter) and self._on_leave is not None:
            self._on_leave(waiter)


class FairLock:
    """Lock that up to ``num_holders`` calls hold at a time; waiting callers take turns.

    It guards the permits of admission control, and models that run whole library calls, not rows that a batcher
    can fuse. ``num_reserved`` places are kept for callers that hold fewer than this number.
    """

    def __init__(self, num_holders: int = 1, *, num_reserved: int = 0) -> None:
        self._num_holders = num_holders
        self._num_reserved = num_reserved
        self._held: Counter[str] = Counter()  # by caller
        self._queue: FairQueue[Waiter] = FairQueue()

    @property
    def num_held(self) -> int:
        """Number of calls that hold the lock."""
        return self._held.total()

    @property
    def num_waiting(self) -> int:
        """Number of calls that wait for the lock."""
        return len(self._queue)

    def is_idle(self) -> bool:
        """True when no call holds the lock or waits for it."""
        with self._queue.changed:
            return not (self._held or len(self._queue))

    @contextmanager
    def hold(self, call: CallContext) -> Iterator[None]:
        """Holds the lock for a ``with`` block and adds both times to the call; raises as ``Waiter.wait``."""
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
        """Takes the lock in a worker thread; the taker calls ``release``. Raises as ``Waiter.wait``.

        At ``max_waiting`` waiters (None: no limit), this call, or a waiter of a caller with more waiters, fails with
        QueueFullError.
        """
        started = time.monotonic()
        waiter = self._request(call, max_waiting)
        if waiter is not None:
            waiter.wait()
        _add_queue_time(call, started)

    async def acquired(self, call: CallContext, *, max_waiting: int | None = None) -> None:
        """``acquire`` for a coroutine."""
        started = time.monotonic()
        waiter = self._request(call, max_waiting)
        if waiter is not None:
            try:
                await waiter.ended()
            except asyncio.CancelledError:
                if waiter.was_granted():
                    self.release(call)
                raise
        _add_queue_time(call, started)

    def has_room(self, call: CallContext, max_waiting: int) -> bool:
        """True when ``acquire`` would not refuse the call at once."""
        with self._queue.changed:
            has_room = self._may_have(call.caller) or len(self._queue) < max_waiting
            return has_room or self._queue.would_give_way(call)

    def release(self, call: CallContext) -> None:
        """Gives the lock back, straight to the waiter whose turn it is."""
        with self._queue.changed:
            self._held[call.caller] -= 1
            self._held += Counter()  # drops callers with a count of 0
            while (waiter := self._queue.take(may_have=self._may_have)) is not None:
                if waiter.end():
                    self._held[waiter.call.caller] += 1

    def close(self) -> None:
        """Refuses every call from now on; current holders keep the lock until they release it."""
        self._queue.close()
        self._queue.fail_all(NotReadyError("the server is shutting down"))

    def _request(self, call: CallContext, max_waiting: int | None) -> Waiter | None:
        """Takes the lock if it is free, else joins the queue and returns the waiter."""
        with self._queue.changed:
            # Waiters may exist while places are free: the free ones are reserved for other callers.
            if self._may_have(call.caller) and not self._queue.is_closed:
                self._held[call.caller] += 1
                return None
            refused = None
            if max_waiting is not None and len(self._queue) >= max_waiting:
                refused = self._queue.give_way(call)
                if refused is None:
                    raise QueueFullError(f"{len(self._queue)} calls wait, the limit is {max_waiting}")
            waiter = Waiter(call, may_give_way=max_waiting is not None)
            self._queue.put(waiter)
        if refused is not None:
            refused.end(QueueFullError(f"{max_waiting} calls wait, and other callers have fewer of them"))
        return waiter

    def _may_have(self, caller: str) -> bool:
        num_free = self._num_holders - self._held.total()
        return num_free > (0 if self._held[caller] < self._num_reserved else self._num_reserved)


def _add_queue_time(call: CallContext, started: float) -> None:
    seconds = time.monotonic() - started
    call.queue_ms += seconds * 1000
    call.stages.add("queue", started, seconds)
