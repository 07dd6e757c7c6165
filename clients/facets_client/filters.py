"""Conditions on the payload of documents, for searching, listing, counting and deleting.

A field is named by its path, with dots into nested objects (``source.year``); a key that contains a dot stands in
double quotes (``"v1.0".year``). A missing field satisfies only ``Exists(field, False)``. Values of different types
never match: ``Equals(f, "1")`` does not find 1. A date stands for its ISO 8601 text, as ``add`` stores it.

Example:
    >>> from facets_client.filters import AllOf, Equals, Range
    >>> recent_english = AllOf((Equals("language", "en"), Range("source.year", gte=1990)))
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from facets_proto.v1 import filters_pb2 as pb
from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError

from facets_client.core.requests import check_iterable, request_of

Scalar = str | int | float | bool | datetime.date | None


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

    The bounds are all numbers, or all strings or dates (compared as text by code point).
    """

    field: str
    gt: float | str | datetime.date | None = None
    gte: float | str | datetime.date | None = None
    lt: float | str | datetime.date | None = None
    lte: float | str | datetime.date | None = None

    def __post_init__(self) -> None:
        kinds = {isinstance(bound, str) for bound in _bounds(self).values() if bound is not None}
        if not kinds:
            raise ValueError(f"range of {self.field!r} has no bound, expected at least one of gt, gte, lt, lte")
        if len(kinds) > 1:
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
_COMBINED = {AllOf: "all_of", AnyOf: "any_of", NoneOf: "none_of"}


def filter_message(where: Filter | None) -> pb.Filter | None:
    """A condition as a message; None stays None."""
    if where is None:
        return None
    if isinstance(where, AllOf | AnyOf | NoneOf):
        inner: Any = list(map(filter_message, where.filters))
        try:
            return pb.Filter(**{_COMBINED[type(where)]: pb.FilterList(filters=inner)})  # type: ignore[arg-type]
        except DecodeError as error:
            raise ValueError("where is nested too deeply") from error
    try:
        return pb.Filter(field=request_of(pb.FieldCondition, **_condition(where), field=where.field))
    except (OverflowError, ValueError) as error:
        rule = "must fit a double" if isinstance(error, OverflowError) else "must be a string, a number, a bool or None"
        raise ValueError(f"the value for {where.field} {rule}: {error}") from error


def _condition(where: Filter) -> dict[str, Any]:
    match where:
        case Equals(_, value):
            return {"equals": _values([value]).values[0]}
        case OneOf(_, values):
            return {"one_of": _values(values)}
        case Range():
            bounds = _bounds(where)
            is_text = any(isinstance(bound, str) for bound in bounds.values())
            return {"string_range": pb.StringRange(**bounds)} if is_text else {"range": pb.NumberRange(**bounds)}
        case Contains(_, value):
            return {"contains": _values([value]).values[0]}
        case Exists(_, exists):
            return {"exists": exists}
    expected = "a filter of facets_client.filters, such as Equals('language', 'en')"
    raise TypeError(f"where must be {expected}, got {where!r}")


def _bounds(where: Range) -> dict[str, Any]:
    return {name: _plain(getattr(where, name)) for name in ("gt", "gte", "lt", "lte")}


def _values(values: Sequence[Scalar]) -> struct_pb2.ListValue:
    listed = struct_pb2.ListValue()
    listed.extend(map(_plain, values))
    return listed


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value.isoformat() if isinstance(value, datetime.date) else value
