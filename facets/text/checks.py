"""What every task asks of a text."""

from facets.errors import ErrorPath, InvalidInputError, path_text

__all__ = ["check_text"]


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
