from facets_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SimilarityMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIMILARITY_METHOD_UNSPECIFIED: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_CODEBOOK: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_MAX_FACET: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_AVERAGE: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_PROBABILITY_AVERAGE: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_SIF: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_WMD: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_PROBABILITY_WMD: _ClassVar[SimilarityMethod]
    SIMILARITY_METHOD_ENCODER: _ClassVar[SimilarityMethod]

class CalibratedRange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALIBRATED_RANGE_UNSPECIFIED: _ClassVar[CalibratedRange]
    CALIBRATED_RANGE_ZERO_TO_ONE: _ClassVar[CalibratedRange]
    CALIBRATED_RANGE_ZERO_TO_FIVE: _ClassVar[CalibratedRange]
SIMILARITY_METHOD_UNSPECIFIED: SimilarityMethod
SIMILARITY_METHOD_CODEBOOK: SimilarityMethod
SIMILARITY_METHOD_MAX_FACET: SimilarityMethod
SIMILARITY_METHOD_AVERAGE: SimilarityMethod
SIMILARITY_METHOD_PROBABILITY_AVERAGE: SimilarityMethod
SIMILARITY_METHOD_SIF: SimilarityMethod
SIMILARITY_METHOD_WMD: SimilarityMethod
SIMILARITY_METHOD_PROBABILITY_WMD: SimilarityMethod
SIMILARITY_METHOD_ENCODER: SimilarityMethod
CALIBRATED_RANGE_UNSPECIFIED: CalibratedRange
CALIBRATED_RANGE_ZERO_TO_ONE: CalibratedRange
CALIBRATED_RANGE_ZERO_TO_FIVE: CalibratedRange

class ScoreRequest(_message.Message):
    __slots__ = ("pairs", "model", "method", "attention", "explain", "calibrated", "num_words", "calibrated_range")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_RANGE_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[TextPair]
    model: str
    method: SimilarityMethod
    attention: bool
    explain: bool
    calibrated: bool
    num_words: int
    calibrated_range: CalibratedRange
    def __init__(self, pairs: _Optional[_Iterable[_Union[TextPair, _Mapping]]] = ..., model: _Optional[str] = ..., method: _Optional[_Union[SimilarityMethod, str]] = ..., attention: _Optional[bool] = ..., explain: _Optional[bool] = ..., calibrated: _Optional[bool] = ..., num_words: _Optional[int] = ..., calibrated_range: _Optional[_Union[CalibratedRange, str]] = ...) -> None: ...

class TextPair(_message.Message):
    __slots__ = ("first", "second")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "method", "attention", "model", "timings")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PairScore]
    method: SimilarityMethod
    attention: bool
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, scores: _Optional[_Iterable[_Union[PairScore, _Mapping]]] = ..., method: _Optional[_Union[SimilarityMethod, str]] = ..., attention: _Optional[bool] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class PairScore(_message.Message):
    __slots__ = ("score", "calibrated_score", "explanation")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    score: float
    calibrated_score: float
    explanation: PairExplanation
    def __init__(self, score: _Optional[float] = ..., calibrated_score: _Optional[float] = ..., explanation: _Optional[_Union[PairExplanation, _Mapping]] = ...) -> None: ...

class PairExplanation(_message.Message):
    __slots__ = ("matches", "first_tokens", "second_tokens")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SECOND_TOKENS_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[_common_pb2.FacetMatch]
    first_tokens: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenAttention]
    second_tokens: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenAttention]
    def __init__(self, matches: _Optional[_Iterable[_Union[_common_pb2.FacetMatch, _Mapping]]] = ..., first_tokens: _Optional[_Iterable[_Union[_common_pb2.TokenAttention, _Mapping]]] = ..., second_tokens: _Optional[_Iterable[_Union[_common_pb2.TokenAttention, _Mapping]]] = ...) -> None: ...
