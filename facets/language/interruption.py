"""Lets a server divide long work: it stops when its caller is gone, and other callers have their turns.

A server sets a check for its work, which loops call at least every 50 ms; it may stop the work, or wait for a turn.
"""

import operator
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

ResultT = TypeVar("ResultT")
Run = Callable[..., Any]  # calls a function with arguments

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Within the block, ``check_interrupted`` calls ``check``, which raises when the work must stop, and may wait."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_interrupted() -> None:
    """Calls the check of the current work, if there is one; for use where no lock is held."""
    check = _CHECK.get()
    if check is not None:
        check()


class computed_once(Generic[ResultT]):  # noqa: N801  # named as functools.cached_property
    """An attribute that is computed when it is first read.

    ``functools.cached_property`` of Python 3.11 holds a lock of the whole class meanwhile, so work that waits for its
    turn or for a model would stop that of all other callers.
    """

    def __init__(self, compute: Callable[[Any], ResultT]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> ResultT:
        result = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return result


_APART: ContextVar[Callable[[], AbstractContextManager[Run]]] = ContextVar(
    "apart", default=lambda: nullcontext(operator.call)
)


@contextmanager
def apart_in(enter: Callable[[], AbstractContextManager[Run]]) -> Iterator[None]:
    """Within the block, ``apart`` returns what ``enter`` returns."""
    token = _APART.set(enter)
    try:
        yield
    finally:
        _APART.reset(token)


def apart() -> AbstractContextManager[Run]:
    """Enters rare work of many seconds; the block gets a function that calls another one with arguments.

    A server enters one such block at a time, and makes the call in another process: function, arguments and result
    must be picklable.
    """
    return _APART.get()()


class FifoLock:
    """A lock that threads get in the order of their requests, for use in a ``with`` block."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._mutex:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
