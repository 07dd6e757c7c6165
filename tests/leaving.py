"""Callers who go away while work is done for them."""

from collections.abc import Callable

from facets.language.interruption import interrupted_by


class _GoneError(Exception):
    pass


def looks_until_gone(number: int, work: Callable[[], object]) -> int:
    """Does work whose caller is gone at the look after ``number`` others; returns how often it looked."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks > number:
            raise _GoneError

    with interrupted_by(look):
        try:
            work()
        except _GoneError:
            return looks
    assert looks <= number, "the work went on without its caller"
    return looks
