"""Arguments that are one string where many things are expected."""

from collections.abc import Iterable

__all__ = ["check_pairs", "check_sequences"]


def check_sequences(**arguments: object) -> None:
    """Refuses one string where many are expected.

    Raises:
        TypeError: With what was meant.
    """
    for name, items in arguments.items():
        if isinstance(items, str | bytes):
            raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [{items[:20]!r}]")


def check_pairs(**arguments: Iterable[object]) -> None:
    """Refuses one string where pairs are expected, and pairs that are a string.

    Raises:
        TypeError: With what was meant.
    """
    check_sequences(**arguments)
    for name, items in arguments.items():
        for place, item in enumerate(items):
            if isinstance(item, str | bytes):
                kind = type(item).__name__
                raise TypeError(f"{name}[{place}] must be a pair, got one {kind}: try [({item[:20]!r}, ...)]")
