"""Converts filters to messages."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from facets_proto.v1 import filters_pb2 as pb
from google.protobuf import struct_pb2

from facets_client import filters

_COMBINED = {filters.AllOf: "all_of", filters.AnyOf: "any_of", filters.NoneOf: "none_of"}


def filter_message(where: filters.Filter | None) -> pb.Filter | None:
    """A condition on payloads as a message; None stays None."""
    if where is None:
        return None
    if isinstance(where, filters.AllOf | filters.AnyOf | filters.NoneOf):
        inner: Any = list(map(filter_message, where.filters))
        combined: dict[str, Any] = {_COMBINED[type(where)]: pb.FilterList(filters=inner)}
        return pb.Filter(**combined)
    try:
        return pb.Filter(field=_condition(where))
    except (OverflowError, ValueError) as error:
        rule = "must fit a double" if isinstance(error, OverflowError) else "must be a string, a number, a bool or None"
        raise ValueError(f"the value for {where.field} {rule}: {error}") from error


def _condition(where: filters.Filter) -> pb.FieldCondition:
    match where:
        case filters.Equals(field, value):
            return pb.FieldCondition(field=field, equals=_values([value]).values[0])
        case filters.OneOf(field, values):
            return pb.FieldCondition(field=field, one_of=_values(values))
        case filters.Range(field, gt, gte, lt, lte):
            given: dict[str, Any] = {"gt": gt, "gte": gte, "lt": lt, "lte": lte}
            bounds = {name: bound for name, bound in given.items() if bound is not None}
            if any(isinstance(bound, str) for bound in bounds.values()):
                return pb.FieldCondition(field=field, string_range=pb.StringRange(**bounds))
            return pb.FieldCondition(field=field, range=pb.NumberRange(**bounds))
        case filters.Contains(field, value):
            return pb.FieldCondition(field=field, contains=_values([value]).values[0])
        case filters.Exists(field, exists):
            return pb.FieldCondition(field=field, exists=exists)
        case _:
            expected = "a filter of facets_client.filters, such as Equals('language', 'en')"
            raise TypeError(f"where must be {expected}, got {where!r}")


def _values(values: Sequence[filters.Scalar]) -> struct_pb2.ListValue:
    listed = struct_pb2.ListValue()
    listed.extend(value.item() if isinstance(value, np.generic) else value for value in values)
    return listed
