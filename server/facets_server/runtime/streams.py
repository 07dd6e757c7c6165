"""Reading a stream ahead: the next requests are begun while the answer to the first is still being made.

Answers keep the order of the requests. At most ``window`` requests are begun and not yet answered; gRPC's
flow control holds back the rest.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import grpc

from facets.errors import NotReadyError
from facets_server.runtime.admission import Admission
from facets_server.runtime.errors import CallCancelledError

__all__ = ["read_ahead"]

Request = TypeVar("Request")
Work = TypeVar("Work")


class _Reader(Generic[Request, Work]):
    """The thread that takes requests from gRPC and begins the work on them."""

    def __init__(self, requests: Iterator[Request], begin: Callable[[Request], Work], window: int) -> None:
        self.begun: queue.SimpleQueue[Work | Exception | None] = queue.SimpleQueue()
        self._requests = requests
        self._begin = begin
        self._places = threading.Semaphore(window)
        self._abandoned = False
        threading.Thread(target=self._read, name="stream-reader", daemon=True).start()

    def free_place(self) -> None:
        """One more request may be read."""
        self._places.release()

    def drain(self) -> None:
        """What was begun before is still answered, then the stream ends."""
        self.begun.put(NotReadyError("the server is shutting down; what was answered is done"))

    def abandon(self) -> None:
        """Nobody takes the work any more."""
        self._abandoned = True
        self._places.release()

    def _read(self) -> None:
        try:
            while True:
                self._places.acquire()
                if self._abandoned:
                    return
                self.begun.put(self._begin(next(self._requests)))
        except StopIteration:
            self.begun.put(None)
        except grpc.RpcError:
            self.begun.put(CallCancelledError("the caller cancelled the stream"))
        except Exception as error:  # handed to the thread that answers, which maps it like any other error
            self.begun.put(error)


def read_ahead(
    requests: Iterator[Request], begin: Callable[[Request], Work], *, window: int, admission: Admission
) -> Iterator[Work]:
    """Begins the work on up to ``window`` requests ahead and yields it in the order of the requests.

    Args:
        requests: From gRPC; ends when the caller has closed its side.
        begin: Starts the work on one request; runs on a thread of its own, one request after the other.
        window: Requests begun and not yet answered, >= 1.
        admission: When it drains, what was begun before is yielded and then the stream fails.

    Raises:
        NotReadyError: The server is shutting down.
        CallCancelledError: The caller cancelled.
        Exception: What ``begin`` raised, after the work before it was yielded.
    """
    reader = _Reader(requests, begin, window)
    try:
        with admission.on_drain(reader.drain):
            while (work := reader.begun.get()) is not None:
                if isinstance(work, Exception):
                    raise work
                yield work
                reader.free_place()
    finally:
        reader.abandon()
