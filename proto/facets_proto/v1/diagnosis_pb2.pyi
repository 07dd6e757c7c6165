from facets_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DiagnoseCollectionRequest(_message.Message):
    __slots__ = ("name", "queries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    queries: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., queries: _Optional[_Iterable[str]] = ...) -> None: ...

class DiagnoseCollectionResponse(_message.Message):
    __slots__ = ("num_documents", "num_parts", "num_parts_seen", "num_queries", "vectors", "recall", "missed_ids", "index_revision", "model", "timings", "index_kind")
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTS_SEEN_FIELD_NUMBER: _ClassVar[int]
    NUM_QUERIES_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    MISSED_IDS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    INDEX_KIND_FIELD_NUMBER: _ClassVar[int]
    num_documents: int
    num_parts: int
    num_parts_seen: int
    num_queries: int
    vectors: VectorReport
    recall: float
    missed_ids: _containers.RepeatedScalarFieldContainer[str]
    index_revision: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    index_kind: str
    def __init__(self, num_documents: _Optional[int] = ..., num_parts: _Optional[int] = ..., num_parts_seen: _Optional[int] = ..., num_queries: _Optional[int] = ..., vectors: _Optional[_Union[VectorReport, _Mapping]] = ..., recall: _Optional[float] = ..., missed_ids: _Optional[_Iterable[str]] = ..., index_revision: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., index_kind: _Optional[str] = ...) -> None: ...

class VectorReport(_message.Message):
    __slots__ = ("num_rows", "dim", "num_duplicates", "effective_rank", "cosine", "findings")
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    NUM_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_RANK_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    num_rows: int
    dim: int
    num_duplicates: int
    effective_rank: float
    cosine: Neighbours
    findings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, num_rows: _Optional[int] = ..., dim: _Optional[int] = ..., num_duplicates: _Optional[int] = ..., effective_rank: _Optional[float] = ..., cosine: _Optional[_Union[Neighbours, _Mapping]] = ..., findings: _Optional[_Iterable[str]] = ...) -> None: ...

class Neighbours(_message.Message):
    __slots__ = ("num_queries", "self_first", "unreached", "largest_hub")
    NUM_QUERIES_FIELD_NUMBER: _ClassVar[int]
    SELF_FIRST_FIELD_NUMBER: _ClassVar[int]
    UNREACHED_FIELD_NUMBER: _ClassVar[int]
    LARGEST_HUB_FIELD_NUMBER: _ClassVar[int]
    num_queries: int
    self_first: float
    unreached: float
    largest_hub: int
    def __init__(self, num_queries: _Optional[int] = ..., self_first: _Optional[float] = ..., unreached: _Optional[float] = ..., largest_hub: _Optional[int] = ...) -> None: ...

class MapCollectionRequest(_message.Message):
    __slots__ = ("name", "max_documents")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    max_documents: int
    def __init__(self, name: _Optional[str] = ..., max_documents: _Optional[int] = ...) -> None: ...

class MapCollectionResponse(_message.Message):
    __slots__ = ("num_documents", "ids", "points", "document_themes", "themes", "method", "index_revision", "timings")
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_THEMES_FIELD_NUMBER: _ClassVar[int]
    THEMES_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    num_documents: int
    ids: _containers.RepeatedScalarFieldContainer[str]
    points: _common_pb2.FacetArray
    document_themes: _containers.RepeatedScalarFieldContainer[int]
    themes: _containers.RepeatedCompositeFieldContainer[MapTheme]
    method: str
    index_revision: int
    timings: _common_pb2.Timings
    def __init__(self, num_documents: _Optional[int] = ..., ids: _Optional[_Iterable[str]] = ..., points: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ..., document_themes: _Optional[_Iterable[int]] = ..., themes: _Optional[_Iterable[_Union[MapTheme, _Mapping]]] = ..., method: _Optional[str] = ..., index_revision: _Optional[int] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class MapTheme(_message.Message):
    __slots__ = ("words", "num_documents")
    WORDS_FIELD_NUMBER: _ClassVar[int]
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    words: _containers.RepeatedCompositeFieldContainer[_common_pb2.NearestWord]
    num_documents: int
    def __init__(self, words: _Optional[_Iterable[_Union[_common_pb2.NearestWord, _Mapping]]] = ..., num_documents: _Optional[int] = ...) -> None: ...
