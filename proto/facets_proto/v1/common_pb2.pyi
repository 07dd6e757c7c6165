from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DATA_TYPE_UNSPECIFIED: _ClassVar[DataType]
    DATA_TYPE_FLOAT32: _ClassVar[DataType]
    DATA_TYPE_FLOAT16: _ClassVar[DataType]
DATA_TYPE_UNSPECIFIED: DataType
DATA_TYPE_FLOAT32: DataType
DATA_TYPE_FLOAT16: DataType

class FacetArray(_message.Message):
    __slots__ = ("shape", "dtype", "data")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    dtype: DataType
    data: bytes
    def __init__(self, shape: _Optional[_Iterable[int]] = ..., dtype: _Optional[_Union[DataType, str]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ModelVersion(_message.Message):
    __slots__ = ("name", "revision")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    revision: str
    def __init__(self, name: _Optional[str] = ..., revision: _Optional[str] = ...) -> None: ...

class Timings(_message.Message):
    __slots__ = ("total_ms",)
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    total_ms: float
    def __init__(self, total_ms: _Optional[float] = ...) -> None: ...

class TokenStats(_message.Message):
    __slots__ = ("num_tokens", "num_unknown_tokens", "truncated", "num_tokens_in_text")
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_UNKNOWN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NUM_TOKENS_IN_TEXT_FIELD_NUMBER: _ClassVar[int]
    num_tokens: int
    num_unknown_tokens: int
    truncated: bool
    num_tokens_in_text: int
    def __init__(self, num_tokens: _Optional[int] = ..., num_unknown_tokens: _Optional[int] = ..., truncated: _Optional[bool] = ..., num_tokens_in_text: _Optional[int] = ...) -> None: ...

class TruncatedDocument(_message.Message):
    __slots__ = ("position", "id", "token_stats")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STATS_FIELD_NUMBER: _ClassVar[int]
    position: int
    id: str
    token_stats: TokenStats
    def __init__(self, position: _Optional[int] = ..., id: _Optional[str] = ..., token_stats: _Optional[_Union[TokenStats, _Mapping]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end", "field", "text", "problem", "columns", "cells")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    field: str
    text: str
    problem: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    cells: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., field: _Optional[str] = ..., text: _Optional[str] = ..., problem: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., cells: _Optional[_Iterable[str]] = ...) -> None: ...

class NearestWord(_message.Message):
    __slots__ = ("word", "cosine")
    WORD_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    word: str
    cosine: float
    def __init__(self, word: _Optional[str] = ..., cosine: _Optional[float] = ...) -> None: ...

class FacetWords(_message.Message):
    __slots__ = ("facet", "words", "tokens", "span")
    FACET_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    facet: int
    words: _containers.RepeatedCompositeFieldContainer[NearestWord]
    tokens: _containers.RepeatedCompositeFieldContainer[AttendedToken]
    span: Span
    def __init__(self, facet: _Optional[int] = ..., words: _Optional[_Iterable[_Union[NearestWord, _Mapping]]] = ..., tokens: _Optional[_Iterable[_Union[AttendedToken, _Mapping]]] = ..., span: _Optional[_Union[Span, _Mapping]] = ...) -> None: ...

class AttendedToken(_message.Message):
    __slots__ = ("token", "cosine")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    token: int
    cosine: float
    def __init__(self, token: _Optional[int] = ..., cosine: _Optional[float] = ...) -> None: ...

class TokenAttention(_message.Message):
    __slots__ = ("text", "start", "end", "attention", "known", "weight")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    text: str
    start: int
    end: int
    attention: float
    known: bool
    weight: float
    def __init__(self, text: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., attention: _Optional[float] = ..., known: _Optional[bool] = ..., weight: _Optional[float] = ...) -> None: ...

class FacetMatch(_message.Message):
    __slots__ = ("first_facet", "second_facet", "cosine", "contribution", "first_words", "second_words", "second_span")
    FIRST_FACET_FIELD_NUMBER: _ClassVar[int]
    SECOND_FACET_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    FIRST_WORDS_FIELD_NUMBER: _ClassVar[int]
    SECOND_WORDS_FIELD_NUMBER: _ClassVar[int]
    SECOND_SPAN_FIELD_NUMBER: _ClassVar[int]
    first_facet: int
    second_facet: int
    cosine: float
    contribution: float
    first_words: _containers.RepeatedCompositeFieldContainer[NearestWord]
    second_words: _containers.RepeatedCompositeFieldContainer[NearestWord]
    second_span: Span
    def __init__(self, first_facet: _Optional[int] = ..., second_facet: _Optional[int] = ..., cosine: _Optional[float] = ..., contribution: _Optional[float] = ..., first_words: _Optional[_Iterable[_Union[NearestWord, _Mapping]]] = ..., second_words: _Optional[_Iterable[_Union[NearestWord, _Mapping]]] = ..., second_span: _Optional[_Union[Span, _Mapping]] = ...) -> None: ...
