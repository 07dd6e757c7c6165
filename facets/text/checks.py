"""What every task asks of a text."""

from facets.errors import InvalidInputError

__all__ = ["check_text"]


def check_text(text: str, field: str) -> None:
    """Refuses texts without a character that is not white space.

    Args:
        text: The text.
        field: Where it stands in the caller's input, for the message.

    Raises:
        TypeError: It is no string.
        InvalidInputError: It is empty or blank.
    """
    if not isinstance(text, str):
        raise TypeError(f"{field} must be a str, got {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidInputError(f"{field} has no words, expected at least one", field=field)
