"""Queue, lock and turns that share a scarce resource fairly between callers.

A caller is an API key, or a network address where the call has no key. The next turn goes to the caller with the least
virtual time, and to the oldest waiter of that caller. A turn adds its cost, divided by the weight of the caller, to the
caller's virtual time (start-time fair queueing, Goyal, Vin and Cheng 1996). A caller that arrives starts at the virtual
time of the caller being served: it gets no credit for the time it was away. A lone caller gets the full capacity.
"""

import asyncio
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from facets.errors import FacetsError, NotReadyError, OverloadedError
from facets.language.interruption import interrupted_by
from facets_server.runtime.call_context import CallContext, Stage

TURN_S = 0.02  # of a thread on the processor, if others wait
_OVERDUE_S = 0.1
_STANDSTILL_S = 0.001  # of work between two looks; a thread that only waits for a processor has more
_MAX_REMEMBERED_CALLERS = 1024  # callers without waiters whose virtual time is still ahead of the clock


class Waiter(Future[None]):
    """A call that waits for a turn; the owner of the queue or the end of the call ends the wait."""

    def __init__(self, call: CallContext) -> None:
        super().__init__()
        self.call = call

    def end(self, error: Exception | None = None) -> bool:
        """Ends the wait, with an error or successfully; returns False when it had ended before."""
        try:
            if error is None:
                self.set_result(None)
            else:
                self.set_exception(error)
        except InvalidStateError:
            return False
        return True

    def wait(self) -> None:
        """Waits in a worker thread; raises the error given to ``end``, or that of the call if it ends first."""
        if not self.done():
            with without_turn():
                self.wait_with_turn()
        self.result()

    def wait_with_turn(self) -> None:
        """Waits for the end, which may be that of the call."""
        while not self.done():
            wait((self, self.call.over), self.call.time_remaining(), FIRST_COMPLETED)
            self.check_call()

    async def ended(self) -> None:
        """``wait`` for coroutines; when cancelled, the wait has ended, possibly granted just before."""
        loop = asyncio.get_running_loop()
        timer = None if self.call.deadline is None else loop.call_at(self.call.deadline, self.check_call)
        try:
            await asyncio.wrap_future(self)
        finally:
            if timer is not None:
                timer.cancel()

    def check_call(self) -> None:
        """Ends the wait if the call has ended."""
        try:
            self.call.check()
        except FacetsError as error:
            self.end(error)


ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Pending(Generic[ResultT]):
    """A result that waits for a model; ``finish`` makes it once ``waiter`` has ended."""

    waiter: Waiter
    finish: Callable[[], ResultT]

    def __call__(self) -> ResultT:
        """Waits for the result in a worker thread; raises as ``Waiter.wait``."""
        self.waiter.wait()
        return self.finish()


WaiterT = TypeVar("WaiterT", bound=Waiter)


