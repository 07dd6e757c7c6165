"""Waiting on callers: how many may be waited for at once, and how long.

A call that has begun and says nothing costs little, but not nothing. Whoever has been waited for longest gives way to
the next, so that silent calls cannot keep others out, however many they are.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from facets.errors import OverloadedError
from facets_server.runtime.errors import DeadlineExceededError

__all__ = ["WaitLimit"]

ValueT = TypeVar("ValueT")

_RETRY_AFTER_S = 1.0


class WaitLimit:
    """Bounds waits of one kind; used by one event loop."""

    def __init__(self, what: str, *, most: int, timeout_s: float | None) -> None:
        """Nobody waits yet.

        Args:
            what: What is waited for, for messages: ``"a message"``.
            most: How many may wait at once.
            timeout_s: How long each may wait, in seconds; None: without end.
        """
        self._what = what
        self._most = most
        self._timeout_s = timeout_s
        self._waiting: dict[asyncio.Task[object], float] = {}  # until when; the oldest first
        self._given_up: dict[asyncio.Task[object], Exception] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, awaitable: Awaitable[ValueT]) -> ValueT:
        """Awaits on behalf of the running task.

        Raises:
            DeadlineExceededError: It took too long.
            OverloadedError: Others came, and this has waited longest.
        """
        task = asyncio.current_task()
        assert task is not None
        self._begin(task)
        try:
            return await awaitable
        except asyncio.CancelledError:
            error = self._given_up.get(task)
            if error is None:
                raise  # the caller has gone
            task.uncancel()
            raise error from None
        finally:
            self._waiting.pop(task, None)
            self._given_up.pop(task, None)

    def _begin(self, task: "asyncio.Task[object]") -> None:
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time() + (self._timeout_s or 0.0)
        if len(self._waiting) > self._most:
            message = f"the server waits for {self._what} of {self._most} other calls"
            self._give_up(next(iter(self._waiting)), OverloadedError(message, retry_after_s=_RETRY_AFTER_S))
        if self._timeout_s is not None and self._timer is None:
            self._timer = loop.call_later(self._timeout_s, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for task, until in list(self._waiting.items()):
            if until > loop.time():
                self._timer = loop.call_at(until, self._look)
                return
            self._give_up(task, DeadlineExceededError(f"{self._what} did not come within {self._timeout_s:g} s"))

    def _give_up(self, task: "asyncio.Task[object]", error: Exception) -> None:
        del self._waiting[task]
        self._given_up[task] = error
        task.cancel()
