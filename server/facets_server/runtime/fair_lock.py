"""Turns at a model that takes one call at a time: first come, first served, and nobody waits past a deadline.

For models whose work is one library call rather than rows that a batcher could fuse. Long work is cut into several
turns, so that a bulk request does not hold up a single question.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from facets.errors import NotReadyError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError

__all__ = ["FairLock"]


@dataclass(eq=False, slots=True)
class _Ticket:
    has_turn: bool = False
    woken: threading.Event = field(default_factory=threading.Event)


class FairLock:
    """A fair lock whose waiters leave when their call ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket] = deque()
        self._is_taken = False
        self._closed = False

    @contextmanager
    def turn(self, call: CallContext) -> Iterator[None]:
        """Waits for a turn and gives it back at the end; adds both times to the call.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
            NotReadyError: Closed.
        """
        asked = time.monotonic()
        self._take(call)
        started = time.monotonic()
        call.queue_ms += (started - asked) * 1000
        try:
            call.check()
            yield
        finally:
            call.inference_ms += (time.monotonic() - started) * 1000
            self._give_back()

    def close(self) -> None:
        """Refuses everybody from now on; whoever has the turn keeps it to its end."""
        with self._lock:
            self._closed = True
            for ticket in self._waiting:
                ticket.woken.set()

    def _take(self, call: CallContext) -> None:
        ticket = _Ticket()
        with self._lock:
            if not self._is_taken and not self._closed:
                self._is_taken = True
                return
            self._waiting.append(ticket)
            closed = self._closed
        if not closed:
            call.wait(ticket.woken)  # also woken by the end of the call
        with self._lock:
            if ticket.has_turn:
                return
            self._waiting.remove(ticket)
            closed = self._closed
        call.check()
        if closed:
            raise NotReadyError("the server is shutting down")
        raise CallCancelledError("the call ended before its turn")

    def _give_back(self) -> None:
        with self._lock:
            self._is_taken = bool(self._waiting) and not self._closed
            if self._is_taken:
                ticket = self._waiting.popleft()
                ticket.has_turn = True
                ticket.woken.set()
