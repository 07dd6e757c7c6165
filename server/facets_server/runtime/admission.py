"""Admission control: how many calls are worked on, how many wait, when the next one is refused.

One rule for unary calls and for the messages of streams: work needs a permit, and callers who wait for permits take
turns. A caller alone may have every place but a few, which are for whoever comes. Once others are about, one has at
most ``max_requests_per_caller``; and when the waiting room is full, whoever has most places in it gives one to a
caller who has fewer, else the newcomer is refused. The messages of a stream are not
refused one by one: the server stops reading the stream, and gRPC's flow control stops the sender. Streams
themselves are counted, and one too many is refused when it opens. So at most
``max_queued_requests + max_streams`` wait, whatever clients do.

gRPC's own ``maximum_concurrent_rpcs`` is not used: it can be bypassed and answers without details.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType

from facets.errors import NotReadyError, OverloadedError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_lock import FairLock
from facets_server.runtime.fair_queue import QueueFullError
from facets_server.runtime.limits import AdmissionConfig

_SMOOTHING = 0.1  # weight of the newest call in the running mean of how long a call takes
_SHORTEST_RETRY_S = 0.05
_LONGEST_RETRY_S = 10.0
_REFUSED_SHARE = 1 / 4  # of a caller's calls: as many more are answered, or the server would do nothing but refuse
_RESERVED = 1 / 8  # of the permits and of the bytes: for callers who have less than that


class Permit:
    """The right to work on one call; given back by ``release`` or at the end of a ``with`` block."""

    def __init__(self, leave: Callable[[float], None]) -> None:
        self._leave: Callable[[float], None] | None = leave
        self._lock = threading.Lock()
        self._taken = time.monotonic()

    def release(self) -> None:
        """Gives the permit back; further calls do nothing. Any thread may call it."""
        with self._lock:
            leave, self._leave = self._leave, None
        if leave is not None:
            leave(time.monotonic() - self._taken)

    def __enter__(self) -> None:
        """Nothing to do: the permit is held since it was made."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the permit back."""
        self.release()


