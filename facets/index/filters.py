"""Payload filters: a small typed tree, evaluated in SQL (:func:`to_sql`) or in Python (:func:`matches`).

A path names a value inside the payload by object keys joined with dots, e.g. ``author.name``. A value of
another type than the filter's never matches: ``Equals("year", 1)`` does not match ``true`` or ``"1"``; integers
and floats are one type. A missing value matches nothing, so ``Not(Equals(...))`` matches documents without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["And", "Contains", "Equals", "Exists", "Filter", "In", "Not", "Or", "Range", "Scalar"]

Scalar: TypeAlias = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Equals:
    """The value at ``path`` is ``value``; None means JSON null (present, but null)."""

    path: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class In:
    """The value at ``path`` is one of ``values`` (at least one)."""

    path: str
    values: Sequence[Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The value at ``path`` lies within every bound given; numbers against numbers, strings against strings.

    Strings compare by code point, so ISO 8601 dates work. At least one bound, all of one type.
    """

    path: str
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """There is a value at ``path``, null included."""

    path: str


@dataclass(frozen=True, slots=True)
class Contains:
    """The value at ``path`` is a list that has ``value`` among its items."""

    path: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class And:
    """Every one of ``filters`` matches; true when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of ``filters`` matches; false when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Not:
    """``filter`` does not match."""

    filter: "Filter"


Filter: TypeAlias = Equals | In | Range | Exists | Contains | And | Or | Not
