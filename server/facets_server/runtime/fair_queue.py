"""The one queue behind every wait of the server: for a permit, for the fair lock, for the model.

Callers take turns, whoever a caller is: a key, else an address. Next is the caller who has had least so far for his
weight, and of his calls the one that has waited longest; a call that has more to do than one turn goes behind his
others. So what another caller asks does not wait for the hundreds of calls that somebody else has made before, and who
is alone may have everything. This is start-time fair queueing (Goyal, Vin and Cheng 1996): a caller who comes begins at
the time of whoever is being served, neither with a credit for having been away nor without the debt of before.

Nobody waits past the end of the call: a waiter ends once, by whoever comes first, the owner of the queue or the call
itself, and a waiter that gave up is no longer in the queue.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from facets.errors import FacetsError, NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError

_MOST_DEBTS = 1024  # of callers who have gone


class QueueFullError(FacetsError):
    """As many wait as may wait."""


class Waiter:
    """One call that waits for something.

    Attributes:
        call: Its deadline and cancellation end the wait; its caller has turns.
        kind: Waiters of one kind wait for the same, and are taken in turn.
        may_give_way: Whether it may be refused after all, for a caller who has fewer places.
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


class _Line(Generic[WaiterT]):
    """The waiters of one caller, of one kind."""

    def __init__(self, passed: float) -> None:
        self.passed = passed  # what he has had, for his weight, on the clock of all
        self.waiters: deque[WaiterT] = deque()


class _Turns(Generic[WaiterT]):
    """The callers who wait for one kind of thing."""

    def __init__(self) -> None:
        self.lines: dict[str, _Line[WaiterT]] = {}  # of callers with a waiter at least
        self._clock = 0.0  # what whoever is being served had had before
        self._debts: dict[str, float] = {}  # of callers who have gone, and have had more than that

    def put(self, waiter: WaiterT) -> None:
        caller = waiter.call.caller
        if caller not in self.lines:
            self.lines[caller] = _Line(max(self._clock, self._debts.pop(caller, 0.0)))
        self.lines[caller].waiters.append(waiter)

    def take(self, may_have: Callable[[str], bool], cost: Callable[[WaiterT], float]) -> WaiterT | None:
        """The next waiter, whose caller pays; None: nobody who may have it waits."""
        able = [caller for caller in self.lines if may_have(caller)]
        if not able:
            return None
        line = self.lines[min(able, key=lambda caller: self.lines[caller].passed)]
        waiter = line.waiters[0]
        self._clock = max(self._clock, line.passed)
        line.passed += cost(waiter) / waiter.call.weight
        self.remove(waiter)
        return waiter

    def remove(self, waiter: WaiterT) -> bool:
        line = self.lines.get(waiter.call.caller)
        if line is None or waiter not in line.waiters:
            return False
        line.waiters.remove(waiter)
        if not line.waiters:
            del self.lines[waiter.call.caller]
            if line.passed > self._clock:
                self._owe(waiter.call.caller, line.passed)
        return True

    def _owe(self, caller: str, passed: float) -> None:
        self._debts[caller] = passed
        if len(self._debts) > _MOST_DEBTS:  # callers come and go without end
            self._debts = {who: owed for who, owed in self._debts.items() if owed > self._clock}
            while len(self._debts) > _MOST_DEBTS:
                del self._debts[next(iter(self._debts))]


def _anybody(_: str) -> bool:
    return True


def _one(_: object) -> float:
    return 1.0


class FairQueue(Generic[WaiterT]):
    """Waiters, whose callers take turns; may be shared by threads.

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
        self._turns: dict[str, _Turns[WaiterT]] = {}  # by kind
        self._num_waiters = 0
        self._notified_at = 1  # so many waiters

    def __len__(self) -> int:
        return self._num_waiters

    def put(self, waiter: WaiterT) -> None:
        """Puts a waiter behind those of its caller.

        Raises:
            NotReadyError: The queue is closed.
        """
        with self.changed:
            if self.is_closed:
                raise NotReadyError("the server is shutting down")
            waiter._leave = lambda: self._discard(waiter)
            self.put_back(waiter)
            if self._num_waiters >= self._notified_at:
                self.changed.notify_all()

    def put_back(self, waiter: WaiterT) -> None:
        """The same with a waiter that was taken, and has had its turn."""
        with self.changed:
            self._turns.setdefault(waiter.kind, _Turns()).put(waiter)
            self._num_waiters += 1

    def wait_for_waiters(self, num_waiters: int, *, timeout_s: float | None = None) -> None:
        """Waits until so many wait or the queue is closed; for its only owner, who holds ``changed``."""
        self._notified_at = num_waiters
        try:
            self.changed.wait_for(lambda: self._num_waiters >= num_waiters or self.is_closed, timeout_s)
        finally:
            self._notified_at = 1

    def take(
        self, kind: str = "", *, may_have: Callable[[str], bool] = _anybody, cost: Callable[[WaiterT], float] = _one
    ) -> WaiterT | None:
        """Takes out the waiter whose turn it is.

        Args:
            kind: Of the waiter.
            may_have: Which callers may have their turn now.
            cost: What the caller's turn costs, so that shares are equal in it; evaluated for the one who is taken.

        Returns:
            None when no such waiter is there.
        """
        with self.changed:
            turns = self._turns.get(kind)
            found = turns.take(may_have, cost) if turns is not None else None
            if found is not None:
                self._num_waiters -= 1
            return found

    def give_way(self, call: CallContext) -> WaiterT | None:
        """Takes out the newest waiter of the caller who has most places for his weight, for a call of another.

        Returns:
            None when nobody has more places than the caller of the call would have; then he has to go.
        """
        with self.changed:
            found = self._who_gives_way(call)
            if found is not None:
                self._remove(found)
            return found

    def would_give_way(self, call: CallContext) -> bool:
        """Whether somebody would leave his place to the call."""
        with self.changed:
            return self._who_gives_way(call) is not None

    def snapshot(self) -> list[WaiterT]:
        """Who waits now: by caller, in his order."""
        with self.changed:
            return [
                waiter for turns in self._turns.values() for line in turns.lines.values() for waiter in line.waiters
            ]

    def close(self) -> None:
        """Lets nobody wait any more."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def fail_all(self, error: Exception) -> None:
        """Ends every wait with an error."""
        for waiter in self.snapshot():
            if self._remove(waiter):
                waiter.end(error)

    def _who_gives_way(self, call: CallContext) -> WaiterT | None:
        counts: Counter[str] = Counter()
        newest: dict[str, WaiterT] = {}
        for waiter in self.snapshot():
            counts[waiter.call.caller] += 1
            if waiter.may_give_way:
                newest[waiter.call.caller] = waiter
        places = {caller: counts[caller] / waiter.call.weight for caller, waiter in newest.items()}
        longest = max(places, key=places.__getitem__, default="")
        if not places or places[longest] <= (counts[call.caller] + 1) / call.weight:
            return None
        return newest[longest]

    def _remove(self, waiter: WaiterT) -> bool:
        with self.changed:
            is_here = waiter.kind in self._turns and self._turns[waiter.kind].remove(waiter)
            self._num_waiters -= is_here
            return is_here

    def _discard(self, waiter: WaiterT) -> None:
        if self._remove(waiter) and self._on_leave is not None:
            self._on_leave(waiter)
