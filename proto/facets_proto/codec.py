"""Records as messages and messages as records, by the descriptors of the messages.

A record is a frozen dataclass, or anything with attributes; it has the names of the message for the same fields. What
a message holds besides is given by name, what a record holds besides stays behind. How values meet:

=====================================  ========================================================================
in a record                            in a message
=====================================  ========================================================================
a record                               a message
``X | None``                           ``optional``, or a message that is not set; an empty message in a list
an ``Enum``, ``Literal`` or ``str``    a value of an enum by its name without prefix; 0 is None, ``""`` or the default
an array                               a ``FacetArray``; else a list of numbers, or of messages of numbers (``[N, 2]``)
a mapping                              a ``Struct``; else a list of messages of two fields, key and value
a tuple of fixed length                a message of as many fields, in their order, or of as many numbers
a list in a list                       a list of messages of one field
a union (``str | NDArray``)            a message of one ``oneof``
an aware ``datetime``                  a ``Timestamp``
=====================================  ========================================================================

What is to be done for a pair of a record and a message is found out once and kept. Threads may meet in it: a plan is
published when it is whole, and two that are made at once are equal.

Example:
    >>> from facets_proto.v1 import common_pb2
    >>> @dataclass(frozen=True)
    ... class NearestWord:
    ...     word: str
    ...     cosine: float
    >>> message = message_of(common_pb2.FacetWords, facet=2, words=[NearestWord("cat", 0.5)])
    >>> from_message(message.words[0], NearestWord)
    NearestWord(word='cat', cosine=0.5)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC
from enum import Enum
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

# Fields of messages that some of their records do not have: they are left unset.
_MAY_LACK = {("FacetMatch", "second_span")}


def to_message(record: object, message_type: type[MessageT], **others: object) -> MessageT:
    """A record as a message.

    Args:
        record: Of any class that has the fields of the message.
        message_type: What to make.
        others: Fields that the record does not have, or that shall be others: plain values, records or messages.

    Raises:
        TypeError: The record lacks a field of the message.
        ValueError, OverflowError: A value does not fit its field.
    """
    descriptor = message_type.DESCRIPTOR
    (own,) = _write_records([record], descriptor, tuple(others))
    return message_type(**own, **_written(descriptor, others))


def message_of(message_type: type[MessageT], **values: object) -> MessageT:
    """A message of fields that no record holds together; raises as ``to_message``."""
    return message_type(**_written(message_type.DESCRIPTOR, values))


def from_message(message: Message, record_type: type[RecordT], **others: object) -> RecordT:
    """A message as a record.

    Args:
        message: From outside.
        record_type: A dataclass, or ``tuple[X, Y]`` for a message of as many fields.
        others: Fields that the message does not have, or that shall be others.

    Raises:
        WireError: A value of the message is none of the record's; ``path`` says where.
        TypeError: The message lacks a field of the record that has no default.
    """
    key = (record_type, message.DESCRIPTOR, tuple(others))
    read = _READERS.get(key)
    if read is None:
        read = _READERS[key] = _records_reader(*key)
    made: RecordT = _one_of(read, message, others)
    return made


# ---- writing: nested dicts, from which protobuf makes the whole message at once

_WriteAll = Callable[[Sequence[Any]], list[Any]]
_WRITERS: dict[tuple[type, Descriptor, tuple[str, ...]], _WriteAll] = {}
_FIELD_WRITERS: dict[Descriptor, dict[str, _Convert | None]] = {}


def _write_records(records: Sequence[object], descriptor: Descriptor, without: tuple[str, ...] = ()) -> list[Any]:
    """Records as what protobuf makes messages of; those of one class with one plan."""
    if len(set(map(type, records))) > 1:
        return [made for record in records for made in _write_records([record], descriptor, without)]
    if not records:
        return []
    key = (type(records[0]), descriptor, without)
    write = _WRITERS.get(key)
    if write is None:
        write = _WRITERS[key] = _records_writer(records[0], descriptor, without)
    return write(records)


def _records_writer(record: object, descriptor: Descriptor, without: tuple[str, ...]) -> _WriteAll:
    writers = _field_writers(descriptor)
    if isinstance(record, Message):
        return list
    if record is None:
        return lambda records: [{} for _ in records]
    if len(descriptor.oneofs) == 1 and len(descriptor.oneofs[0].fields) == len(writers) > 1:
        name = _choice(descriptor, record)
        return lambda records: [_written(descriptor, {name: value}) for value in records]
    if isinstance(record, tuple | list):
        if len(writers) == 1:
            name = next(iter(writers))
            return lambda records: [_written(descriptor, {name: items}) for items in records]
        if not any(writers.values()):
            names = list(writers) if len(record) == len(writers) else _numbers(descriptor)
            return lambda records: [dict(zip(names, items, strict=True)) for items in records]
        return lambda records: [_written(descriptor, dict(zip(writers, items, strict=True))) for items in records]
    wanted = [name for name in writers if name not in without]
    names = [name for name in wanted if hasattr(record, name)]
    missing = {name for name in wanted if name not in names and (descriptor.name, name) not in _MAY_LACK}
    if missing:
        raise TypeError(f"{type(record).__name__} has no {', '.join(sorted(missing))}, fields of {descriptor.name}")
    return _attributes_writer(names, [(name, write) for name in names if (write := writers[name]) is not None])


def _attributes_writer(names: Sequence[str], steps: Sequence[tuple[str, _Convert]]) -> _WriteAll:
    get = _getter(names)

    def write(records: Sequence[object]) -> list[dict[str, Any]]:
        made = [dict(zip(names, get(record), strict=True)) for record in records]
        for name, convert in steps:
            for one in made:
                value = one[name]
                if value is not None:
                    one[name] = convert(value)
        return made

    return write


def _choice(descriptor: Descriptor, value: object) -> str:
    """The field of a oneof that a value belongs to."""
    for field in descriptor.fields:
        inner = field.message_type
        if inner is None:
            fits = isinstance(value, _PYTHON_TYPES[field.cpp_type])
        elif inner.full_name == _ARRAY:
            fits = isinstance(value, np.ndarray)
        else:
            fits = type(value).__name__ == inner.name
        if fits:
            return str(field.name)
    raise TypeError(f"{type(value).__name__} is none of {', '.join(descriptor.fields_by_name)} of {descriptor.name}")


def _written(descriptor: Descriptor, values: Mapping[str, object]) -> dict[str, Any]:
    writers = _field_writers(descriptor)
    return {
        name: value if value is None or (write := writers[name]) is None else write(value)
        for name, value in values.items()
    }


def _field_writers(descriptor: Descriptor) -> dict[str, _Convert | None]:
    """What is to be done with the value of each field; None: nothing."""
    writers = _FIELD_WRITERS.get(descriptor)
    if writers is None:
        writers = _FIELD_WRITERS[descriptor] = {field.name: _field_writer(field) for field in descriptor.fields}
    return writers


def _field_writer(field: FieldDescriptor) -> _Convert | None:
    inner, enum = field.message_type, field.enum_type
    if inner is not None and inner.full_name in _SPECIAL_WRITERS:
        write: _Convert | None = _SPECIAL_WRITERS[inner.full_name]
    elif inner is not None:
        if field.is_repeated:
            return lambda values: _write_records(_listed(values), inner)
        return lambda value: _write_records((value,), inner)[0]
    else:
        write = None if enum is None else lambda value: enum_number(enum, value)
    if not field.is_repeated:
        return write
    return _listed if write is None else lambda values: [write(value) for value in _listed(values)]


def _numbers(descriptor: Descriptor) -> list[str]:
    """The fields that are numbers."""
    texts = (FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_MESSAGE)
    return [field.name for field in descriptor.fields if field.cpp_type not in texts]


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        listed: list[Any] = values.tolist()
        return listed
    if isinstance(values, str | bytes):
        raise TypeError(f"must be a sequence, got one {type(values).__name__}: try [{values[:20]!r}]")
    return list(values.items() if isinstance(values, Mapping) else values)


# ---- reading

_ReadAll = Callable[[Iterable[Any], Mapping[str, object] | None], list[Any]]
_READERS: dict[tuple[Any, Descriptor, tuple[str, ...]], _ReadAll] = {}


def _one_of(read: _ReadAll, message: Message, others: Mapping[str, object] | None = None) -> Any:
    try:
        return read((message,), others)[0]
    except WireError as error:
        raise WireError(error.rule, error.path[1:]) from error


def _later_reader(record_type: Any, descriptor: Descriptor) -> _ReadAll:
    """The same as ``_records_reader``, made when it is first needed: records may hold others of their class."""
    read: _ReadAll | None = None

    def read_all(messages: Iterable[Message], others: Mapping[str, object] | None) -> list[Any]:
        nonlocal read
        if read is None:
            read = _records_reader(record_type, descriptor, ())
        return read(messages, others)

    return read_all


@dataclass(frozen=True, slots=True)
class _Place:
    """A value of a record: the field of the message, the type, and what stands for a field that is not set."""

    name: str
    hint: Any
    default: Callable[[], object] | None = None


def _records_reader(record_type: Any, descriptor: Descriptor, without: tuple[str, ...]) -> _ReadAll:
    places, make = _places(record_type, descriptor, without)
    get = _getter([place.name for place in places])
    steps = [
        (number, place.name, absent, convert)
        for number, place in enumerate(places)
        for absent, convert in [_step(descriptor.fields_by_name[place.name], place)]
        if absent or convert
    ]

    def read(messages: Iterable[Message], others: Mapping[str, object] | None) -> list[Any]:
        made = []
        for position, message in enumerate(messages):
            values = list(get(message))
            for number, name, absent, convert in steps:
                if absent is not None and not message.HasField(name):
                    values[number] = absent()
                elif convert is not None:
                    try:
                        values[number] = convert(values[number])
                    except WireError as error:
                        raise error.within(position, name) from error
            made.append(make(*values, **others) if others else make(*values))
        return made

    if steps or without:
        return read
    return lambda messages, _: [make(*get(message)) for message in messages]


def _places(
    record_type: Any, descriptor: Descriptor, without: tuple[str, ...]
) -> tuple[list[_Place], Callable[..., Any]]:
    """What a record takes from a message, and what makes it of these in their order."""
    if get_origin(record_type) is tuple:
        names = [field.name for field in descriptor.fields]
        return [_Place(*pair) for pair in zip(names, get_args(record_type), strict=True)], lambda *values: values
    if not is_dataclass(record_type):
        raise TypeError(f"{record_type} is no dataclass, for {descriptor.name}")
    hints = get_type_hints(record_type)
    own = [field for field in fields(record_type) if field.init]
    places = []
    for field in own:
        if field.name in descriptor.fields_by_name and field.name not in without:
            places.append(_Place(field.name, hints[field.name], _default(field)))
        elif field.name not in without and _default(field) is None:
            raise TypeError(f"{descriptor.name} has no {field.name}, a field of {record_type.__name__}")
    names = [place.name for place in places]
    if names == [field.name for field in own[: len(names)] if not field.kw_only]:
        return places, record_type
    return places, lambda *values, **others: record_type(**dict(zip(names, values, strict=True)), **others)


def _step(field: FieldDescriptor, place: _Place) -> tuple[Callable[[], object] | None, _Convert | None]:
    """What stands for a field that is not set, and how one that is set is converted."""
    hint, is_optional = _without_none(place.hint)
    default = place.default or ((lambda: None) if is_optional else None)
    convert = _reader(field, hint, default)
    return default if field.has_presence else None, convert


def _reader(field: FieldDescriptor, hint: Any, default: Callable[[], object] | None) -> _Convert | None:
    """How a field is read as what the hint says; None: as it is."""
    if not field.is_repeated:
        return _one_reader(field, hint, default)
    if get_origin(hint) is np.ndarray:
        return _numbers_reader(field, hint, default)
    if _is_a(hint, Mapping):
        read_pair = _one_reader(field, tuple[get_args(hint)], None)  # type: ignore[misc]
        return lambda values: dict(map(read_pair, values))  # type: ignore[arg-type]
    item, may_lack = _without_none(get_args(hint)[0])
    read = _one_reader(field, item, None)
    make = list if get_origin(hint) is list else tuple
    if read is None:
        return make
    if may_lack:
        return _items_reader(lambda value: read(value) if value.ByteSize() else None, make)
    if is_dataclass(item) or (get_origin(item) is tuple and not _is_list(item)):
        read_all = _later_reader(item, field.message_type)
        return lambda messages: make(read_all(messages, None))
    return _items_reader(read, make)


def _items_reader(read: _Convert, make: type[Any]) -> _Convert:
    def read_items(values: Sequence[Any]) -> Any:
        try:
            return make([read(value) for value in values])
        except WireError:
            for place, value in enumerate(values):
                try:
                    read(value)
                except WireError as error:
                    raise error.within(place) from error
            raise

    return read_items


def _one_reader(field: FieldDescriptor, hint: Any, default: Callable[[], object] | None) -> _Convert | None:
    """How one value of a field is read as what the hint says; None: as it is."""
    if field.enum_type is not None:
        return _enum_reader(field.enum_type, hint, default)
    inner = field.message_type
    if inner is None:
        return None
    if inner.full_name in _SPECIAL_READERS:
        return _SPECIAL_READERS[inner.full_name]
    if get_origin(hint) in (Union, UnionType):
        return _union_reader(inner, hint)
    if _is_list(hint) and len(inner.fields) == 1:
        name = inner.fields[0].name
        read = _reader(inner.fields[0], hint, None) or (lambda value: value)
        return lambda message: read(getattr(message, name))
    read_all = _later_reader(hint, inner)
    return lambda message: _one_of(read_all, message)


def _union_reader(descriptor: Descriptor, hint: Any) -> _Convert:
    readers: dict[str, _Convert | None] = {}
    (oneof,) = descriptor.oneofs
    for field in descriptor.fields:
        inner = field.message_type
        for option in get_args(hint):
            is_record = inner is not None and inner.name == getattr(option, "__name__", "")
            is_list = inner is not None and len(inner.fields) == 1 and _is_list(option)
            if inner is None or inner.full_name in _SPECIAL_READERS or is_record or is_list:
                readers[field.name] = _one_reader(field, option, None)

    def read(message: Message) -> Any:
        name = message.WhichOneof(oneof.name)
        if name is None:
            raise WireError(f"has no {' and no '.join(readers)}, expected one of them")
        convert = readers[name]
        try:
            return convert(getattr(message, name)) if convert else getattr(message, name)
        except WireError as error:
            raise error.within(name) from error

    return read


def _enum_reader(enum: EnumDescriptor, hint: Any, default: Callable[[], object] | None) -> _Convert | None:
    if hint is int:
        return None
    names = enum_names(enum)
    values: dict[int, Any] = {number: name.lower() for number, name in names.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        values = {number: hint[name] for number, name in names.items() if name in hint.__members__}
        empty = next((lambda member=member: member for member in hint if not member.value), None)
        default = default or empty
    elif get_origin(hint) is Literal:
        values = {number: name for number, name in values.items() if name in get_args(hint)}
    is_text = hint is str

    def read(number: int) -> Any:
        if number in values:
            return values[number]
        if number == 0 and default is not None:
            return default()
        if is_text:  # of a later release than ours
            return ""
        raise WireError(f"must be a known one, got number {number}")

    return read


def _numbers_reader(field: FieldDescriptor, hint: Any, default: Callable[[], object] | None) -> _Convert:
    """Numbers as an array ``[N]``, messages of some numbers as one ``[N, fields]``."""
    scalar = get_args(get_args(hint)[1])[0]
    dtype = {np.integer: np.int64, np.floating: np.float32}.get(scalar, scalar)
    get = None if field.message_type is None else attrgetter(*_numbers(field.message_type))

    def read(values: Sequence[Any]) -> object:
        if default is not None and not values:
            return default()
        return np.array(values if get is None else [get(value) for value in values], dtype=dtype)

    return read


# ---- what both ways need

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
_PYTHON_TYPES: dict[int, type[Any] | tuple[type[Any], ...]] = {
    FieldDescriptor.CPPTYPE_STRING: str,
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_DOUBLE: (int, float),
    FieldDescriptor.CPPTYPE_FLOAT: (int, float),
}


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        get: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
        return get
    return lambda value: tuple(getattr(value, name) for name in names)


def _default(field: Any) -> Callable[[], object] | None:
    if field.default_factory is not MISSING:
        factory: Callable[[], object] = field.default_factory
        return factory
    return None if field.default is MISSING else (lambda: field.default)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    options = [option for option in get_args(hint) if option is not NoneType]
    rest = options[0] if len(options) == 1 else Union[tuple(options)]  # noqa: UP007
    return rest, len(options) < len(get_args(hint))


def _is_a(hint: Any, base: type) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, base)


def _is_list(hint: Any) -> bool:
    """Of any length: ``Sequence[X]``, ``list[X]``, ``tuple[X, ...]``."""
    return _is_a(hint, Sequence) and not (get_origin(hint) is tuple and get_args(hint)[1:] != (Ellipsis,))
