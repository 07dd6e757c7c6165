"""Converts records to messages and back, guided by the messages' descriptors.

A record is a frozen dataclass, or any object with attributes, with the same field names as the message. Values
correspond:

=====================================  ========================================================================
record                                 message
=====================================  ========================================================================
a record                               a message
``X | None``                           ``optional``, or a message that is not set; in a list an empty message
an ``Enum``, ``Literal`` or ``str``    an enum value by its name without prefix; 0 is None, ``""`` or the default
an array                               a ``FacetArray``, a list of numbers, or of messages of numbers (``[N, 2]``)
a mapping                              a ``Struct``, or a list of messages with two fields, key and value
a tuple of fixed length                a message with as many fields, or as many number fields, in their order
a list in a list                       a list of messages with one field
a union (``str | NDArray``)            a message with one ``oneof``
an aware ``datetime``                  a ``Timestamp``
=====================================  ========================================================================
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import UTC
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from facets_proto.v1 import common_pb2
from facets_proto.values import (
    WireError,
    array_from_message,
    array_to_message,
    enum_names,
    enum_number,
    payload_from_message,
)

MessageT = TypeVar("MessageT", bound=Message)
RecordT = TypeVar("RecordT")
_Convert = Callable[[Any], Any]

_ARRAY = common_pb2.FacetArray.DESCRIPTOR.full_name
_SPECIAL_WRITERS: dict[str, _Convert] = {
    _ARRAY: array_to_message,
    "google.protobuf.Struct": dict,
    "google.protobuf.Timestamp": lambda time: time,
}
_SPECIAL_READERS: dict[str, _Convert] = {
    _ARRAY: array_from_message,
    "google.protobuf.Struct": payload_from_message,
    "google.protobuf.Timestamp": lambda time: time.ToDatetime(tzinfo=UTC),
}
# Message fields that some of the records lack.
_OPTIONAL_FIELDS = {("FacetMatch", "second_span"), ("Model", "encoder_settings")}


def to_message(record: object, message_type: type[MessageT], **others: object) -> MessageT:
    """Converts a record to a message; ``others``: fields that the record lacks, or values that replace its own.

    Raises:
        TypeError: The record lacks a field of the message.
        ValueError, OverflowError: A value does not fit its field.
    """
    descriptor = message_type.DESCRIPTOR
    return message_type(**_written(record, descriptor, tuple(others)), **_written_fields(others, descriptor))


def message_of(message_type: type[MessageT], **values: object) -> MessageT:
    """Creates a message from values that are not in one record; raises as ``to_message``."""
    return message_type(**_written_fields(values, message_type.DESCRIPTOR))


def from_message(message: Message, record_type: type[RecordT], **others: object) -> RecordT:
    """Converts a message to a dataclass; ``others``: fields that the message lacks, or values that replace its own.

    Raises:
        WireError: A value of the message does not fit the record; ``path`` names the field.
        TypeError: The message lacks a field of the record without default.
    """
    record: RecordT = _record_reader(record_type, message.DESCRIPTOR, tuple(others))(message, others)
    return record


# ---- writing: nested dicts, from which protobuf creates the whole message at once

_writers: dict[tuple[type, Descriptor, tuple[str, ...]], _Convert] = {}


def _written(value: object, descriptor: Descriptor, without: tuple[str, ...] = ()) -> Any:
    """Converts a value to what protobuf accepts as a message: a message or a dict of its fields."""
    key = (type(value), descriptor, without)
    if key not in _writers:
        _writers[key] = _writer(value, descriptor, without)
    return _writers[key](value)


def _written_fields(values: Mapping[str, object], descriptor: Descriptor) -> dict[str, Any]:
    writers = _field_writers(descriptor)
    return {
        name: value if value is None or (write := writers[name]) is None else write(value)
        for name, value in values.items()
    }


def _writer(example: object, descriptor: Descriptor, without: tuple[str, ...]) -> _Convert:
    """Returns the function that writes values of the same type as ``example``."""
    names = list(descriptor.fields_by_name)
    if isinstance(example, Message):
        return lambda message: message
    if example is None:
        return lambda _: {}
    if _is_union(descriptor):
        choice = _chosen_field(descriptor, example)
        return lambda value: _written_fields({choice: value}, descriptor)
    if isinstance(example, tuple | list):
        if len(names) == 1:
            return lambda items: _written_fields({names[0]: items}, descriptor)
        if len(example) != len(names):
            names = _number_fields(descriptor)
        return lambda items: _written_fields(dict(zip(names, items, strict=True)), descriptor)
    missing = [name for name in names if name not in without and not hasattr(example, name)]
    lacks = [name for name in missing if (descriptor.name, name) not in _OPTIONAL_FIELDS]
    if lacks:
        raise TypeError(f"{type(example).__name__} has no {', '.join(lacks)}, fields of {descriptor.name}")
    steps = [pair for pair in _field_writers(descriptor).items() if pair[0] not in (*without, *missing)]
    return lambda record: {
        name: value if (value := getattr(record, name)) is None or write is None else write(value)
        for name, write in steps
    }


@cache
def _field_writers(descriptor: Descriptor) -> dict[str, _Convert | None]:
    return {field.name: _field_writer(field) for field in descriptor.fields}


def _field_writer(field: FieldDescriptor) -> _Convert | None:
    inner, enum = field.message_type, field.enum_type
    write: _Convert | None = None
    if enum is not None:
        write = partial(enum_number, enum)
    elif inner is not None:
        write = _SPECIAL_WRITERS.get(inner.full_name) or (lambda value: _written(value, inner))
    if not field.is_repeated:
        return write
    return _listed if write is None else lambda values: list(map(write, _listed(values)))


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    if isinstance(values, str | bytes):
        raise TypeError(f"must be a sequence, got one {type(values).__name__}: try [{values[:20]!r}]")
    return list(values.items() if isinstance(values, Mapping) else values)


def _chosen_field(descriptor: Descriptor, value: object) -> str:
    """The field of a oneof that fits a value."""
    for field in descriptor.fields:
        inner = field.message_type
        if inner is None:
            fits = isinstance(value, str) == (field.cpp_type == FieldDescriptor.CPPTYPE_STRING)
        elif inner.full_name == _ARRAY:
            fits = isinstance(value, np.ndarray)
        else:
            fits = type(value).__name__ == inner.name
        if fits:
            return str(field.name)
    raise TypeError(f"{type(value).__name__} is none of {', '.join(descriptor.fields_by_name)} of {descriptor.name}")


# ---- reading


@cache
def _record_reader(record_type: Any, descriptor: Descriptor, without: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Returns a function that reads a message, and values that replace its fields, as a record."""
    if get_origin(record_type) is tuple:
        pairs = zip(descriptor.fields, get_args(record_type), strict=True)
        steps = [_step(field, hint, None) for field, hint in pairs]
        return lambda message, _: tuple(_field_values(message, steps).values())
    hints, steps = get_type_hints(record_type), []
    for own in fields(record_type):
        default = _default_of(own)
        field = descriptor.fields_by_name.get(own.name)
        if not own.init or own.name in without:
            continue
        if field is not None:
            steps.append(_step(field, hints[own.name], default))
        elif default is None:
            raise TypeError(f"{descriptor.name} has no {own.name}, a field of {record_type.__name__}")
    return lambda message, others: record_type(**_field_values(message, steps), **others)


