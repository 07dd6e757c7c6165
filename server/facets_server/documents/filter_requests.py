"""Filters on payloads: messages to the engine's filter tree."""

from facets_proto.v1 import documents_pb2
from google.protobuf import struct_pb2

from facets.documents import And, Contains, Equals, Exists, Filter, In, Not, Or, Range
from facets.documents.filters import Scalar
from facets.errors import ErrorPath, InvalidInputError

__all__ = ["filter_from_proto"]

_DEEPEST = 32  # nested filters
_MOST = 256  # conditions in one filter


def filter_from_proto(message: documents_pb2.Filter, path: ErrorPath = ("filter",)) -> Filter:
    """A filter message as the engine's filter.

    Args:
        message: From outside.
        path: Where it stands in the request.

    Raises:
        InvalidInputError: A condition is missing or incomplete, or the filter is too deep or too long.
    """
    return _Converter().convert(message, path, 1)


class _Converter:
    def __init__(self) -> None:
        self._num_conditions = 0

    def convert(self, message: documents_pb2.Filter, path: ErrorPath, depth: int) -> Filter:
        self._num_conditions += 1
        if depth > _DEEPEST or self._num_conditions > _MOST:
            raise InvalidInputError(
                f"is nested deeper than {_DEEPEST} or is one of more than {_MOST} conditions", path=path
            )
        kind = message.WhichOneof("condition")
        if kind == "field":
            return _field(message.field, (*path, "field"))
        if kind is None:
            raise InvalidInputError("has no condition, expected one", path=path)
        parts = [
            self.convert(part, (*path, kind, "filters", i), depth + 1)
            for i, part in enumerate(getattr(message, kind).filters)
        ]
        if kind == "all_of":
            return And(parts)
        return Or(parts) if kind == "any_of" else Not(Or(parts))


def _field(message: documents_pb2.FieldCondition, path: ErrorPath) -> Filter:
    key = message.field
    if not key:
        raise InvalidInputError("is empty, expected the name of a field", path=(*path, "field"))
    test = message.WhichOneof("test")
    if test == "equals":
        return Equals(key, _scalar(message.equals, (*path, "equals")))
    if test == "contains":
        return Contains(key, _scalar(message.contains, (*path, "contains")))
    if test == "one_of":
        values = [_scalar(v, (*path, "one_of", i)) for i, v in enumerate(message.one_of.values)]
        if not values:
            raise InvalidInputError("has 0 items, expected at least 1", path=(*path, "one_of"))
        return In(key, values)
    if test == "exists":
        return Exists(key) if message.exists else Not(Exists(key))
    if test == "range":
        return _range(key, message.range, (*path, "range"))
    if test == "string_range":
        return _range(key, message.string_range, (*path, "string_range"))
    raise InvalidInputError("has no test, expected equals, one_of, range or another", path=path)


def _range(key: str, message: documents_pb2.NumberRange | documents_pb2.StringRange, path: ErrorPath) -> Range:
    bounds = {name: getattr(message, name) for name in ("gt", "gte", "lt", "lte") if message.HasField(name)}
    if not bounds:
        raise InvalidInputError("has no bound, expected at least one of gt, gte, lt, lte", path=path)
    return Range(path=key, **bounds)


def _scalar(value: struct_pb2.Value, path: ErrorPath) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        return value.number_value
    raise InvalidInputError(f"must be a string, number, boolean or null, got {kind or 'nothing'}", path=path)
