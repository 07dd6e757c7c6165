"""The one queue behind every wait of the server: for a permit, for the fair lock, for the model.

Calls wait in the order of asking. Whoever has more to do than one share goes to the end again (round-robin), so that
a bulk request does not hold up a single question. Nobody waits past the end of the call: a waiter ends once, by
whoever comes first, the owner of the queue or the call itself, and a waiter that gave up is no longer in the queue.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from facets.errors import FacetsError, NotReadyError
from facets_server.runtime.call_context import CallContext

__all__ = ["FairQueue", "QueueFullError", "Waiter"]


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
            try:
                self.call.check()
            except FacetsError as error:
                if self.end(error) and self._leave is not None:
                    self._leave()
            if not self._has_ended:
                self._woken.clear()
        if self._error is not None:
            raise self._error


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
            self.changed.notify_all()

    def take(self) -> WaiterT | None:
        """Takes the first waiter out; None when nobody waits."""
        with self.changed:
            return self._waiters.popleft() if self._waiters else None

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
