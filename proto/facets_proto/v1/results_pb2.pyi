from facets_proto.v1 import common_pb2 as _common_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DocumentPart(_message.Message):
    __slots__ = ("start", "end", "headings", "page")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    HEADINGS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    headings: _containers.RepeatedScalarFieldContainer[str]
    page: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., headings: _Optional[_Iterable[str]] = ..., page: _Optional[int] = ...) -> None: ...

class SearchResult(_message.Message):
    __slots__ = ("hits",)
    HITS_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[SearchHit]
    def __init__(self, hits: _Optional[_Iterable[_Union[SearchHit, _Mapping]]] = ...) -> None: ...

class SearchHit(_message.Message):
    __slots__ = ("id", "score", "text", "payload", "evidence", "revision", "facets_score", "lexical_score", "matched_words", "answer", "confidence", "matched_spans", "part", "part_number", "num_parts", "answer_confidence")
    ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    FACETS_SCORE_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_SCORE_FIELD_NUMBER: _ClassVar[int]
    MATCHED_WORDS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MATCHED_SPANS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PART_NUMBER_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    score: float
    text: str
    payload: _struct_pb2.Struct
    evidence: _containers.RepeatedCompositeFieldContainer[_common_pb2.FacetMatch]
    revision: int
    facets_score: float
    lexical_score: float
    matched_words: _containers.RepeatedScalarFieldContainer[str]
    answer: _common_pb2.Span
    confidence: float
    matched_spans: _containers.RepeatedCompositeFieldContainer[_common_pb2.Span]
    part: DocumentPart
    part_number: int
    num_parts: int
    answer_confidence: float
    def __init__(self, id: _Optional[str] = ..., score: _Optional[float] = ..., text: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[_common_pb2.FacetMatch, _Mapping]]] = ..., revision: _Optional[int] = ..., facets_score: _Optional[float] = ..., lexical_score: _Optional[float] = ..., matched_words: _Optional[_Iterable[str]] = ..., answer: _Optional[_Union[_common_pb2.Span, _Mapping]] = ..., confidence: _Optional[float] = ..., matched_spans: _Optional[_Iterable[_Union[_common_pb2.Span, _Mapping]]] = ..., part: _Optional[_Union[DocumentPart, _Mapping]] = ..., part_number: _Optional[int] = ..., num_parts: _Optional[int] = ..., answer_confidence: _Optional[float] = ...) -> None: ...

class RankedText(_message.Message):
    __slots__ = ("index", "score", "facets_score", "lexical_score", "confidence", "answer", "answer_confidence")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FACETS_SCORE_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_SCORE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    ANSWER_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    index: int
    score: float
    facets_score: float
    lexical_score: float
    confidence: float
    answer: _common_pb2.Span
    answer_confidence: float
    def __init__(self, index: _Optional[int] = ..., score: _Optional[float] = ..., facets_score: _Optional[float] = ..., lexical_score: _Optional[float] = ..., confidence: _Optional[float] = ..., answer: _Optional[_Union[_common_pb2.Span, _Mapping]] = ..., answer_confidence: _Optional[float] = ...) -> None: ...
