"""Rules for what requests hold, with all broken fields named at once."""

from collections.abc import Callable, Iterable, Sequence

from facets.errors import InvalidInputError
from facets_server.runtime.errors import InvalidFieldsError

__all__ = ["check_count", "check_num_sentences", "check_number", "check_texts", "text_problem"]

_MOST_REPORTED = 8


def check_count(items: Sequence[object], field: str, limit: int) -> None:
    """Checks that a list has 1 to ``limit`` items.

    Raises:
        InvalidInputError: It has not.
    """
    if not items:
        raise InvalidInputError(f"{field} has 0 items, expected at least 1", field=field)
    if len(items) > limit:
        raise InvalidInputError(f"{field} has {len(items)} items, the limit is {limit}", field=field)


def check_num_sentences(
    documents: Sequence[str | Sequence[str]], sentences: Callable[[str], Sequence[object]], limit: int
) -> None:
    """Checks that no raw text has more than ``limit`` sentences.

    Args:
        documents: Raw texts, and lists of sentences, which are counted elsewhere.
        sentences: Splits a text.
        limit: Most sentences of one document.

    Raises:
        InvalidInputError: One has more.
    """
    for i, document in enumerate(documents):
        if not isinstance(document, str) or len(document) <= limit:
            continue  # a sentence has a character at least
        num_sentences = len(sentences(document))
        if num_sentences > limit:
            field = f"documents[{i}].text"
            raise InvalidInputError(f"{field} has {num_sentences} sentences, the limit is {limit}", field=field)


def check_number(value: int, field: str, limit: int) -> int:
    """Returns ``value`` when it is in ``[1, limit]``.

    Raises:
        InvalidInputError: It is not.
    """
    if not 1 <= value <= limit:
        raise InvalidInputError(f"{field} must be in [1, {limit}], got {value}", field=field)
    return value


def text_problem(text: str, field: str, max_bytes: int) -> str:
    """What is wrong with one text, empty when nothing is."""
    if not text.strip():
        return f"{field} is empty, expected at least one word"
    num_bytes = len(text.encode()) if len(text) * 4 > max_bytes else 0
    if num_bytes > max_bytes:
        return f"{field} has {num_bytes} bytes, the limit is {max_bytes}"
    return ""


def check_texts(texts: Iterable[tuple[str, str]], *, max_bytes: int) -> None:
    """Checks texts that are to be encoded.

    Args:
        texts: ``(field, text)`` of each.
        max_bytes: Longest UTF-8 form.

    Raises:
        InvalidFieldsError: Some are empty or too long; names the first of them.
    """
    violations = []
    for field, text in texts:
        problem = text_problem(text, field, max_bytes)
        if problem:
            violations.append((field, problem))
            if len(violations) == _MOST_REPORTED:
                break
    if violations:
        raise InvalidFieldsError(violations)
