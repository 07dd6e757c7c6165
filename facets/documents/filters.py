"""Payload filters: a small typed tree, evaluated in SQL by the store.

A field is named by its path in the payload: object keys joined by dots, such as ``author.name``; a key that contains a
dot stands in double quotes, as in ``"v1.0".year``. A value whose type differs from the filter's never matches:
``Equals("year", 1)`` does not match ``true`` or ``"1"``. Integers and floats are one type. A missing value matches
nothing, so ``NoneOf([Equals(...)])`` matches documents without it.

A filter on an unknown field, or with a value of another type than the documents', is valid but finds nothing: it gets a
warning.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import TypeAlias

from facets.documents.types import FilterWarning, JsonValue
from facets.errors import InvalidInputError
from facets.index.config import MAX_FILTER_NODES

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
    """All of ``filters`` match; true when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of ``filters`` matches; false when there are none."""

    filters: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """None of ``filters`` matches; true when there are none."""

    filters: Sequence["Filter"]


PATH_RULE = "keys joined by dots, those with a dot in double quotes, without other quotes, backslashes and controls"
_KEY = re.compile(r'"([^"\\\x00-\x1f]+)"|([^".\\\x00-\x1f]+)')
_PATH = re.compile(rf"(?:{_KEY.pattern})(?:\.(?:{_KEY.pattern}))*")

Condition: TypeAlias = Equals | OneOf | Range | Exists | Contains
Filter: TypeAlias = Condition | AllOf | AnyOf | NoneOf

MAX_FILTER_DEPTH = 32  # nested filters
MAX_FILTER_VALUES = 10_000  # values of one OneOf
# What is looked at for a hint, which takes milliseconds.
_NAMED_DOCUMENTS = 100
_NAMED_VALUES = 10_000
_MAX_NAMES, _MAX_NAME_CHARS, _MAX_HINTS = 1000, 200, 8
_KINDS: Mapping[type, str] = {
    **{bool: "booleans", int: "numbers", float: "numbers", str: "strings", type(None): "null"},
    **{list: "lists", dict: "objects"},
}


def validate(filter: Filter | None, *, allow_empty: bool = True) -> None:
    """Raises InvalidInputError unless a filter's paths, values and size are valid; None is valid.

    ``allow_empty``: whether ``AllOf([])`` and the like, which may match every document, are valid.
    """
    num_nodes = 0
    level: list[Filter] = [] if filter is None else [filter]
    for _ in range(MAX_FILTER_DEPTH):
        if not level:
            return
        num_nodes += len(level)
        if not allow_empty and not all(node.filters for node in level if isinstance(node, (AllOf, AnyOf, NoneOf))):
            raise _invalid("has an empty list of conditions, which may match every document, expected at least one")
        level = [inner for node in level for inner in _check_node(node)]
        if num_nodes > MAX_FILTER_NODES:
            raise _invalid(f"has more than {MAX_FILTER_NODES} parts, the limit")
    if level:
        raise _invalid(f"is nested deeper than {MAX_FILTER_DEPTH} levels, the limit")


def tests_of(condition: Condition) -> Sequence[tuple[str, str, Sequence[Scalar]]]:
    """The tests of a condition, all of which must pass: name in ``Dialect.conditions``, comparison, values."""
    match condition:
        case Exists():
            return [("exists", "", [])]
        case Contains(_, value):
            return [("contains", "", [value])]
        case Range():
            bounds = ((">", condition.gt), (">=", condition.gte), ("<", condition.lt), ("<=", condition.lte))
            given = [(sign, bound) for sign, bound in bounds if bound is not None]
            return [("string" if isinstance(bound, str) else "number", sign, [bound]) for sign, bound in given]
        case _:
            return [("one of", "", condition.values if isinstance(condition, OneOf) else [condition.value])]


def values_of(condition: Condition) -> Sequence[Scalar]:
    """The values that a condition compares with."""
    return [value for *_, values in tests_of(condition) for value in values]


def _invalid(rule: str) -> InvalidInputError:
    return InvalidInputError(rule, path="where")


def _check_node(node: Filter) -> Sequence[Filter]:
    """Checks one filter; returns the filters inside it."""
    if isinstance(node, (AllOf, AnyOf, NoneOf)) and not isinstance(node.filters, str):
        return node.filters
    if not isinstance(node, Condition):
        raise _invalid(f"must be one of the filter classes, got {type(node).__name__}")
    if not keys_of(node.field):
        raise _invalid(f"must have paths of {PATH_RULE}, got {node.field!r}")
    values = values_of(node)
    if isinstance(node, OneOf) and (isinstance(node.values, str) or not 1 <= len(values) <= MAX_FILTER_VALUES):
        raise _invalid(f"must have 1 to {MAX_FILTER_VALUES} scalars as values of {node.field!r}")
    types = {str if isinstance(value, str) else bool if isinstance(value, bool) else float for value in values}
    if isinstance(node, Range) and (len(types) != 1 or bool in types):
        raise _invalid(f"must have at least one bound, all numbers or all strings, for {node.field!r}")
    for value in values:
        if not (value is None or isinstance(value, (bool, int, float, str))):
            raise _invalid(f"must have a scalar as value of {node.field!r}, got {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise _invalid(f"must have a finite value of {node.field!r}, got {value}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise _invalid(f"must have a value of 64 bits for {node.field!r}, got {value}")
        if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
            raise _invalid(f"must have valid text without NUL as value of {node.field!r}")
    return []


def keys_of(path: str) -> list[str]:
    """The keys of the path of a field; none if it is not a path."""
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        return []
    return [quoted or bare for quoted, bare in _KEY.findall(path)]


def path_of(keys: Sequence[str]) -> str:
    """The path of these keys, the reverse of :func:`keys_of`; no path if a key has quotes or the like."""
    return ".".join(f'"{key}"' if "." in key else key for key in keys)


def filter_warnings(
    where: Filter, payloads: Sequence[Mapping[str, JsonValue]], *, are_all: bool
) -> tuple[FilterWarning, ...]:
    """At most one warning for each use of a field, in the order of the filter.

    ``payloads``: of some documents, without any there are no warnings; ``are_all``: of all documents.
    """
    uses = [(field, kinds, _kinds_of(payloads, keys_of(field))) for field, kinds in dict.fromkeys(_uses(where))]
    meant = _meant([field for field, _, found in uses if not found], payloads)
    warnings = []
    for field, expected, found in uses if payloads else ():
        if not found:
            hint = f": did you mean {meant[field]!r}?" if field in meant else ""
            message = f"no {'' if are_all else 'examined '}document has a field {field!r}{hint}"
            warnings.append(FilterWarning(field=field, message=message))
        elif expected and not expected & found:
            found_kinds, expected_kinds = (" and ".join(sorted(kinds)) for kinds in (found, expected))
            message = f"{field!r} is compared with {expected_kinds}, the documents contain {found_kinds}"
            warnings.append(FilterWarning(field=field, message=message))
    return tuple(warnings)


def _uses(filter: Filter) -> Iterator[tuple[str, frozenset[str]]]:
    """Each use of a field in a filter, with the kinds of values that it expects; no kinds: any."""
    match filter:
        case AllOf(filters) | AnyOf(filters) | NoneOf(filters):
            for inner in filters:
                yield from _uses(inner)
        case Contains(field):
            yield field, frozenset({"lists"})
        case _:
            yield filter.field, frozenset(_KINDS[type(value)] for value in values_of(filter))


def _kinds_of(payloads: Sequence[Mapping[str, JsonValue]], keys: Sequence[str]) -> set[str]:
    *outer, last = keys
    holders = payloads
    for key in outer:
        holders = [inside for holder in holders if isinstance(inside := holder.get(key), dict)]
    return {_KINDS[type(holder[last])] for holder in holders if last in holder}


def _meant(unknown: Sequence[str], payloads: Sequence[Mapping[str, JsonValue]]) -> dict[str, str]:
    """The field that is most similar to an unknown one, if any, for the first of these."""
    asked = [field for field in unknown if len(field) <= _MAX_NAME_CHARS][:_MAX_HINTS]
    if not asked:
        return {}
    from facets.language.near_names import NearNames

    seen = islice(_paths_in(payloads[:: 1 + len(payloads) // _NAMED_DOCUMENTS]), _NAMED_VALUES)
    names = list(dict.fromkeys(seen))[:_MAX_NAMES]
    near = NearNames(names)
    return {field: names[place] for field in asked for place in near.find(field, top_k=1)}


def _paths_in(payloads: Sequence[Mapping[str, JsonValue]]) -> Iterator[str]:
    """Paths of the values of payloads, outer ones first."""
    level, inner = [(list[str](), payload) for payload in payloads], list[tuple[list[str], Mapping[str, JsonValue]]]()
    while level:
        for keys, holder in level:
            for key, value in holder.items():
                path = path_of(inside := [*keys, key])
                if len(path) <= _MAX_NAME_CHARS and keys_of(path):
                    yield path
                if isinstance(value, dict):
                    inner.append((inside, value))
        level, inner = inner, []