class FairQueue(Generic[WaiterT]):
    """Thread-safe queue whose callers take turns; the owner may hold ``changed`` to keep its own state consistent."""

    def __init__(self, changed: threading.Condition | None = None) -> None:
        self.changed = changed or threading.Condition()
        self.is_closed = False
        self.waiters: dict[str, deque[WaiterT]] = {}  # by caller; only callers with waiters
        self._clock = 0.0  # virtual time of the caller served last
        self._virtual_times: dict[str, float] = {}

    def __len__(self) -> int:
        with self.changed:
            return sum(map(len, self.waiters.values()))

    def put(self, waiter: WaiterT) -> None:
        """Adds a waiter behind the others of its caller; once the queue is closed, ends it with NotReadyError."""
        with self.changed:
            if self.is_closed:
                waiter.end(NotReadyError("the server is shutting down"))
                return
            caller = waiter.call.caller
            if caller not in self.waiters:
                self.waiters[caller] = deque()
                self._virtual_times[caller] = max(self._clock, self._virtual_times.get(caller, 0.0))
            self.waiters[caller].append(waiter)

    def take(
        self,
        *,
        may_have: Callable[[str], bool] = lambda caller: True,
        cost: Callable[[WaiterT], float] = lambda waiter: 1.0,
    ) -> WaiterT | None:
        """Removes and returns the waiter whose turn it is, among the eligible callers; None: there is none."""
        with self.changed:
            callers = [caller for caller in self.waiters if may_have(caller)]
            if not callers:
                return None
            caller = min(callers, key=self._virtual_times.__getitem__)
            waiter = self.waiters[caller][0]
            self._clock = max(self._clock, self._virtual_times[caller])
            self._virtual_times[caller] += cost(waiter) / waiter.call.weight
            self.remove(waiter)
            return waiter

    def charge(self, call: CallContext, cost: float) -> None:
        """Adds a cost that was not known when the waiter of the call was taken."""
        with self.changed:
            if call.caller in self._virtual_times:
                self._virtual_times[call.caller] += cost / call.weight

    def remove(self, waiter: WaiterT) -> bool:
        """Removes a waiter; returns False when it is not in the queue."""
        with self.changed:
            caller = waiter.call.caller
            waiters = self.waiters.get(caller, ())
            if waiter not in waiters:
                return False
            self.waiters[caller].remove(waiter)
            if not self.waiters[caller]:
                del self.waiters[caller]
                if len(self._virtual_times) > _MAX_REMEMBERED_CALLERS + len(self.waiters):
                    absent = self._virtual_times.keys() - self.waiters.keys()
                    for name in sorted(absent, key=self._virtual_times.__getitem__)[: _MAX_REMEMBERED_CALLERS // 2]:
                        del self._virtual_times[name]
            return True

    def gives_way(self, call: CallContext) -> WaiterT | None:
        """The newest waiter of the caller with the most for its weight; None: that of ``call`` would have as many."""
        with self.changed:
            largest, found = (len(self.waiters.get(call.caller, ())) + 1) / call.weight, None
            for waiters in self.waiters.values():
                if (num := len(waiters) / waiters[-1].call.weight) > largest:
                    largest, found = num, waiters[-1]
            return found

    def snapshot(self) -> list[WaiterT]:
        """The waiters, grouped by caller."""
        with self.changed:
            return [waiter for waiters in self.waiters.values() for waiter in waiters]

    def close(self) -> None:
        """Ends every wait with NotReadyError, from now on."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        for waiter in self.snapshot():
            if self.remove(waiter):
                waiter.end(NotReadyError("the server is shutting down"))


class FairLock:
    """Lock that up to ``num_holders`` calls hold at a time; waiting callers take turns.

    ``num_reserved`` places are kept for callers that hold fewer than this number. When ``max_waiting`` calls wait, a
    new call, or a waiter of a caller with more of them, fails with the error that ``refusal`` makes.
    """

    def __init__(
        self,
        num_holders: int = 1,
        *,
        num_reserved: int = 0,
        max_waiting: float = math.inf,
        refusal: Callable[[], Exception] = lambda: OverloadedError("too many calls wait"),
    ) -> None:
        self._num_holders, self._num_reserved = num_holders, num_reserved
        self._max_waiting, self._refusal = max_waiting, refusal
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
            return not (self._held or self._queue.waiters)

    def acquire(self, call: CallContext) -> ExitStack:
        """Takes the lock in a worker thread, until the stack is closed; raises as ``Waiter.wait``."""
        with call.stages.measured("queue"):
            if (waiter := self._request(call)) is not None:
                waiter.wait()
        return self._held_by(call)

    async def acquired(self, call: CallContext) -> ExitStack:
        """``acquire`` for a coroutine."""
        with call.stages.measured("queue"):
            if (waiter := self._request(call)) is not None:
                try:
                    await waiter.ended()
                except asyncio.CancelledError:
                    if not waiter.cancelled() and waiter.exception() is None:  # granted just before
                        self.release(call)
                    raise
        return self._held_by(call)

    def _held_by(self, call: CallContext) -> ExitStack:
        stack = ExitStack()
        stack.callback(self.release, call)
        return stack

    def check_room(self, call: CallContext) -> None:
        """Raises the refusal if ``acquire`` would do so at once."""
        with self._queue.changed:
            has_room = self._may_have(call.caller) or len(self._queue) < self._max_waiting
            if not has_room and self._queue.gives_way(call) is None:
                raise self._refusal()

    def release(self, call: CallContext) -> None:
        """Gives the lock back, straight to the waiter whose turn it is."""
        with self._queue.changed:
            self._held -= Counter((call.caller,))  # drops callers with a count of 0
            while (waiter := self._queue.take(may_have=self._may_have)) is not None:
                if waiter.end():
                    self._held[waiter.call.caller] += 1

    def close(self) -> None:
        """Refuses every call from now on; current holders keep the lock until they release it."""
        self._queue.close()

    def _request(self, call: CallContext) -> Waiter | None:
        """Takes the lock if it is free; else returns a waiter that has joined the queue."""
        refused = None
        with self._queue.changed:
            # Waiters may exist while places are free: the free ones are reserved for other callers.
            if self._may_have(call.caller) and not self._queue.is_closed:
                self._held[call.caller] += 1
                return None
            if len(self._queue) >= self._max_waiting:
                refused = self._queue.gives_way(call)
                if refused is None:
                    raise self._refusal()
                self._queue.remove(refused)
            waiter = Waiter(call)
            self._queue.put(waiter)
        waiter.add_done_callback(self._queue.remove)  # type: ignore[arg-type]  # a waiter, which is the future
        if refused is not None:
            refused.end(self._refusal())
        return waiter

    def _may_have(self, caller: str) -> bool:
        num_free = self._num_holders - self._held.total()
        return num_free > (0 if self._held[caller] < self._num_reserved else self._num_reserved)


# Of the processor time of a thread; where no such clock exists, a thread counts as working all the time.
_clock_of: Callable[[int], int] = getattr(time, "pthread_getcpuclockid", lambda _: time.CLOCK_MONOTONIC)


class _Turn(Waiter):
    """A turn of the thread that makes it."""

    def __init__(self, call: CallContext) -> None:
        super().__init__(call)
        self.began = 0.0  # time of ``time.monotonic()``
        self._clock = _clock_of(threading.get_ident())
        self._worked = self._had_worked = 0.0  # processor time of the thread at the last look, and at the beginning

    def begin(self) -> bool:
        """Begins, unless the wait has ended otherwise."""
        self.began = time.monotonic()
        if not self.end():  # the thread may be gone, and its clock with it
            return False
        self._worked = self._had_worked = time.clock_gettime(self._clock)
        return True

    def is_overdue(self) -> bool:
        """Whether the thread has worked for ``_OVERDUE_S``, or has stood still since the last look."""
        before, self._worked = self._worked, time.clock_gettime(self._clock)
        stands_still = time.monotonic() - self.began > _OVERDUE_S and self._worked - before < _STANDSTILL_S
        return stands_still or self._worked - self._had_worked > _OVERDUE_S


class Turns:
    """Turns of worker threads on the processor: ``num_turns`` threads work at a time, and their callers take turns.

    A thread gives up its turn at its first ``check_interrupted`` after ``TURN_S``, if another thread waits, and while
    it waits for a model or a message. If others wait, a turn without such a check ends after ``_OVERDUE_S`` of work,
    and earlier if its thread stands still: it may be waiting for a lock whose holder waits for a turn.
    """

    def __init__(self, num_turns: int | None = None) -> None:
        """``num_turns`` None: one for every other processor; models, which have threads of their own, use the rest."""
        self._num_turns = num_turns or max(1, (os.cpu_count() or 1) // 2)
        self._queue: FairQueue[_Turn] = FairQueue()
        self._running: set[_Turn] = set()
        self._is_watched = False  # whether a thread looks for overdue turns

    @property
    def num_waiting(self) -> int:
        """Number of threads that wait for a turn."""
        return len(self._queue)

    @contextmanager
    def taken(self, call: CallContext) -> Iterator[None]:
        """Works for a call within the block; raises as ``Waiter.wait`` here, and where the work may be interrupted."""
        work = _thread.work = _Work(self, call)
        try:
            self.begin(work)
            with interrupted_by(partial(self._check, call)):
                yield
        finally:
            self.end(work)
            _thread.work = None
            call.stages.add(Stage("queue", time.monotonic() - work.waited_s, work.waited_s))

    def begin(self, work: "_Work") -> None:
        """Waits for the next turn of the work of this thread."""
        asked = time.monotonic()
        turn = work.turn = _Turn(work.call)
        with self._queue.changed:
            self._queue.put(turn)
            self._grant()
            if not (turn.done() or self._is_watched):
                self._is_watched = True
                threading.Thread(target=self._watch, name="turns", daemon=True).start()
        turn.add_done_callback(lambda _: self._queue.remove(turn))
        turn.wait_with_turn()
        work.waited_s += time.monotonic() - asked
        turn.result()

    def end(self, work: "_Work") -> None:
        """Ends the turn of the work of this thread, if it has one."""
        with self._queue.changed:
            if work.turn is not None:
                self._stop(work.turn)
            work.turn = None
            self._grant()

    def _check(self, call: CallContext) -> None:
        call.check()
        work: _Work | None = getattr(_thread, "work", None)
        if work is None or work.turn is None:  # of a thread that only shares the context
            return
        if work.turn not in self._running or time.monotonic() - work.turn.began >= TURN_S:
            self._stop(work.turn)
            self.begin(work)

    def _stop(self, turn: _Turn) -> None:
        """Ends a turn, if it has begun and is not overdue; its caller pays for the time, at work or not."""
        with self._queue.changed:
            if turn in self._running:
                self._running.remove(turn)
                self._queue.charge(turn.call, time.monotonic() - turn.began)

    def _watch(self) -> None:
        while self._is_watched:
            time.sleep(_OVERDUE_S)
            with self._queue.changed:
                for turn in [turn for turn in self._running if turn.is_overdue()]:
                    self._stop(turn)
                self._grant()
                self._is_watched = bool(self._queue.waiters)

    def _grant(self) -> None:
        """Gives free turns to the threads whose callers have had least."""
        with self._queue.changed:
            while len(self._running) < self._num_turns:
                turn = self._queue.take(cost=lambda _: 0.0)
                if turn is None:
                    return
                if turn.begin():
                    self._running.add(turn)


@dataclass(eq=False, slots=True)
class _Work:
    turns: Turns
    call: CallContext
    turn: _Turn | None = None  # the thread waits for it, or has it
    waited_s: float = 0.0  # for turns


_thread = threading.local()  # has the ``work`` of its thread, if any


@contextmanager
def without_turn() -> Iterator[None]:
    """Gives up the turn of this thread within the block, in which it waits."""
    work: _Work | None = getattr(_thread, "work", None)
    if work is None:
        yield
        return
    work.turns.end(work)
    try:
        yield
    finally:
        work.turns.begin(work)
