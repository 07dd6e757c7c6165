"""Rules for what requests hold, with all broken fields named at once."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from facets.errors import ErrorPath, InvalidInputError
from facets_server.runtime.errors import InvalidFieldsError

__all__ = ["check_count", "check_num_sentences", "check_number", "check_texts", "raise_first", "text_problem"]

_MOST_REPORTED = 8


def check_count(items: Sequence[object], path: ErrorPath, limit: int) -> None:
    """Checks that a list has 1 to ``limit`` items.

    Raises:
        InvalidInputError: It has not.
    """
    if not items:
        raise InvalidInputError("has 0 items, expected at least 1", path=path)
    if len(items) > limit:
        raise InvalidInputError(f"has {len(items)} items, the limit is {limit}", path=path)


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
            raise InvalidInputError(
                f"has {num_sentences} sentences, the limit is {limit}", path=("documents", i, "text")
            )


def check_number(value: int, path: ErrorPath, limit: int) -> int:
    """Returns ``value`` when it is in ``[1, limit]``.

    Raises:
        InvalidInputError: It is not.
    """
    if not 1 <= value <= limit:
        raise InvalidInputError(f"must be in [1, {limit}], got {value}", path=path)
    return value


def text_problem(text: str, path: ErrorPath, max_bytes: int) -> InvalidInputError | None:
    """What is wrong with one text, if anything is."""
    if not text.strip():
        return InvalidInputError("is empty, expected at least one word", path=path)
    num_bytes = len(text.encode()) if len(text) * 4 > max_bytes else 0
    if num_bytes > max_bytes:
        return InvalidInputError(f"has {num_bytes} bytes, the limit is {max_bytes}", path=path)
    return None


def check_texts(texts: Iterable[tuple[ErrorPath, str]], *, max_bytes: int) -> None:
    """Checks texts that are to be encoded.

    Args:
        texts: ``(path, text)`` of each.
        max_bytes: Longest UTF-8 form.

    Raises:
        InvalidFieldsError: Some are empty or too long; names the first of them.
    """
    raise_first(problem for path, text in texts if (problem := text_problem(text, path, max_bytes)) is not None)


def raise_first(problems: Iterable[InvalidInputError]) -> None:
    """Raises the first few problems as one error; looks for no more than those.

    Raises:
        InvalidFieldsError: There is a problem.
    """
    found = list(islice(problems, _MOST_REPORTED))
    if found:
        raise InvalidFieldsError(found)
