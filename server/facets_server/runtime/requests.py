"""Reading of requests, shared by the handlers of all rooms: records, sizes, checks of texts, pages.

``message_limits`` has limited the number of items before. Bytes are checked here; the records of the library check the
rest. If several texts of a request are invalid, one error names the first few.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from facets_proto.codec import from_message
from facets_proto.values import WireError
from google.protobuf.message import Message

from facets.errors import ErrorPath, InvalidInputError, raise_first
from facets.index.config import MAX_PAGE_SIZE
from facets.language.tokenizer import check_text

_DEFAULT_PAGE_SIZE = 100
_PAGE_TOKEN = re.compile(r"at-([0-9]{1,9})")

RecordT = TypeVar("RecordT")
ItemT = TypeVar("ItemT")


@contextmanager
def at_path(path: ErrorPath) -> Iterator[None]:
    """Turns errors about a message, or a record made of it, into errors of the request that holds it at ``path``."""
    try:
        yield
    except WireError as error:
        raise InvalidInputError(error.rule, path=(*path, *error.path)) from error
    except InvalidInputError as error:
        raise error.at((*path, *error.path)) from error


def record_of(message: Message, record_type: type[RecordT], path: ErrorPath = (), **others: object) -> RecordT:
    """Converts the message at ``path`` of a request to a record, see ``from_message``; raises InvalidInputError."""
    with at_path(path):
        return from_message(message, record_type, **others)


def check_not_empty(items: Sequence[object], path: ErrorPath) -> None:
    """Raises InvalidInputError for an empty list."""
    if not items:
        raise InvalidInputError("has 0 items, expected at least 1", path=path)


def check_number(value: int, path: ErrorPath, limit: int) -> int:
    """Returns ``value`` if it is in ``[1, limit]``, else raises InvalidInputError."""
    if not 1 <= value <= limit:
        raise InvalidInputError(f"must be in [1, {limit}], got {value}", path=path)
    return value


def check_product(name: str, top_k: int, num_items: int, limit: int, path: ErrorPath = ("top_k",)) -> None:
    """Raises InvalidInputError if ``top_k`` results for each of the items called ``name`` exceed the limit."""
    if top_k * num_items > limit:
        raise InvalidInputError(
            f"times the number of {name} must be at most {limit} with evidence, got {top_k * num_items}", path=path
        )


def check_texts(texts: Iterable[tuple[ErrorPath, str, int]]) -> None:
    """Raises InvalidFieldsError if texts, given with their paths and limits of bytes, are empty or too long."""
    problems = []
    for path, text, max_bytes in texts:
        try:
            check_text(text, path, max_bytes=max_bytes)
        except InvalidInputError as error:
            problems.append(error)
    raise_first(problems)


def check_list_of_texts(texts: Sequence[str], *path: str | int, max_bytes: int) -> None:
    """Checks the texts in the field at ``path``; raises as ``check_texts``."""
    check_texts(((*path, i), text, max_bytes) for i, text in enumerate(texts))


def check_pairs(pairs: Sequence[object], sides: tuple[str, str], *, max_bytes: int) -> None:
    """Checks the texts in the field ``pairs``; raises as ``check_not_empty`` and ``check_texts``."""
    check_not_empty(pairs, ("pairs",))
    check_texts((("pairs", i, side), getattr(pair, side), max_bytes) for i, pair in enumerate(pairs) for side in sides)


def page_size_of(request: Any) -> int:
    """The page size of a request, else the default; raises InvalidInputError."""
    return check_number(request.page_size or _DEFAULT_PAGE_SIZE, ("page_size",), MAX_PAGE_SIZE)


def page_of(items: Sequence[ItemT], request: Any) -> tuple[Sequence[ItemT], str]:
    """The page of a list that a request asks for, and the token of the next page, empty on the last one."""
    match = _PAGE_TOKEN.fullmatch(request.page_token or "at-0")
    if match is None:
        raise InvalidInputError(
            "is not a page token of this list, expected next_page_token of the previous page", path="page_token"
        )
    start = int(match[1])
    end = start + page_size_of(request)
    return items[start:end], f"at-{end}" if end < len(items) else ""
