"""Pages of short lists that are held in memory, with opaque tokens."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from facets.errors import InvalidInputError
from facets_server.runtime.checks import check_number

__all__ = ["Page", "page_of", "page_size_of"]

Item = TypeVar("Item")
_DEFAULT_SIZE = 100
_PREFIX = "at:"


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items and the token of the next page, empty on the last one."""

    items: Sequence[Item]
    next_token: str


def page_size_of(requested: int, limit: int) -> int:
    """The size of a page: as requested, the default for 0.

    Raises:
        InvalidInputError: More than ``limit``.
    """
    return check_number(requested or min(_DEFAULT_SIZE, limit), ("page_size",), limit)


def page_of(items: Sequence[Item], *, size: int, token: str, limit: int) -> Page[Item]:
    """One page of a list.

    Args:
        items: The whole list.
        size: Requested size, 0 for the default.
        token: ``next_token`` of the page before, empty for the first page.
        limit: Largest size.

    Raises:
        InvalidInputError: The size is out of range or the token is not ours.
    """
    size = page_size_of(size, limit)
    start = _start_of(token) if token else 0
    end = start + size
    next_token = base64.urlsafe_b64encode(f"{_PREFIX}{end}".encode()).decode() if end < len(items) else ""
    return Page(items[start:end], next_token)


def _start_of(token: str) -> int:
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
        if text.startswith(_PREFIX):
            return max(0, int(text.removeprefix(_PREFIX)))
    except (binascii.Error, ValueError):
        pass  # refused below, like a token with another prefix
    raise InvalidInputError("is not one of ours, expected next_page_token", path="page_token")
