"""Reading a stream ahead: the next requests are begun while the answer to the first is still being made.

Answers keep the order of the requests. At most ``window`` requests are begun and not yet answered, and no more is
read while they have as many bytes as one stream may hold; gRPC's flow control holds back the rest.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Generic, TypeVar

from facets.errors import NotReadyError
from facets_server.runtime.admission import Admission

__all__ = ["read_ahead"]


Request = TypeVar("Request")
Work = TypeVar("Work")


class _Reader(Generic[Request, Work]):
    """The thread that takes requests from gRPC and begins the work on them."""

    def __init__(
        self,
        requests: Iterator[Request],
        begin: Callable[[Request], Work],
        *,
        window: int,
        max_bytes: int,
        num_bytes: Callable[[Request], int],
    ) -> None:
        self.begun: queue.SimpleQueue[Work | Exception | None] = queue.SimpleQueue()
        self._requests = requests
        self._begin = begin
        self._window = window
        self._max_bytes = max_bytes
        self._num_bytes = num_bytes
        self._held: deque[int] = deque()  # bytes of the requests begun and not yet answered
        self._changed = threading.Condition()
        self._abandoned = False
        context = copy_context()  # who waits for the work is known there
        threading.Thread(target=context.run, args=(self._read,), name="stream-reader", daemon=True).start()

    def free_place(self) -> None:
        """The oldest request has been answered."""
        with self._changed:
            self._held.popleft()
            self._changed.notify()

    def drain(self) -> None:
        """What was begun before is still answered, then the stream ends."""
        self.begun.put(NotReadyError("the server is shutting down; what was answered is done"))

    def abandon(self) -> None:
        """Nobody takes the work any more."""
        with self._changed:
            self._abandoned = True
            self._changed.notify()

    def _may_read(self) -> bool:
        has_room = len(self._held) < self._window and sum(self._held) < self._max_bytes
        return self._abandoned or not self._held or has_room

    def _read(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(self._may_read)
                    if self._abandoned:
                        return
                request = next(self._requests)
                with self._changed:
                    self._held.append(self._num_bytes(request))
                self.begun.put(self._begin(request))
        except StopIteration:
            self.begun.put(None)
        except Exception as error:  # handed to the thread that answers, which maps it like any other error
            self.begun.put(error)


def read_ahead(
    requests: Iterator[Request],
    begin: Callable[[Request], Work],
    *,
    window: int,
    num_bytes: Callable[[Request], int],
    admission: Admission,
) -> Iterator[Work]:
    """Begins the work on up to ``window`` requests ahead and yields it in the order of the requests.

    Args:
        requests: From gRPC; ends when the caller has closed its side.
        begin: Starts the work on one request; runs on a thread of its own, one request after the other.
        window: Requests begun and not yet answered, >= 1.
        num_bytes: Of a request.
        admission: Says how many bytes these may have; when it drains, what was begun before is yielded and then the
            stream fails.

    Raises:
        NotReadyError: The server is shutting down.
        CallCancelledError: The caller cancelled.
        Exception: What ``begin`` raised, after the work before it was yielded.
    """
    reader = _Reader(requests, begin, window=window, max_bytes=admission.max_stream_bytes, num_bytes=num_bytes)
    try:
        with admission.on_drain(reader.drain):
            while (work := reader.begun.get()) is not None:
                if isinstance(work, Exception):
                    raise work
                yield work
                reader.free_place()
    finally:
        reader.abandon()
