"""Filters on payloads: messages to the engine's filter tree."""

from facets_proto.v1 import documents_pb2
from google.protobuf import struct_pb2

from facets.documents import And, Contains, Equals, Exists, Filter, In, Not, Or, Range
from facets.documents.filters import Scalar
from facets.errors import InvalidInputError

__all__ = ["filter_from_proto"]

_DEEPEST = 32  # nested filters
_MOST = 256  # conditions in one filter


def filter_from_proto(message: documents_pb2.Filter, field: str = "filter") -> Filter:
    """A filter message as the engine's filter.

    Args:
        message: From outside.
        field: Its path in the request, for errors.

    Raises:
        InvalidInputError: A condition is missing or incomplete, or the filter is too deep or too long.
    """
    return _Converter().convert(message, field, 1)


class _Converter:
    def __init__(self) -> None:
        self._num_conditions = 0

    def convert(self, message: documents_pb2.Filter, field: str, depth: int) -> Filter:
        self._num_conditions += 1
        if depth > _DEEPEST or self._num_conditions > _MOST:
            raise InvalidInputError(
                f"the filter is nested deeper than {_DEEPEST} or has more than {_MOST} conditions", field=field
            )
        kind = message.WhichOneof("condition")
        if kind == "field":
            return _field(message.field, f"{field}.field")
        if kind is None:
            raise InvalidInputError(f"{field} has no condition, expected one", field=field)
        parts = [
            self.convert(part, f"{field}.{kind}.filters[{i}]", depth + 1)
            for i, part in enumerate(getattr(message, kind).filters)
        ]
        if kind == "all_of":
            return And(parts)
        return Or(parts) if kind == "any_of" else Not(Or(parts))


def _field(message: documents_pb2.FieldCondition, field: str) -> Filter:
    path = message.field
    if not path:
        raise InvalidInputError(f"{field}.field is empty, expected the name of a field", field=f"{field}.field")
    test = message.WhichOneof("test")
    if test == "equals":
        return Equals(path, _scalar(message.equals, f"{field}.equals"))
    if test == "contains":
        return Contains(path, _scalar(message.contains, f"{field}.contains"))
    if test == "one_of":
        values = [_scalar(v, f"{field}.one_of[{i}]") for i, v in enumerate(message.one_of.values)]
        if not values:
            raise InvalidInputError(f"{field}.one_of has 0 items, expected at least 1", field=f"{field}.one_of")
        return In(path, values)
    if test == "exists":
        return Exists(path) if message.exists else Not(Exists(path))
    if test == "range":
        return _range(path, message.range, f"{field}.range")
    if test == "string_range":
        return _range(path, message.string_range, f"{field}.string_range")
    raise InvalidInputError(f"{field} has no test, expected equals, one_of, range or another", field=field)


def _range(path: str, message: documents_pb2.NumberRange | documents_pb2.StringRange, field: str) -> Range:
    bounds = {name: getattr(message, name) for name in ("gt", "gte", "lt", "lte") if message.HasField(name)}
    if not bounds:
        raise InvalidInputError(f"{field} has no bound, expected at least one of gt, gte, lt, lte", field=field)
    return Range(path=path, **bounds)


def _scalar(value: struct_pb2.Value, field: str) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        return value.number_value
    raise InvalidInputError(f"{field} must be a string, number, boolean or null, got {kind or 'nothing'}", field=field)
