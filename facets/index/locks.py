"""A lock for many readers or one writer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """Many readers or one writer. Not reentrant.

    A waiting writer goes before new readers, and readers that waited for a writer go before the next one: a thread
    that writes again and again stops nobody for longer than one of its writes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_readers = 0
        self._num_waiting_readers = 0
        self._num_waiting_writers = 0
        self._writing = False
        self._readers_first = False  # those that waited for the last writer

    @property
    def num_waiting_readers(self) -> int:
        """Readers that wait."""
        return self._num_waiting_readers

    @contextmanager
    def read(self) -> Iterator[None]:
        """Holds the lock beside other readers."""
        with self._changed:
            self._num_waiting_readers += 1
            try:
                self._changed.wait_for(
                    lambda: not self._writing and (self._readers_first or not self._num_waiting_writers)
                )
            finally:
                self._num_waiting_readers -= 1
                if self._readers_first and not self._num_waiting_readers:
                    self._readers_first = False
                    self._changed.notify_all()
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
                self._changed.wait_for(lambda: not (self._writing or self._num_readers or self._readers_first))
            finally:
                self._num_waiting_writers -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._readers_first = self._num_waiting_readers > 0
                self._changed.notify_all()
