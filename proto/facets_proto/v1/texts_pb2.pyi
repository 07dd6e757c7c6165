from facets_proto.v1 import common_pb2 as _common_pb2
from google.rpc import status_pb2 as _status_pb2
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
    SIMILARITY_METHOD_CROSS_ENCODER: _ClassVar[SimilarityMethod]

class InferenceLabel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INFERENCE_LABEL_UNSPECIFIED: _ClassVar[InferenceLabel]
    INFERENCE_LABEL_ENTAILS: _ClassVar[InferenceLabel]
    INFERENCE_LABEL_NEUTRAL: _ClassVar[InferenceLabel]
    INFERENCE_LABEL_CONTRADICTS: _ClassVar[InferenceLabel]
    INFERENCE_LABEL_EQUIVALENT: _ClassVar[InferenceLabel]
SIMILARITY_METHOD_UNSPECIFIED: SimilarityMethod
SIMILARITY_METHOD_CODEBOOK: SimilarityMethod
SIMILARITY_METHOD_MAX_FACET: SimilarityMethod
SIMILARITY_METHOD_AVERAGE: SimilarityMethod
SIMILARITY_METHOD_PROBABILITY_AVERAGE: SimilarityMethod
SIMILARITY_METHOD_SIF: SimilarityMethod
SIMILARITY_METHOD_WMD: SimilarityMethod
SIMILARITY_METHOD_PROBABILITY_WMD: SimilarityMethod
SIMILARITY_METHOD_ENCODER: SimilarityMethod
SIMILARITY_METHOD_CROSS_ENCODER: SimilarityMethod
INFERENCE_LABEL_UNSPECIFIED: InferenceLabel
INFERENCE_LABEL_ENTAILS: InferenceLabel
INFERENCE_LABEL_NEUTRAL: InferenceLabel
INFERENCE_LABEL_CONTRADICTS: InferenceLabel
INFERENCE_LABEL_EQUIVALENT: InferenceLabel

class EmbedRequest(_message.Message):
    __slots__ = ("texts", "model", "normalize", "dtype", "include_spans", "include_vectors", "vectors_only")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NORMALIZE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SPANS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VECTORS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_ONLY_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    model: str
    normalize: bool
    dtype: _common_pb2.DataType
    include_spans: bool
    include_vectors: bool
    vectors_only: bool
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., normalize: _Optional[bool] = ..., dtype: _Optional[_Union[_common_pb2.DataType, str]] = ..., include_spans: _Optional[bool] = ..., include_vectors: _Optional[bool] = ..., vectors_only: _Optional[bool] = ...) -> None: ...