_Make = Callable[[], object]
_Step = tuple[str, _Make | None, _Convert | None]  # name, value of an unset field, reader of a set one


def _field_values(message: Message, steps: Iterable[_Step]) -> dict[str, Any]:
    values = {}
    for name, absent, read in steps:
        if absent is not None and not message.HasField(name):
            values[name] = absent()
            continue
        value = getattr(message, name)
        if read is not None:
            try:
                value = read(value)
            except WireError as error:
                raise error.within(name) from error
        values[name] = value
    return values


def _step(field: FieldDescriptor, hint: Any, default: _Make | None) -> _Step:
    hint, is_optional = _without_none(hint)
    absent = default or ((lambda: None) if is_optional else None)
    return field.name, absent if field.has_presence else None, _field_reader(field, hint, absent)


def _field_reader(field: FieldDescriptor, hint: Any, default: _Make | None) -> _Convert | None:
    """Function that reads a field as ``hint``; None: not converted."""
    if not field.is_repeated:
        return _value_reader(field, hint, default)
    if get_origin(hint) is np.ndarray:
        return _numbers_reader(field, hint, default)
    if _is_subclass(hint, Mapping):
        read_pair = _value_reader(field, tuple[get_args(hint)], None)  # type: ignore[misc]
        return lambda values: dict(map(read_pair, values))  # type: ignore[arg-type]
    item, may_lack = _without_none(get_args(hint)[0])
    read = _value_reader(field, item, None)
    make: type[Any] = list if get_origin(hint) is list else tuple
    if read is None:
        return make

    def read_items(values: Sequence[Any]) -> Any:
        items = []
        for index, value in enumerate(values):
            try:
                items.append(None if may_lack and not value.ByteSize() else read(value))
            except WireError as error:
                raise error.within(index) from error
        return make(items)

    return read_items


