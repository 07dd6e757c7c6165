"""Memory of the server: the budget of all requests, and the return of unused memory to the system (glibc only)."""

import ctypes
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from facets.errors import OverloadedError
from facets_server.runtime.call_context import CallContext

_libc = ctypes.CDLL(None)
_M_ARENA_MAX = -8  # glibc's number for mallopt
_PERIOD_S = 5.0
_MIN_WORK_S, _MIN_BUSY_WORK_S = 0.5, 60.0  # processor time between two releases, when idle and in between
_RETRY_AFTER_S = 1.0
_CHECK_S = 0.1  # between two looks whether a caller that waits is gone
_RESERVED = 1 / 8  # of the budget, for callers that hold less than that


class MemoryBudget:
    """The memory that requests take, by caller: each may hold half of it. A request that is alone may exceed it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[str] = Counter()  # bytes by caller
        self._changed = threading.Condition()

    def taken(self, call: CallContext, num_bytes: int, *, waits: bool = False) -> ExitStack:
        """Takes bytes until the returned stack is closed; raises OverloadedError, or waits, while there is no room."""
        with self._changed:
            while not self._has_room(call.caller, num_bytes):
                if not waits:
                    held, total = self._held[call.caller], self._held.total()
                    taken = f"requests take {total} bytes of memory, {held} of them the caller's, this one {num_bytes}"
                    problem = f"{taken}; the limit is {self._limit}, half of it for one caller"
                    raise OverloadedError(problem, retry_after_s=_RETRY_AFTER_S)
                self._changed.wait(_CHECK_S)
                call.check()
            self._held[call.caller] += num_bytes
        stack = ExitStack()
        stack.callback(self._give_back, call.caller, num_bytes)
        return stack

    def _has_room(self, caller: str, num_bytes: int) -> bool:
        mine, total = self._held[caller], self._held.total()
        reserved = 0 if mine + num_bytes <= self._limit * _RESERVED else self._limit * _RESERVED
        return not total or (
            total + num_bytes <= self._limit - reserved and (not mine or mine + num_bytes <= self._limit / 2)
        )

    def _give_back(self, caller: str, num_bytes: int) -> None:
        with self._changed:
            self._held -= Counter({caller: num_bytes})  # drops callers that hold nothing
            self._changed.notify_all()


def bound_heaps() -> None:
    """Limits the process to two heaps, as each keeps the memory of its largest batch, and what is kept for products.

    Call it before threads start. oneDNN keeps 0.3 MB for each shape of a product in bfloat16, by default for 1024 of
    them, and makes it again in 0.4 ms. PyTorch keeps as much again in each thread, which saves no time.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "1")
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 2)


@contextmanager
def released_when_idle(is_idle: Callable[[], bool]) -> Iterator[None]:
    """Within a ``with`` block, releases unused memory when the server becomes idle after work, and after much work."""
    has_ended = threading.Event()

    def watch() -> None:
        released_at = float("-inf")
        while not has_ended.wait(_PERIOD_S):
            if time.process_time() - released_at > (_MIN_WORK_S if is_idle() else _MIN_BUSY_WORK_S):
                if hasattr(_libc, "malloc_trim"):
                    _libc.malloc_trim(0)
                released_at = time.process_time()

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
