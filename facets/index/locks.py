"""A lock for many readers or one writer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """Many readers or one writer; a waiting writer goes before new readers. Not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_readers = 0
        self._num_waiting_writers = 0
        self._writing = False

    @contextmanager
    def read(self) -> Iterator[None]:
        """Holds the lock beside other readers."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writing and not self._num_waiting_writers)
            self._num_readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_readers -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Holds the lock alone."""
        with self._changed:
            self._num_waiting_writers += 1
            try:
                self._changed.wait_for(lambda: not self._writing and not self._num_readers)
            finally:
                self._num_waiting_writers -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
