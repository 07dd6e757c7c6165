"""Admission control: how many calls run, how many wait, and which call is refused.

Callers that wait for permits take turns, and one caller may use all permits but a reserved eighth. When the waiting
room is full, the caller with the most waiting calls gives one up to a caller with fewer, else the new call is refused,
with the time after which to retry. Streams do not wait for a place, and a quarter is reserved; their messages wait:
gRPC's flow control stops the sender.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from facets.errors import NotReadyError, OverloadedError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.fair_queue import FairLock, Turns
from facets_server.runtime.memory import MemoryBudget

_SMOOTHING = 0.1  # weight of the newest call in the running mean of how long a call takes
_MIN_RETRY_S, _MAX_RETRY_S = 0.05, 10.0
_RESERVED = 1 / 8  # share of the permits kept for callers that use less than that


class Admission:
    """Permits for calls and places for streams, which are locks that so many calls hold at a time."""

    def __init__(self, config: AdmissionConfig) -> None:
        self.config = config
        self.memory = MemoryBudget(config.max_memory_bytes)
        self._lock = threading.Lock()
        num_permits = config.max_concurrent_requests
        self.permits = FairLock(
            num_permits,
            num_reserved=round(num_permits * _RESERVED),
            max_waiting=config.max_queued_requests,
            refusal=self._overloaded,
        )
        self.turns = Turns()
        num_streams = config.max_streams
        self.streams = FairLock(
            num_streams, num_reserved=math.ceil(num_streams / 4), max_waiting=0, refusal=self._no_stream
        )
        self._mean_call_s = 0.05
        self._is_draining = False
        self._last_end = time.monotonic()
        self._drain_listeners: list[Callable[[], None]] = []

    def is_idle(self) -> bool:
        """True when no call runs or waits and no stream is open."""
        return self.permits.is_idle() and not self.streams.num_held

    def idle_s(self) -> float:
        """Seconds since the last call or stream ended, or since the start; 0 while one runs."""
        return time.monotonic() - self._last_end if self.is_idle() else 0.0

    def drain(self) -> None:
        """Opens no further streams and asks the open ones to end after the messages they have read."""
        with self._lock:
            self._is_draining = True
            for listener in self._drain_listeners:
                listener()

    @contextmanager
    def on_drain(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls ``listener`` when draining starts within the ``with`` block, immediately when it has started."""
        with self._lock:
            self._drain_listeners.append(listener)
            if self._is_draining:
                listener()
        try:
            yield
        finally:
            with self._lock:
                self._drain_listeners.remove(listener)

    async def admit(self, call: CallContext) -> ExitStack:
        """Takes a permit for a call until the stack is closed; raises OverloadedError if too many wait."""
        permit = await self.permits.acquired(call)
        permit.callback(self._note_end, time.monotonic())
        return permit

    def stream_slot(self, call: CallContext) -> ExitStack:
        """Takes a place for a stream until the stack is closed; raises OverloadedError if there is none."""
        if self._is_draining:
            raise NotReadyError("the server is shutting down and opens no new streams")
        place = self.streams.acquire(call)
        place.callback(self._note_end)
        return place

    def _no_stream(self) -> OverloadedError:
        limit = self.config.max_streams
        return OverloadedError(
            f"{self.streams.num_held} streams are open, the limit is {limit}, three quarters of it for one caller"
        )

    def _note_end(self, started: float | None = None) -> None:
        with self._lock:
            self._last_end = time.monotonic()
            if started is not None:
                self._mean_call_s += _SMOOTHING * (self._last_end - started - self._mean_call_s)

    def _overloaded(self) -> OverloadedError:
        """The refusal, which says when about all calls ahead will be done."""
        num_running, num_waiting = self.permits.num_held, self.permits.num_waiting
        seconds = self._mean_call_s * (num_running + num_waiting) / self.config.max_concurrent_requests
        return OverloadedError(
            f"{num_running} calls run and {num_waiting} wait, the limits are {self.config.max_concurrent_requests} and "
            f"{self.config.max_queued_requests}",
            retry_after_s=min(max(seconds, _MIN_RETRY_S), _MAX_RETRY_S),
        )
