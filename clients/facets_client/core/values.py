"""Value types, and base classes that add methods to records."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Generic, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

FacetsArray: TypeAlias = NDArray[np.floating]  # float32, or float16 when asked for
MAX_EXACT_INTEGER = 2**53  # above it, a double cannot represent every integer
EntryT = TypeVar("EntryT")


class Added:
    """Base of a record of numbers that can be added, field by field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))  # type: ignore[arg-type]


class Listed(Sequence[EntryT]):
    """Base of a reply that is also the sequence in its first field."""

    __slots__ = ()

    @property
    def _entries(self) -> tuple[EntryT, ...]:
        entries: tuple[EntryT, ...] = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return entries

    @overload
    def __getitem__(self, index: int) -> EntryT: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EntryT]: ...
    def __getitem__(self, index: int | slice) -> EntryT | Sequence[EntryT]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def to_dicts(self) -> list[dict[str, object]]:
        """One entry per row, as ``pandas.DataFrame(...)`` and ``polars.DataFrame(...)`` take them.

        If an entry is itself a list, each of its items is a row, with the 0-based index of the list as ``query``.
        """
        rows = []
        for number, entry in enumerate(self._entries):
            items, of_list = (entry, {"query": number}) if isinstance(entry, tuple) else ((entry,), {})
            rows += [{**of_list, **asdict(item)} for item in items]  # type: ignore[arg-type]
        return rows


class _Acceptable(Protocol):
    @property
    def accepted(self) -> bool: ...


ScoreT = TypeVar("ScoreT", bound=_Acceptable)


class OfPattern(Generic[ScoreT]):
    """Base of a pattern with scores of relations, accepted ones first."""

    __slots__ = ()
    relations: tuple[ScoreT, ...]

    @property
    def best(self) -> ScoreT | None:
        """The most probable accepted relation; None: no relation."""
        return next((score for score in self.relations if score.accepted), None)


class OfPair(Generic[ScoreT]):
    """Base of a pair of entities with the score of the pattern between them."""

    __slots__ = ()
    pattern_score: OfPattern[ScoreT]

    @property
    def relations(self) -> tuple[ScoreT, ...]:
        """The accepted relations, most probable first; empty: no relation."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)