class EmbedResponse(_message.Message):
    __slots__ = ("facet_embeddings", "token_stats", "model", "timings", "facet_spans", "vectors")
    FACET_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STATS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    FACET_SPANS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    facet_embeddings: _common_pb2.FacetArray
    token_stats: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenStats]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    facet_spans: _containers.RepeatedCompositeFieldContainer[FacetSpans]
    vectors: _common_pb2.FacetArray
    def __init__(self, facet_embeddings: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ..., token_stats: _Optional[_Iterable[_Union[_common_pb2.TokenStats, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., facet_spans: _Optional[_Iterable[_Union[FacetSpans, _Mapping]]] = ..., vectors: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ...) -> None: ...

class FacetSpans(_message.Message):
    __slots__ = ("spans",)
    SPANS_FIELD_NUMBER: _ClassVar[int]
    spans: _containers.RepeatedCompositeFieldContainer[_common_pb2.Span]
    def __init__(self, spans: _Optional[_Iterable[_Union[_common_pb2.Span, _Mapping]]] = ...) -> None: ...

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

class ScoreRequest(_message.Message):
    __slots__ = ("pairs", "model", "method", "attention", "explain", "calibrated", "num_words")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[TextPair]
    model: str
    method: SimilarityMethod
    attention: bool
    explain: bool
    calibrated: bool
    num_words: int
    def __init__(self, pairs: _Optional[_Iterable[_Union[TextPair, _Mapping]]] = ..., model: _Optional[str] = ..., method: _Optional[_Union[SimilarityMethod, str]] = ..., attention: _Optional[bool] = ..., explain: _Optional[bool] = ..., calibrated: _Optional[bool] = ..., num_words: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("score", "calibrated_score", "explanation", "label", "differences")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    score: float
    calibrated_score: float
    explanation: PairExplanation
    label: InferenceLabel
    differences: _containers.RepeatedCompositeFieldContainer[Difference]
    def __init__(self, score: _Optional[float] = ..., calibrated_score: _Optional[float] = ..., explanation: _Optional[_Union[PairExplanation, _Mapping]] = ..., label: _Optional[_Union[InferenceLabel, str]] = ..., differences: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("first", "second", "first_start", "first_end", "second_start", "second_end", "weight")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    FIRST_START_FIELD_NUMBER: _ClassVar[int]
    FIRST_END_FIELD_NUMBER: _ClassVar[int]
    SECOND_START_FIELD_NUMBER: _ClassVar[int]
    SECOND_END_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    first_start: int
    first_end: int
    second_start: int
    second_end: int
    weight: float
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ..., first_start: _Optional[int] = ..., first_end: _Optional[int] = ..., second_start: _Optional[int] = ..., second_end: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class PairExplanation(_message.Message):
    __slots__ = ("matches", "first_tokens", "second_tokens")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SECOND_TOKENS_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[_common_pb2.FacetMatch]
    first_tokens: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenAttention]
    second_tokens: _containers.RepeatedCompositeFieldContainer[_common_pb2.TokenAttention]
    def __init__(self, matches: _Optional[_Iterable[_Union[_common_pb2.FacetMatch, _Mapping]]] = ..., first_tokens: _Optional[_Iterable[_Union[_common_pb2.TokenAttention, _Mapping]]] = ..., second_tokens: _Optional[_Iterable[_Union[_common_pb2.TokenAttention, _Mapping]]] = ...) -> None: ...

class SummarizeRequest(_message.Message):
    __slots__ = ("documents", "model", "num_sentences", "max_words", "query")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NUM_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    MAX_WORDS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[SummaryDocument]
    model: str
    num_sentences: int
    max_words: int
    query: str
    def __init__(self, documents: _Optional[_Iterable[_Union[SummaryDocument, _Mapping]]] = ..., model: _Optional[str] = ..., num_sentences: _Optional[int] = ..., max_words: _Optional[int] = ..., query: _Optional[str] = ...) -> None: ...

class SummaryDocument(_message.Message):
    __slots__ = ("text", "sentences")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    text: str
    sentences: SentenceList
    def __init__(self, text: _Optional[str] = ..., sentences: _Optional[_Union[SentenceList, _Mapping]] = ...) -> None: ...

class SentenceList(_message.Message):
    __slots__ = ("sentences",)
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    sentences: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sentences: _Optional[_Iterable[str]] = ...) -> None: ...

class SummarizeResponse(_message.Message):
    __slots__ = ("summaries", "model", "timings")
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    summaries: _containers.RepeatedCompositeFieldContainer[Summary]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, summaries: _Optional[_Iterable[_Union[Summary, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class Summary(_message.Message):
    __slots__ = ("sentences", "num_sentences_in_document", "num_words", "has_prose")
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    NUM_SENTENCES_IN_DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    HAS_PROSE_FIELD_NUMBER: _ClassVar[int]
    sentences: _containers.RepeatedCompositeFieldContainer[SummarySentence]
    num_sentences_in_document: int
    num_words: int
    has_prose: bool
    def __init__(self, sentences: _Optional[_Iterable[_Union[SummarySentence, _Mapping]]] = ..., num_sentences_in_document: _Optional[int] = ..., num_words: _Optional[int] = ..., has_prose: _Optional[bool] = ...) -> None: ...

class SummarySentence(_message.Message):
    __slots__ = ("text", "sentence", "start", "end", "selection", "gain")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    text: str
    sentence: int
    start: int
    end: int
    selection: int
    gain: float
    def __init__(self, text: _Optional[str] = ..., sentence: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., selection: _Optional[int] = ..., gain: _Optional[float] = ...) -> None: ...

class SuggestTopicsRequest(_message.Message):
    __slots__ = ("texts", "model", "num_topics", "num_words", "keep", "avoid")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NUM_TOPICS_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    AVOID_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    model: str
    num_topics: int
    num_words: int
    keep: _containers.RepeatedScalarFieldContainer[str]
    avoid: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., num_topics: _Optional[int] = ..., num_words: _Optional[int] = ..., keep: _Optional[_Iterable[str]] = ..., avoid: _Optional[_Iterable[str]] = ...) -> None: ...

class SuggestTopicsResponse(_message.Message):
    __slots__ = ("texts", "model", "timings")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[TextTopics]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, texts: _Optional[_Iterable[_Union[TextTopics, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class TextTopics(_message.Message):
    __slots__ = ("topics", "vectors")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    vectors: _common_pb2.FacetArray
    def __init__(self, topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ..., vectors: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("words", "likelihood", "novelty")
    WORDS_FIELD_NUMBER: _ClassVar[int]
    LIKELIHOOD_FIELD_NUMBER: _ClassVar[int]
    NOVELTY_FIELD_NUMBER: _ClassVar[int]
    words: _containers.RepeatedCompositeFieldContainer[_common_pb2.NearestWord]
    likelihood: float
    novelty: float
    def __init__(self, words: _Optional[_Iterable[_Union[_common_pb2.NearestWord, _Mapping]]] = ..., likelihood: _Optional[float] = ..., novelty: _Optional[float] = ...) -> None: ...
