"""Arrays, lists and mappings that grow by the rows added, while snapshots of a moment stay as they are.

A snapshot is a view of the first rows; rows are written behind it, where nobody looks yet. One writer at a time, and
what is extended is the latest snapshot that readers were given: rows of a change that failed are written over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["GrowingArray", "GrowingList", "LayeredMap", "ListPrefix"]

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")
ScalarT = TypeVar("ScalarT", bound=np.generic)

_GROWTH = 1.5  # of the room, when it is used up: a row is moved a bounded number of times
_MIN_FOLDED = 256
_FOLDED_SHARE = 8  # a layer of an eighth of the mapping becomes part of it


class GrowingArray(Generic[ScalarT]):
    """Rows of one array.

    Args:
        rows: The first ones; taken over, not copied.
    """

    def __init__(self, rows: NDArray[ScalarT]) -> None:
        self._room = rows

    def extended(self, length: int, rows: NDArray[ScalarT]) -> NDArray[ScalarT]:
        """The first ``length`` rows and then these, ``[length + R, ...]``; arrays given before do not change."""
        total = length + len(rows)
        if total > len(self._room):
            room = np.empty((max(total, int(_GROWTH * length)), *self._room.shape[1:]), dtype=self._room.dtype)
            room[:length] = self._room[:length]
            self._room = room
        self._room[length:total] = rows
        return self._room[:total]


class ListPrefix(Sequence[ItemT]):
    """The first items of a list that may have grown since."""

    def __init__(self, items: list[ItemT], length: int) -> None:
        self._items = items
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ItemT]:
        return islice(iter(self._items), self._length)

    @overload
    def __getitem__(self, place: int) -> ItemT: ...
    @overload
    def __getitem__(self, place: slice) -> list[ItemT]: ...
    def __getitem__(self, place: int | slice) -> ItemT | list[ItemT]:
        if isinstance(place, slice):
            return [self._items[number] for number in range(*place.indices(self._length))]
        if not -self._length <= place < self._length:
            raise IndexError(f"place {place} of a list of {self._length}")
        return self._items[place if place >= 0 else self._length + place]


class GrowingList(Generic[ItemT]):
    """Items of one list.

    Args:
        items: The first ones.
    """

    def __init__(self, items: Iterable[ItemT]) -> None:
        self._items = list(items)

    def extended(self, length: int, items: Iterable[ItemT]) -> ListPrefix[ItemT]:
        """The first ``length`` items and then these; lists given before do not change."""
        del self._items[length:]
        self._items.extend(items)
        return ListPrefix(self._items, len(self._items))


class LayeredMap(Mapping[KeyT, ValueT]):
    """A mapping that is never changed, only replaced; most of it is shared with the one that it replaces."""

    def __init__(self, base: dict[KeyT, ValueT], changes: dict[KeyT, ValueT] | None = None) -> None:
        self._base = base
        self._changes = changes or {}
        self._length = len(base) + sum(key not in base for key in self._changes)

    def updated(self, changes: Mapping[KeyT, ValueT]) -> "LayeredMap[KeyT, ValueT]":
        """With other values of some keys."""
        merged = {**self._changes, **changes}
        if len(merged) > max(_MIN_FOLDED, len(self._base) // _FOLDED_SHARE):
            return LayeredMap({**self._base, **merged})
        return LayeredMap(self._base, merged)

    def __getitem__(self, key: KeyT) -> ValueT:
        return self._changes[key] if key in self._changes else self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._changes or key in self._base

    def __iter__(self) -> Iterator[KeyT]:
        yield from self._base
        yield from (key for key in self._changes if key not in self._base)

    def __len__(self) -> int:
        return self._length
