"""Metadata and messages of calls, read on the event loop within bounds.

The oldest silent call is ended when a new one exceeds the bound, so silent calls cannot keep others out.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from contextvars import copy_context
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from facets.errors import InvalidInputError, NotReadyError, OverloadedError
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import DeadlineExceededError
from facets_server.runtime.fair_queue import without_turn

_RETRY_AFTER_S = 1.0
_CANCELLATION_S = 0.02
_SLOW_S = 0.25  # a message sent together with the headers has arrived by then

Context = Any  # grpc.aio.ServicerContext
ValueT = TypeVar("ValueT")
RequestT = TypeVar("RequestT", bound=Message)
WorkT = TypeVar("WorkT")


class WaitLimit:
    """Bounds the number and length of waits of one kind on one event loop."""

    def __init__(self, what: str, *, most: int, timeout_s: float | None) -> None:
        """Allows ``most`` waits of more than a quarter of a second, which may hold a partial message."""
        self._what = what
        self._most = most
        self._timeout_s = timeout_s
        self._slow: dict[asyncio.Task[object], None] = {}  # those that have waited so long, oldest first
        self._refused: set[asyncio.Task[object]] = set()  # those that give way

    async def wait(self, awaitable: Awaitable[ValueT]) -> ValueT:
        """Awaits; raises DeadlineExceededError after the timeout, OverloadedError if newer waits exceed the bound."""
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(_SLOW_S, self._add, task)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await awaitable
        except TimeoutError:
            raise DeadlineExceededError(f"{self._what} did not arrive within {self._timeout_s:g} s") from None
        except asyncio.CancelledError:
            if task not in self._refused:
                raise  # the caller has disconnected
            task.uncancel()
            message = f"the server waits for {self._what} of {self._most} other calls"
            raise OverloadedError(message, retry_after_s=_RETRY_AFTER_S) from None
        finally:
            timer.cancel()
            self._slow.pop(task, None)
            self._refused.discard(task)

    def _add(self, task: "asyncio.Task[object]") -> None:
        self._slow[task] = None
        if len(self._slow) > self._most:
            oldest = next(iter(self._slow))
            del self._slow[oldest]
            self._refused.add(oldest)
            oldest.cancel()


async def first_message(context: Context, waits: WaitLimit) -> bytes:
    """The first message of a call; raises InvalidInputError without one, else as ``WaitLimit.wait``."""
    data = await next_message(context, waits)
    if data is None:
        raise InvalidInputError("the call has no request message, expected one")
    return data


async def next_message(context: Context, waits: WaitLimit) -> bytes | None:
    """The next message of a call; None when the caller has closed its side."""
    data = await waits.wait(context.read())
    if data is grpc.aio.EOF:
        await asyncio.sleep(_CANCELLATION_S)  # a cancelled call looks the same; then this line raises
        return None
    return bytes(data)


def metadata_of(context: Context, name: str) -> str:
    """The first value of a name in the metadata of a call; empty: none."""
    return next((str(value) for key, value in context.invocation_metadata() if key == name), "")


def read_ahead(
    requests: Iterator[RequestT], begin: Callable[[RequestT], WorkT], admission: Admission, call: CallContext
) -> Iterator[WorkT]:
    """Starts work on some unanswered requests in a separate thread and yields it in request order.

    A request keeps its memory (``call.memory`` after it was read) until it is answered. What ``begin`` raises is raised
    here once all earlier work was yielded. When ``admission`` drains, work already begun is yielded, then NotReadyError
    is raised.
    """
    begun: queue.SimpleQueue[tuple[WorkT, ExitStack] | Exception | None] = queue.SimpleQueue()
    places = threading.Semaphore(admission.config.max_stream_window)
    has_ended = threading.Event()

    def read() -> None:
        try:
            while places.acquire() and not has_ended.is_set():
                work = begin(next(requests))
                begun.put((work, call.memory.pop_all()))
        except StopIteration:
            begun.put(None)
        except Exception as error:  # the answering thread raises it
            begun.put(error)
        finally:
            call.memory.close()
            if has_ended.is_set():
                give_back()

    def give_back() -> None:
        with suppress(queue.Empty):
            while True:
                if isinstance(item := begun.get_nowait(), tuple):
                    item[1].close()

    def drain() -> None:
        begun.put(NotReadyError("the server is shutting down; all acknowledged work is complete"))

    context = copy_context()  # carries the call's interruption check into the thread
    threading.Thread(target=context.run, args=(read,), name="stream-reader", daemon=True).start()
    try:
        with admission.on_drain(drain):
            while True:
                with without_turn():
                    item = begun.get()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                work, memory = item
                with memory:
                    yield work
                places.release()
    finally:
        has_ended.set()
        places.release()
        give_back()
