"""The meaning of payload filters: a slow reference that the SQL of the store is compared with."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from facets.documents.filters import (
    AllOf,
    AnyOf,
    Contains,
    Equals,
    Exists,
    Filter,
    NoneOf,
    OneOf,
    Range,
    Scalar,
)
from facets.documents.types import JsonValue


def matches(filter: Filter, payload: Mapping[str, JsonValue]) -> bool:
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
                _kind(found) == _kind(bound) and compare(found, bound)
                for name, compare in _COMPARE.items()
                if (bound := getattr(filter, name)) is not None
            )


_MISSING = object()
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def _lookup(path: str, payload: Mapping[str, JsonValue]) -> object:
    value: object = payload
    for key in ("".join(key) for key in re.findall(r'"([^"]*)"|([^".]+)', path)):
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _same(item: object, value: Scalar) -> bool:
    return item is not _MISSING and _kind(item) == _kind(value) and item == value