class Admission:
    """Permits for calls and slots for streams."""

    def __init__(self, config: AdmissionConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        most = config.max_concurrent_requests
        self._permits = FairLock(most, num_reserved=round(most * _RESERVED))
        self._streams: Counter[str] = Counter()  # of each caller
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._mean_call_s = 0.05
        self._back_at: dict[str, float] = {}  # when the last call that was refused for its caller's share comes again
        self._draining = False
        self._drain_listeners: list[Callable[[], None]] = []

    @property
    def num_running(self) -> int:
        """Calls worked on now."""
        return self._permits.num_held

    @property
    def num_waiting(self) -> int:
        """Calls waiting for a permit now."""
        return self._permits.num_waiting

    @property
    def num_streams(self) -> int:
        """Streams open now."""
        return self._streams.total()

    @property
    def max_stream_bytes(self) -> int:
        """Bytes of the requests of one stream that are begun and not yet answered; one alone may have more."""
        return self._config.max_stream_bytes

    def is_idle(self) -> bool:
        """True when nothing is worked on, waits or streams."""
        return self._permits.is_idle() and not self.num_streams

    def drain(self) -> None:
        """Lets no new streams in and asks the open ones to end after what they have read."""
        with self._lock:
            self._draining = True
            listeners = tuple(self._drain_listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def on_drain(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls ``listener`` when draining starts, at once when it has started; within a ``with`` block."""
        with self._lock:
            self._drain_listeners.append(listener)
            draining = self._draining
        try:
            if draining:
                listener()
            yield
        finally:
            with self._lock:
                self._drain_listeners.remove(listener)

    def permit(self, call: CallContext, *, may_refuse: bool = True) -> "Permit":
        """Takes a permit; waits for it until the deadline of the call.

        Args:
            call: Its ``queue_ms`` grows by the wait.
            may_refuse: False for messages of an admitted stream: they wait even when the room is full.

        Raises:
            OverloadedError: The waiting room is full; nothing was done.
            DeadlineExceededError: The deadline passed while waiting.
            CallCancelledError: The caller cancelled while waiting.
        """
        try:
            self._permits.acquire(call, max_waiting=self._config.max_queued_requests if may_refuse else None)
        except QueueFullError as error:
            raise self._overloaded() from error
        return Permit(partial(self._leave, call))

    def check_room(self, call: CallContext) -> None:
        """Refuses what ``admit`` would refuse in any case, before anything of the call is read.

        Raises:
            OverloadedError: The waiting room is full, or the caller has his share; nothing was done.
        """
        with self._lock:
            if self._has_share(call.caller):
                raise OverloadedError(self._share_taken(), retry_after_s=self._retry_in_turn_s(call.caller))
        if not self._permits.has_place(call, self._config.max_queued_requests):
            raise self._overloaded()

    async def admit(self, call: CallContext, num_bytes: int) -> "Permit":
        """``permit`` for a whole call, within its caller's share and in bytes, on an event loop, which stays free.

        Args:
            call: As for ``permit``.
            num_bytes: Of its request.
        """
        self._take_share(call.caller, num_bytes)
        try:
            await self._permits.acquired(call, max_waiting=self._config.max_queued_requests)
        except QueueFullError as error:
            self._give_share(call.caller, num_bytes)
            raise self._overloaded() from error
        except BaseException:
            self._give_share(call.caller, num_bytes)
            raise

        def leave(took_s: float) -> None:
            self._give_share(call.caller, num_bytes)
            self._leave(call, took_s)

        return Permit(leave)

    @contextmanager
    def stream_slot(self, call: CallContext) -> Iterator[None]:
        """Holds a place for an open stream.

        Args:
            call: Whose caller has its share of the places.

        Raises:
            OverloadedError: All places are taken.
            NotReadyError: The server is shutting down.
        """
        with self._lock:
            if self._draining:
                raise NotReadyError("the server is shutting down and opens no new streams")
            if self.num_streams >= self._config.max_streams:
                raise OverloadedError(
                    f"all {self._config.max_streams} streams of the server are in use", retry_after_s=1.0
                )
            if self._streams[call.caller] >= self._config.max_streams_per_caller:
                raise OverloadedError(
                    f"the caller has {self._config.max_streams_per_caller} streams open, which is the limit of one",
                    retry_after_s=1.0,
                )
            self._streams[call.caller] += 1
        try:
            yield
        finally:
            with self._lock:
                _count_down(self._streams, call.caller)

    def _take_share(self, caller: str, num_bytes: int) -> None:
        with self._lock:
            most_bytes = self._config.max_request_bytes
            own = self._bytes[caller] + num_bytes
            allowed = most_bytes if own <= most_bytes * _RESERVED else most_bytes * (1 - _RESERVED)
            taken = self._bytes.total()
            if self._has_share(caller):
                raise OverloadedError(self._share_taken(), retry_after_s=self._retry_in_turn_s(caller))
            if taken and taken + num_bytes > allowed:
                problem = f"requests of {taken} bytes are worked on or wait, the limit is {most_bytes}"
            else:
                self._requests[caller] += 1
                self._bytes[caller] += num_bytes
                return
        raise OverloadedError(problem, retry_after_s=self._retry_after_s())

    def _has_share(self, caller: str) -> bool:
        own = self._requests[caller]
        return own >= self._config.max_requests_per_caller and own < self._requests.total()

    def _share_taken(self) -> str:
        most = self._config.max_requests_per_caller
        return f"{most} calls of the caller are worked on or wait, which is the limit of one beside others"

    def _give_share(self, caller: str, num_bytes: int) -> None:
        with self._lock:
            _count_down(self._requests, caller)
            if caller not in self._requests:
                self._back_at.pop(caller, None)
            _count_down(self._bytes, caller, num_bytes)

    def _leave(self, call: CallContext, took_s: float) -> None:
        with self._lock:
            self._mean_call_s += _SMOOTHING * (took_s - self._mean_call_s)
        self._permits.release(call)

    def _overloaded(self) -> OverloadedError:
        return OverloadedError(
            f"{self.num_running} calls are worked on and {self.num_waiting} wait, the limit is "
            f"{self._config.max_concurrent_requests} and {self._config.max_queued_requests}",
            retry_after_s=self._retry_after_s(),
        )

    def _retry_after_s(self) -> float:
        """Seconds until the calls ahead are about done, from the mean time of recent calls."""
        ahead = self.num_waiting + self.num_running
        seconds = self._mean_call_s * ahead / self._config.max_concurrent_requests
        return min(max(seconds, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)

    def _retry_in_turn_s(self, caller: str) -> float:
        """The same for one of many calls of a caller: one after the other, or all of them come again at once."""
        now, soonest_s = time.monotonic(), self._retry_after_s()
        gap_s = self._mean_call_s / self._config.max_concurrent_requests / _REFUSED_SHARE
        back_at = max(now + soonest_s, self._back_at.get(caller, now) + gap_s)
        self._back_at[caller] = min(back_at, now + _LONGEST_RETRY_S)
        return self._back_at[caller] - now


def _count_down(counter: Counter[str], caller: str, by: int = 1) -> None:
    counter[caller] -= by
    if not counter[caller]:
        del counter[caller]  # callers come and go without end
