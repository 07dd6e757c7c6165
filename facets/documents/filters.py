"""Payload filters: a small typed tree, evaluated in SQL by the store; :func:`matches` defines the meaning.

A field is named by its path in the payload: object keys joined by dots, e.g. ``author.name``. A value whose type
differs from the filter's never matches: ``Equals("year", 1)`` does not match ``true`` or ``"1"``. Integers and floats
are one type. A missing value matches nothing, so ``NoneOf([Equals(...)])`` matches documents without it.

Example:
    >>> recent = AllOf([Equals("kind", "news"), Range("year", gte=2020)])
    >>> matches(recent, {"kind": "news", "year": 2021}), matches(recent, {"kind": "news"})
    (True, False)
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from facets.documents.types import JsonValue
from facets.errors import InvalidInputError

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Equals:
    """The value of ``field`` is ``value``; None means JSON null (present, but null)."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value of ``field`` is one of ``values`` (at least one)."""

    field: str
    values: Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class Range:
    """The value of ``field`` is within every given bound; numbers are compared with numbers, strings with strings.

    Strings compare by code point, so ISO 8601 dates work. At least one bound is required; all must have one type.
    """

    field: str
    _: KW_ONLY
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """``field`` is present; its value may be null."""

    field: str


@dataclass(frozen=True, slots=True)
class Contains:
    """The value of ``field`` is a list that contains ``value``."""

    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of ``filters`` matches; true when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of ``filters`` matches; false when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """None of ``filters`` matches; true when there are none."""

    filters: Sequence["Filter"]


Condition: TypeAlias = Equals | OneOf | Range | Exists | Contains
Filter: TypeAlias = Condition | AllOf | AnyOf | NoneOf

MAX_FILTER_DEPTH = 32  # nested filters
MAX_FILTER_NODES = 256  # filters in one tree
MAX_FILTER_VALUES = 10_000  # values of one OneOf


def validate(filter: Filter) -> None:
    """Checks a filter's paths, values and size.

    Raises:
        InvalidInputError: A path that is empty or has an empty, quoted or control-character key; a value that is
            not a JSON scalar; NaN or infinity; bounds of mixed types or none; a tree too large.
    """
    num_nodes = 0
    level: list[Filter] = [filter]
    for _ in range(MAX_FILTER_DEPTH):
        if not level:
            return
        num_nodes += len(level)
        level = [inner for node in level for inner in _check_node(node)]
        if num_nodes > MAX_FILTER_NODES:
            raise _invalid(f"has more than {MAX_FILTER_NODES} parts, the limit")
    if level:
        raise _invalid(f"is nested deeper than {MAX_FILTER_DEPTH} levels, the limit")


def matches(filter: Filter, payload: Mapping[str, JsonValue]) -> bool:
    """Whether a payload passes a valid filter: the reference that the SQL is tested against."""
    match filter:
        case AllOf(filters):
            return all(matches(inner, payload) for inner in filters)
        case AnyOf(filters):
            return any(matches(inner, payload) for inner in filters)
        case NoneOf(filters):
            return not any(matches(inner, payload) for inner in filters)
        case Exists(path):
            return _lookup(path, payload) is not _MISSING
        case Equals(path, value):
            return _same(_lookup(path, payload), value)
        case OneOf(path, values):
            return any(_same(_lookup(path, payload), value) for value in values)
        case Contains(path, value):
            items = _lookup(path, payload)
            return isinstance(items, list) and any(_same(item, value) for item in items)
        case Range():
            found = _lookup(filter.field, payload)
            return all(
                _kind(found) == _kind(bound) and _COMPARE[comparison](found, bound)
                for comparison, bound in bounds_of(filter)
            )


_MISSING = object()
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _lookup(path: str, payload: Mapping[str, JsonValue]) -> object:
    value: object = payload
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def _same(item: object, value: Scalar) -> bool:
    return item is not _MISSING and _kind(item) == _kind(value) and item == value


def bounds_of(node: Range) -> list[tuple[str, float | str]]:
    """The comparison operators of a range, as SQL writes them, with their bounds."""
    bounds = ((">", node.gt), (">=", node.gte), ("<", node.lt), ("<=", node.lte))
    return [(comparison, bound) for comparison, bound in bounds if bound is not None]


def _invalid(rule: str) -> InvalidInputError:
    return InvalidInputError(rule, path="where")


def _check_node(node: Filter) -> Sequence[Filter]:
    """Checks one filter; returns the filters inside it."""
    match node:
        case AllOf(filters) | AnyOf(filters) | NoneOf(filters) if not isinstance(filters, str):
            return filters
        case Equals(path, value) | Contains(path, value):
            _check_path(path)
            _check_value(path, value)
        case OneOf(path, values):
            _check_path(path)
            if isinstance(values, str) or not 1 <= len(values) <= MAX_FILTER_VALUES:
                raise _invalid(f"must have 1 to {MAX_FILTER_VALUES} scalars as values of {path!r}")
            for value in values:
                _check_value(path, value)
        case Exists(path):
            _check_path(path)
        case Range():
            _check_path(node.field)
            kinds = {_kind(bound) for _, bound in bounds_of(node)}
            for _, bound in bounds_of(node):
                _check_value(node.field, bound)
            if len(kinds) != 1 or not kinds <= {"number", "str"}:
                raise _invalid(f"must have bounds of one type, numbers or strings, for {node.field!r}")
        case _:
            raise _invalid(f"must be one of the filter classes, got {type(node).__name__}")
    return []


def is_path(path: str) -> bool:
    """Whether this is a path of a field: keys joined by dots, without quotes, backslashes and control characters."""
    keys = path.split(".") if isinstance(path, str) else [""]
    return all(keys) and not any(character in '"\\' or character < " " for character in path)


def _check_path(path: str) -> None:
    if not is_path(path):
        raise _invalid(f"must have paths of keys joined by dots, without quotes or backslashes, got {path!r}")


def _check_value(path: str, value: Scalar) -> None:
    if not (value is None or isinstance(value, (bool, int, float, str))):
        raise _invalid(f"must have a scalar as value of {path!r}, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(f"must have a finite value of {path!r}, got {value}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _invalid(f"must have a value of 64 bits for {path!r}, got {value}")
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        raise _invalid(f"must have valid text without NUL as value of {path!r}")
