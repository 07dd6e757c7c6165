"""Payload filters: a small typed tree, evaluated in SQL (:func:`to_sql`) or in Python (:func:`matches`).

A field is named by its path inside the payload, object keys joined with dots, e.g. ``author.name``. A value of
another type than the filter's never matches: ``Equals("year", 1)`` does not match ``true`` or ``"1"``;
integers and floats are one type. A missing value matches nothing, so ``NoneOf([Equals(...)])`` matches
documents without it.

Example:
    >>> recent = AllOf([Equals("kind", "news"), Range("year", gte=2020)])
    >>> matches(recent, {"kind": "news", "year": 2021}), matches(recent, {"kind": "news"})
    (True, False)
"""

import json
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
    """The value of ``field`` lies within every bound given; numbers against numbers, strings against strings.

    Strings compare by code point, so ISO 8601 dates work. At least one bound, all of one type.
    """

    field: str
    _: KW_ONLY
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """There is a value of ``field``, null included."""

    field: str


@dataclass(frozen=True, slots=True)
class Contains:
    """The value of ``field`` is a list that has ``value`` among its items."""

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

Parameters: TypeAlias = list[str | int]
Sql: TypeAlias = tuple[str, Parameters]


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
        below: list[Filter] = []
        for node in level:
            num_nodes += 1
            below.extend(_check_node(node))
        if num_nodes > MAX_FILTER_NODES:
            raise _invalid(f"has more than {MAX_FILTER_NODES} parts, the limit")
        level = below
    if level:
        raise _invalid(f"is nested deeper than {MAX_FILTER_DEPTH} levels, the limit")


def to_sql(filter: Filter, column: str) -> Sql:
    """Writes a filter as an SQLite expression that is 0 or 1, never NULL.

    Values travel as JSON text, so that a number of the filter and the same number in a payload are parsed by the same
    code and compare equal.

    Args:
        filter: A valid filter (:func:`validate`).
        column: SQL name of the column that holds the payload as JSON text.
    """
    return write_sql(filter, lambda condition: _to_sqlite(condition, column), ("0", "1"))


def write_sql(filter: Filter, write: Callable[[Condition], Sql], constants: tuple[str, str]) -> Sql:
    """A filter as an expression and its parameters, of what ``write`` makes of single conditions.

    ``constants``: what an empty :class:`AnyOf`, and an empty :class:`AllOf`, are.
    """
    if not isinstance(filter, AllOf | AnyOf | NoneOf):
        return write(filter)
    is_all = isinstance(filter, AllOf)
    parts = [write_sql(inner, write, constants) for inner in filter.filters]
    glue = " AND " if is_all else " OR "
    expression = f"({glue.join(part for part, _ in parts)})" if parts else constants[is_all]
    parameters = [parameter for _, own in parts for parameter in own]
    return f"(NOT {expression})" if isinstance(filter, NoneOf) else expression, parameters


def _to_sqlite(condition: Condition, column: str) -> Sql:
    match condition:
        case Exists(path):
            return f"(json_type({column}, ?) IS NOT NULL)", [sql_path(path)]
        case Equals(path, value):
            return _sql_in(path, [value], column)
        case OneOf(path, values):
            return _sql_in(path, values, column)
        case Contains(path, value):
            types, needle = _sql_types(value), json.dumps(value, ensure_ascii=False)
            where = f"item.type IN ({types})"
            parameters: Parameters = [sql_path(path), sql_path(path)]
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                where += " AND item.value = json_extract(?, '$')"
                parameters.append(needle)
            return (
                f"(COALESCE(json_type({column}, ?) = 'array', 0) AND "
                f"EXISTS (SELECT 1 FROM json_each({column}, ?) AS item WHERE {where}))"
            ), parameters
        case Range():
            return _sql_range(condition, column)


def matches(filter: Filter, payload: Mapping[str, JsonValue]) -> bool:
    """Whether a payload passes a valid filter: the reference that :func:`to_sql` is tested against."""
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


def _same(found: object, value: Scalar) -> bool:
    return found is not _MISSING and _kind(found) == _kind(value) and found == value


def bounds_of(node: Range) -> list[tuple[str, float | str]]:
    """The comparisons of a range, as SQL writes them, and what is compared with."""
    bounds = ((">", node.gt), (">=", node.gte), ("<", node.lt), ("<=", node.lte))
    return [(comparison, bound) for comparison, bound in bounds if bound is not None]


def _invalid(rule: str) -> InvalidInputError:
    return InvalidInputError(rule, path="where")


def _check_node(node: Filter) -> Sequence[Filter]:
    """Checks one filter; returns those inside it."""
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
    """Whether this names a field: keys joined by dots, without quotes, backslashes and control characters."""
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


def sql_path(path: str) -> str:
    """A path as SQLite writes it."""
    return "$" + "".join(f'."{key}"' for key in path.split("."))


def _sql_types(value: Scalar) -> str:
    """JSON types of SQLite that a value of the filter may equal, as an SQL list."""
    if value is None:
        return "'null'"
    if isinstance(value, bool):
        return "'true'" if value else "'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _sql_in(path: str, values: Sequence[Scalar], column: str) -> Sql:
    """One term for each type among the values."""
    by_types: dict[str, list[Scalar]] = {}
    for value in values:
        by_types.setdefault(_sql_types(value), []).append(value)
    terms: list[str] = []
    parameters: Parameters = []
    for types, members in by_types.items():
        term = f"json_type({column}, ?) IN ({types})"
        parameters.append(sql_path(path))
        if isinstance(members[0], (str, int, float)) and not isinstance(members[0], bool):
            term += f" AND json_extract({column}, ?) IN (SELECT value FROM json_each(?))"
            parameters += [sql_path(path), json.dumps(members, ensure_ascii=False)]
        terms.append(f"COALESCE({term}, 0)")
    return f"({' OR '.join(terms)})", parameters


def _sql_range(node: Range, column: str) -> Sql:
    bounds = bounds_of(node)
    path = sql_path(node.field)
    terms = [f"json_type({column}, ?) IN ({_sql_types(bounds[0][1])})"]
    parameters: Parameters = [path]
    for comparison, bound in bounds:
        terms.append(f"json_extract({column}, ?) {comparison} json_extract(?, '$')")
        parameters += [path, json.dumps(bound, ensure_ascii=False)]
    return f"COALESCE({' AND '.join(terms)}, 0)", parameters
