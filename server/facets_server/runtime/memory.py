"""Returns unused memory to the system while the server is idle (glibc only)."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_libc = ctypes.CDLL(None)
_M_ARENA_MAX = -8  # glibc's number for mallopt
_PERIOD_S = 5.0
_MIN_WORK_S = 0.5  # processor time since the last release that makes another one worthwhile


def bound_heaps() -> None:
    """Limits the process to two heaps, as each keeps the memory of its largest batch; call it before threads start."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 2)


@contextmanager
def released_when_idle(is_idle: Callable[[], bool]) -> Iterator[None]:
    """Within a ``with`` block, releases unused memory when the server becomes idle after work."""
    has_ended = threading.Event()

    def watch() -> None:
        released_at = float("-inf")
        while not has_ended.wait(_PERIOD_S):
            if is_idle() and time.process_time() - released_at > _MIN_WORK_S:
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
