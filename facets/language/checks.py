"""What every task asks of a text."""

from collections.abc import Sequence

from facets.errors import ErrorPath, InvalidInputError, path_text

__all__ = ["check_sequence", "check_text"]


def check_sequence(texts: Sequence[str], method: str) -> None:
    """Refuses one text where several are expected: it would be read as a sequence of characters.

    Args:
        texts: What the caller gave.
        method: What was called, for the message.

    Raises:
        TypeError: It is one ``str``.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be a sequence of str, got one str: try {method}([{texts[:20]!r}])")


def check_text(text: str, path: ErrorPath) -> None:
    """Refuses texts without a character that is not white space.

    Args:
        text: The text.
        path: Where it stands in the caller's input.

    Raises:
        TypeError: It is no string.
        InvalidInputError: It is empty or blank.
    """
    if not isinstance(text, str):
        raise TypeError(f"{path_text(path)} must be a str, got {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidInputError("has no words, expected at least one", path=path)
