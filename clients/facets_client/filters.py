"""Conditions on the payload of documents, for searching, listing, counting and deleting.

A field is named by its path, with dots into nested objects (``source.year``); a key that contains a dot stands in
double quotes (``"v1.0".year``). A missing field satisfies only ``Exists(field, False)``. Values of different types
never match: ``Equals(f, "1")`` does not find 1.

Example:
    >>> from facets_client.filters import AllOf, Equals, Range
    >>> recent_english = AllOf((Equals("language", "en"), Range("source.year", gte=1990)))
"""

from collections.abc import Sequence
from dataclasses import dataclass

from facets_client.core.requests import check_iterable

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Equals:
    """The field equals this value."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """The field equals one of these values."""

    field: str
    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        check_iterable("values", self.values)


@dataclass(frozen=True, slots=True)
class Range:
    """The field lies within all given bounds; at least one is required.

    The bounds are all numbers, or all strings (compared by code point, so ISO 8601 dates work).
    """

    field: str
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.gt, self.gte, self.lt, self.lte) if bound is not None]
        if not bounds:
            raise ValueError(f"range of {self.field!r} has no bound, expected at least one of gt, gte, lt, lte")
        if len({isinstance(bound, str) for bound in bounds}) > 1:
            raise ValueError(f"range of {self.field!r} mixes numbers and strings")


@dataclass(frozen=True, slots=True)
class Contains:
    """The field is a list that contains this value."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Exists:
    """The field exists, or is missing when ``exists`` is False."""

    field: str
    exists: bool = True


@dataclass(frozen=True, slots=True)
class _Combined:
    filters: "Sequence[Filter]"

    def __post_init__(self) -> None:
        check_iterable("filters", self.filters)


class AllOf(_Combined):
    """All of these conditions hold."""

    __slots__ = ()


class AnyOf(_Combined):
    """At least one of these conditions holds."""

    __slots__ = ()


class NoneOf(_Combined):
    """None of these conditions holds."""

    __slots__ = ()


Filter = Equals | OneOf | Range | Contains | Exists | AllOf | AnyOf | NoneOf
