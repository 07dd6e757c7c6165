"""Converts filters to messages."""

from facets_proto.v1 import filters_pb2 as pb
from google.protobuf import struct_pb2

from facets_client import filters


def filter_message(where: filters.Filter | None) -> pb.Filter | None:
    """A condition on payloads as a message; None stays None.

    Raises:
        TypeError: Not a filter.
        ValueError: An integer that a double cannot represent.
    """
    return None if where is None else _message(where)


def _message(where: filters.Filter) -> pb.Filter:
    match where:
        case filters.AllOf(inner):
            return pb.Filter(all_of=pb.FilterList(filters=map(_message, inner)))
        case filters.AnyOf(inner):
            return pb.Filter(any_of=pb.FilterList(filters=map(_message, inner)))
        case filters.NoneOf(inner):
            return pb.Filter(none_of=pb.FilterList(filters=map(_message, inner)))
        case filters.Equals(field, value):
            condition = pb.FieldCondition(field=field, equals=_value(field, value))
        case filters.OneOf(field, values):
            listed = struct_pb2.ListValue(values=[_value(field, value) for value in values])
            condition = pb.FieldCondition(field=field, one_of=listed)
        case filters.Range(field):
            condition = _range(where)
        case filters.Contains(field, value):
            condition = pb.FieldCondition(field=field, contains=_value(field, value))
        case filters.Exists(field, exists):
            condition = pb.FieldCondition(field=field, exists=exists)
        case _:
            expected = "a filter of facets_client.filters, such as Equals('language', 'en')"
            raise TypeError(f"where must be {expected}, got {where!r}")
    return pb.Filter(field=condition)


def _range(where: filters.Range) -> pb.FieldCondition:
    bounds = {name: getattr(where, name) for name in ("gt", "gte", "lt", "lte") if getattr(where, name) is not None}
    if any(isinstance(bound, str) for bound in bounds.values()):
        return pb.FieldCondition(field=where.field, string_range=pb.StringRange(**bounds))
    numbers = {name: _double(where.field, bound) for name, bound in bounds.items()}
    return pb.FieldCondition(field=where.field, range=pb.NumberRange(**numbers))


def _value(field: str, value: filters.Scalar) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    return struct_pb2.Value(number_value=_double(field, value))


def _double(field: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        bits = int(value).bit_length()
        raise ValueError(f"the value for {field} must fit a double, got an integer of {bits} bits") from error
