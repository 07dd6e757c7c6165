from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Filter(_message.Message):
    __slots__ = ("field", "all_of", "any_of", "none_of")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    ALL_OF_FIELD_NUMBER: _ClassVar[int]
    ANY_OF_FIELD_NUMBER: _ClassVar[int]
    NONE_OF_FIELD_NUMBER: _ClassVar[int]
    field: FieldCondition
    all_of: FilterList
    any_of: FilterList
    none_of: FilterList
    def __init__(self, field: _Optional[_Union[FieldCondition, _Mapping]] = ..., all_of: _Optional[_Union[FilterList, _Mapping]] = ..., any_of: _Optional[_Union[FilterList, _Mapping]] = ..., none_of: _Optional[_Union[FilterList, _Mapping]] = ...) -> None: ...

class FilterWarning(_message.Message):
    __slots__ = ("field", "message")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    field: str
    message: str
    def __init__(self, field: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class FilterList(_message.Message):
    __slots__ = ("filters",)
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[Filter]
    def __init__(self, filters: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ...) -> None: ...

class FieldCondition(_message.Message):
    __slots__ = ("field", "equals", "one_of", "range", "exists", "string_range", "contains")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    EQUALS_FIELD_NUMBER: _ClassVar[int]
    ONE_OF_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    STRING_RANGE_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    field: str
    equals: _struct_pb2.Value
    one_of: _struct_pb2.ListValue
    range: NumberRange
    exists: bool
    string_range: StringRange
    contains: _struct_pb2.Value
    def __init__(self, field: _Optional[str] = ..., equals: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., one_of: _Optional[_Union[_struct_pb2.ListValue, _Mapping]] = ..., range: _Optional[_Union[NumberRange, _Mapping]] = ..., exists: _Optional[bool] = ..., string_range: _Optional[_Union[StringRange, _Mapping]] = ..., contains: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class NumberRange(_message.Message):
    __slots__ = ("gt", "gte", "lt", "lte")
    GT_FIELD_NUMBER: _ClassVar[int]
    GTE_FIELD_NUMBER: _ClassVar[int]
    LT_FIELD_NUMBER: _ClassVar[int]
    LTE_FIELD_NUMBER: _ClassVar[int]
    gt: float
    gte: float
    lt: float
    lte: float
    def __init__(self, gt: _Optional[float] = ..., gte: _Optional[float] = ..., lt: _Optional[float] = ..., lte: _Optional[float] = ...) -> None: ...

class StringRange(_message.Message):
    __slots__ = ("gt", "gte", "lt", "lte")
    GT_FIELD_NUMBER: _ClassVar[int]
    GTE_FIELD_NUMBER: _ClassVar[int]
    LT_FIELD_NUMBER: _ClassVar[int]
    LTE_FIELD_NUMBER: _ClassVar[int]
    gt: str
    gte: str
    lt: str
    lte: str
    def __init__(self, gt: _Optional[str] = ..., gte: _Optional[str] = ..., lt: _Optional[str] = ..., lte: _Optional[str] = ...) -> None: ...
