from facets_proto.v1 import common_pb2 as _common_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EmbedRequest(_message.Message):
    __slots__ = ("texts", "model", "normalize", "dtype")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NORMALIZE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    model: str
    normalize: bool
    dtype: _common_pb2.DataType
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., normalize: _Optional[bool] = ..., dtype: _Optional[_Union[_common_pb2.DataType, str]] = ...) -> None: ...

class EmbedResponse(_message.Message):
    __slots__ = ("facet_embeddings", "token_stats", "model", "timings")
    FACET_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STATS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    facet_embeddings: _common_pb2.FacetArray
    token_stats: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenStats]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, facet_embeddings: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ..., token_stats: _Optional[_Iterable[_Union[_common_pb2.TokenStats, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class EmbedStreamRequest(_message.Message):
    __slots__ = ("sequence", "request")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    request: EmbedRequest
    def __init__(self, sequence: _Optional[int] = ..., request: _Optional[_Union[EmbedRequest, _Mapping]] = ...) -> None: ...

class EmbedStreamResponse(_message.Message):
    __slots__ = ("sequence", "response", "error")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    response: EmbedResponse
    error: _status_pb2.Status
    def __init__(self, sequence: _Optional[int] = ..., response: _Optional[_Union[EmbedResponse, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("texts", "model", "num_words")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    model: str
    num_words: int
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., num_words: _Optional[int] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("explanations", "model", "timings")
    EXPLANATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    explanations: _containers.RepeatedCompositeFieldContainer[TextExplanation]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, explanations: _Optional[_Iterable[_Union[TextExplanation, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class TextExplanation(_message.Message):
    __slots__ = ("tokens", "facets", "token_stats")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STATS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenAttention]
    facets: _containers.RepeatedCompositeFieldContainer[_common_pb2.FacetWords]
    token_stats: _common_pb2.TokenStats
    def __init__(self, tokens: _Optional[_Iterable[_Union[_common_pb2.TokenAttention, _Mapping]]] = ..., facets: _Optional[_Iterable[_Union[_common_pb2.FacetWords, _Mapping]]] = ..., token_stats: _Optional[_Union[_common_pb2.TokenStats, _Mapping]] = ...) -> None: ...