def _value_reader(field: FieldDescriptor, hint: Any, default: _Make | None) -> _Convert | None:
    """Function that reads one value of a field as ``hint``; None: not converted."""
    inner = field.message_type
    if field.enum_type is not None:
        return _enum_reader(field.enum_type, hint, default)
    if inner is None:
        return None
    if inner.full_name in _SPECIAL_READERS:
        return _SPECIAL_READERS[inner.full_name]
    if get_origin(hint) in (Union, UnionType):
        return _union_reader(inner, hint)
    if _is_list(hint) and len(inner.fields) == 1:
        name = inner.fields[0].name
        read = _field_reader(inner.fields[0], hint, None)
        return lambda message: getattr(message, name) if read is None else read(getattr(message, name))
    return lambda message: _record_reader(hint, inner)(message, {})


def _union_reader(descriptor: Descriptor, hint: Any) -> _Convert:
    readers: dict[str, _Convert | None] = {}
    for field in descriptor.fields:
        inner = field.message_type
        for option in get_args(hint):
            is_record = inner is not None and inner.name == getattr(option, "__name__", "")
            is_list = inner is not None and len(inner.fields) == 1 and _is_list(option)
            if inner is None or inner.full_name in _SPECIAL_READERS or is_record or is_list:
                readers[field.name] = _value_reader(field, option, None)

    def read(message: Message) -> Any:
        name = message.WhichOneof(descriptor.oneofs[0].name)
        if name is None:
            raise WireError(f"has no {' and no '.join(readers)}, expected one of them")
        return _field_values(message, [(name, None, readers[name])])[name]

    return read


def _enum_reader(enum: EnumDescriptor, hint: Any, default: _Make | None) -> _Convert | None:
    if hint is int:
        return None
    names = enum_names(enum)
    values: dict[int, Any] = {number: name.lower() for number, name in names.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        values = {number: hint[name] for number, name in names.items() if name in hint.__members__}
        empty = next((member for member in hint if not member.value), None)
        default = default or (None if empty is None else lambda: empty)
    elif get_origin(hint) is Literal:
        values = {number: name for number, name in values.items() if name in get_args(hint)}

    def read(number: int) -> Any:
        if number in values:
            return values[number]
        if number == 0 and default is not None:
            return default()
        if hint is str:  # unspecified, or from a newer release
            return ""
        raise WireError(f"must be a known value, got number {number}")

    return read


def _numbers_reader(field: FieldDescriptor, hint: Any, default: _Make | None) -> _Convert:
    """Numbers as an array ``[N]``, messages of numbers as an array ``[N, fields]``."""
    scalar = get_args(get_args(hint)[1])[0]
    dtype = {np.integer: np.int64, np.floating: np.float32}.get(scalar, scalar)
    get = None if field.message_type is None else attrgetter(*_number_fields(field.message_type))

    def read(values: Sequence[Any]) -> object:
        if default is not None and not values:
            return default()
        return np.array(values if get is None else list(map(get, values)), dtype=dtype)

    return read


# ---- descriptors and type hints


def _is_union(descriptor: Descriptor) -> bool:
    """True for a message that is a single oneof."""
    return len(descriptor.oneofs) == 1 and len(descriptor.oneofs[0].fields) == len(descriptor.fields) > 1


def _number_fields(descriptor: Descriptor) -> list[str]:
    others = (FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_MESSAGE)
    return [field.name for field in descriptor.fields if field.cpp_type not in others]


def _default_of(field: Field[Any]) -> _Make | None:
    if field.default is not MISSING:
        return lambda: field.default
    return None if field.default_factory is MISSING else field.default_factory


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    options = tuple(option for option in get_args(hint) if option is not NoneType)
    return Union[options], len(options) < len(get_args(hint))  # noqa: UP007


def _is_subclass(hint: Any, base: type) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, base)


def _is_list(hint: Any) -> bool:
    """True for a sequence of any length: ``Sequence[X]``, ``list[X]``, ``tuple[X, ...]``."""
    return _is_subclass(hint, Sequence) and not (get_origin(hint) is tuple and get_args(hint)[1:] != (Ellipsis,))
