"""Values of the caller's, checked before they go into messages; and what records can do besides holding values."""

import math
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from facets_client.core.extras import require_extra

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

FacetsArray: TypeAlias = NDArray[np.floating]  # float32, or float16 when asked for


class Added:
    """A record of numbers that can be added, field by field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))  # type: ignore[arg-type]


EntryT = TypeVar("EntryT")


class Listed(Sequence[EntryT]):
    """A reply that is a sequence of what its first field holds: gone through, counted, indexed."""

    __slots__ = ()

    @property
    def _entries(self) -> tuple[EntryT, ...]:
        entries: tuple[EntryT, ...] = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return entries

    @overload
    def __getitem__(self, place: int) -> EntryT: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[EntryT]: ...
    def __getitem__(self, place: int | slice) -> EntryT | Sequence[EntryT]:
        return self._entries[place]

    def __len__(self) -> int:
        return len(self._entries)

    def to_dicts(self) -> list[dict[str, object]]:
        """An entry a row, as ``pandas.DataFrame(...)`` and ``polars.DataFrame(...)`` take them.

        Where an entry is a list of its own, a row is one of these, with the number of the list as ``query``, from 0.
        """
        rows = []
        for number, entry in enumerate(self._entries):
            items, of_list = (entry, {"query": number}) if isinstance(entry, tuple) else ((entry,), {})
            rows += [{**of_list, **asdict(item)} for item in items]  # type: ignore[arg-type]
        return rows

    def to_arrow(self) -> "Table":
        """The rows of ``to_dicts`` as an Arrow table.

        Raises:
            ImportError: The extra ``parquet`` is not installed.
        """
        require_extra("parquet", "pyarrow")
        import pyarrow

        return pyarrow.Table.from_pylist(self.to_dicts())

    def to_pandas(self) -> "DataFrame":
        """The rows of ``to_dicts`` as a DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        return pandas.DataFrame(self.to_dicts())


class _Score(Protocol):
    @property
    def accepted(self) -> bool: ...


ScoreT = TypeVar("ScoreT", bound=_Score)


class OfPattern(Generic[ScoreT]):
    """A pattern with scores of relations, accepted ones first."""

    __slots__ = ()
    relations: tuple[ScoreT, ...]

    @property
    def best(self) -> ScoreT | None:
        """The most probable accepted relation; None is the answer "no relation"."""
        return next((score for score in self.relations if score.accepted), None)


class OfPair(Generic[ScoreT]):
    """A pair of entities with what the pattern between them says."""

    __slots__ = ()
    pattern_score: OfPattern[ScoreT]

    @property
    def relations(self) -> tuple[ScoreT, ...]:
        """The accepted relations, most probable first; empty is "no relation"."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)


_ITEMS: dict[str, tuple[type, ...]] = {"texts": (str,), "ids": (str,), "queries": (str, np.ndarray)}


def check_sequences(**arguments: object) -> None:
    """Refuses one thing where many are expected, and what is no text among texts; None stands for what is left out.

    Raises:
        TypeError: With what was meant.
    """
    for name, items in arguments.items():
        if isinstance(items, str | bytes):
            raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [{items[:20]!r}]")
        kinds = _ITEMS.get(name)
        if not isinstance(items, Iterable | AsyncIterable | None) or (kinds and items is None):
            raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try [...]")
        if name == "queries" and isinstance(items, Iterator):
            raise TypeError(f"{name} must be a sequence, got one {type(items).__name__}: try list(...)")
        if kinds and isinstance(items, Sequence):
            for place, item in enumerate(items):
                if not isinstance(item, kinds):
                    expected = " or ".join(kind.__name__ for kind in kinds)
                    raise TypeError(f"{name}[{place}] must be {expected}, got {shown(item)}")


def shown(value: object) -> str:
    """Such as ``float nan`` or ``NoneType``, for an error."""
    kind, text = type(value).__name__, repr(value)
    return kind if value is None or len(text) > 20 else f"{kind} {text}"


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


def unsigned(value: int | None, name: str, *, bits: int = 32) -> int | None:
    """Returns a number that fits an unsigned field of ``bits`` bits; None stays None.

    Raises:
        ValueError: It does not fit; the limits of the server are the server's to check.
    """
    if value is not None and not 0 <= value < 2**bits:
        raise ValueError(f"{name} must be 0 to {2**bits - 1}, got {value}")
    return value


def finite_double(value: float, name: str) -> float:
    """Returns a number as the double that messages carry.

    Raises:
        ValueError: An integer beyond every double.
    """
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must fit a double, got an integer of {int(value).bit_length()} bits") from error


# Beyond these, a double does not hold every integer.
MAX_EXACT_INTEGER = 2**53
# A message may be nested 100 deep; each level of JSON takes three.
MAX_PAYLOAD_DEPTH = 20


def enum_name(prefix: str, value: str, choices: Any, *, name: str, default: Sequence[str] = ("", "any")) -> str:
    """The value of an enum as the protos call it, of the string that people type.

    Args:
        prefix: What the values of the enum begin with.
        value: One of the choices.
        choices: A ``Literal``.
        name: Of the argument.
        default: Values that stand for the unspecified one.

    Raises:
        ValueError: It is none of the choices.
    """
    known = get_args(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(filter(None, known))}, got {value!r}")
    return f"{prefix}_{'UNSPECIFIED' if value in default else value.upper()}"


def check_payload(payload: Mapping[str, object]) -> None:
    """Refuses what JSON in protobuf cannot carry without loss.

    Raises:
        ValueError: For a number that is not finite, an integer beyond 2**53, a key that is no string,
            half of a surrogate pair, or more than 20 levels.
        TypeError: For a value that JSON does not have.
    """
    level: list[object] = [payload]
    for _ in range(MAX_PAYLOAD_DEPTH + 1):
        inner: list[object] = []
        for value in level:
            inner.extend(_check_value(value))
        if not inner:
            return
        level = inner
    raise ValueError(f"payload is nested more than {MAX_PAYLOAD_DEPTH} levels deep")


def _check_value(value: object) -> Iterable[object]:
    """Checks one value and returns the values inside it."""
    if isinstance(value, str):
        if not value.isascii():
            check_text(value)
    elif isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"payload has a key of type {type(key).__name__}, expected a string")
            check_text(key)
        return value.values()
    elif isinstance(value, list | tuple):
        return value
    elif isinstance(value, bool) or value is None:
        pass
    elif isinstance(value, int):
        if abs(value) > MAX_EXACT_INTEGER:
            shown = str(value) if value.bit_length() <= 256 else f"of {value.bit_length()} bits"
            raise ValueError(f"payload has the integer {shown}, beyond 2**53: give it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"payload has the number {value}, expected a finite one")
    else:
        raise TypeError(f"payload has a value of type {type(value).__name__}, which JSON does not have")
    return ()


def check_text(value: str) -> None:
    """Refuses half of a surrogate pair, which no UTF-8 can carry (ValueError), and what is no str (TypeError)."""
    if not isinstance(value, str):
        raise TypeError(f"expected a str, got {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("text holds half of a surrogate pair, which is no character") from error
