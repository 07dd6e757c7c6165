"""A lock that goes to whoever has waited longest: one of Python's own may go to the same thread again and again."""

import threading
from collections import deque

__all__ = ["FifoLock"]


class FifoLock:
    """Held within a ``with`` block by one thread at a time, in the order of asking.

    Example:
        >>> lock = FifoLock()
        >>> with lock:
        ...     pass
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        """Waits for the lock."""
        with self._mutex:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        """Hands the lock to the next."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
