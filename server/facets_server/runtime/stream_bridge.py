"""One stream between the event loop and the thread that serves it: both sides of the thread simply block."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import grpc

from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError
from facets_server.runtime.messages import next_message
from facets_server.runtime.wait_limit import WaitLimit

__all__ = ["StreamBridge"]

ValueT = TypeVar("ValueT")


class StreamBridge:
    """Reads and writes the messages of one stream, as bytes."""

    def __init__(self, context: Any, call: CallContext, waits: WaitLimit) -> None:
        """Made on the loop.

        Args:
            context: Of grpc.aio.
            call: The stream; once it has ended, reading and writing fail.
            waits: Bounds the wait for a message.
        """
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._call = call
        self._waits = waits

    def messages(self, first: bytes | None, decode: Callable[[bytes], ValueT]) -> Iterator[ValueT]:
        """Every message of the caller until it has closed its side; for one thread at a time.

        Args:
            first: The one that has come already; None: there is none.
            decode: Bytes of a message -> the message.

        Raises:
            CallCancelledError: The call has ended.
            DeadlineExceededError: The caller was silent for too long.
        """
        data = first
        while data is not None:
            yield decode(data)
            data = self._on_loop(next_message(self._context, self._waits))
        if not self._call.is_active():
            raise CallCancelledError("the caller cancelled the stream")

    def send(self, data: bytes) -> None:
        """Sends a message; waits until the connection has taken it.

        Raises:
            CallCancelledError: The call has ended.
        """
        self._on_loop(self._context.write(data))

    def _on_loop(self, coroutine: Coroutine[Any, Any, ValueT]) -> ValueT:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except (grpc.aio.BaseError, CancelledError) as error:
            raise CallCancelledError("the caller cancelled the stream") from error
