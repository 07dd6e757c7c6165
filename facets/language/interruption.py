"""Stopping long work on texts that nobody waits for any more.

Whoever runs work for others says how to find out; loops over texts ask now and then, wherever they are.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["check_interrupted", "interrupted_by"]

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Within the block, ``check_interrupted`` calls ``check``, which raises when the work is to stop.

    Example:
        >>> def check():
        ...     raise TimeoutError
        >>> with interrupted_by(check):
        ...     check_interrupted()
        Traceback (most recent call last):
        TimeoutError
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_interrupted() -> None:
    """Raises what the check of the work raises; does nothing where nobody has set one."""
    check = _CHECK.get()
    if check is not None:
        check()
