from facets_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SummaryOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUMMARY_ORDER_UNSPECIFIED: _ClassVar[SummaryOrder]
    SUMMARY_ORDER_ORIGINAL: _ClassVar[SummaryOrder]
    SUMMARY_ORDER_SELECTION: _ClassVar[SummaryOrder]
SUMMARY_ORDER_UNSPECIFIED: SummaryOrder
SUMMARY_ORDER_ORIGINAL: SummaryOrder
SUMMARY_ORDER_SELECTION: SummaryOrder

class SummarizeRequest(_message.Message):
    __slots__ = ("documents", "model", "num_sentences", "max_words", "order", "query")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NUM_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    MAX_WORDS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[SummaryDocument]
    model: str
    num_sentences: int
    max_words: int
    order: SummaryOrder
    query: str
    def __init__(self, documents: _Optional[_Iterable[_Union[SummaryDocument, _Mapping]]] = ..., model: _Optional[str] = ..., num_sentences: _Optional[int] = ..., max_words: _Optional[int] = ..., order: _Optional[_Union[SummaryOrder, str]] = ..., query: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("sentences", "num_sentences_in_document", "num_words")
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    NUM_SENTENCES_IN_DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    sentences: _containers.RepeatedCompositeFieldContainer[SummarySentence]
    num_sentences_in_document: int
    num_words: int
    def __init__(self, sentences: _Optional[_Iterable[_Union[SummarySentence, _Mapping]]] = ..., num_sentences_in_document: _Optional[int] = ..., num_words: _Optional[int] = ...) -> None: ...

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
