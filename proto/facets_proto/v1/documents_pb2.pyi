import datetime

from facets_proto.v1 import common_pb2 as _common_pb2
from facets_proto.v1 import diagnosis_pb2 as _diagnosis_pb2
from facets_proto.v1 import filters_pb2 as _filters_pb2
from facets_proto.v1 import results_pb2 as _results_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FacetCombination(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FACET_COMBINATION_UNSPECIFIED: _ClassVar[FacetCombination]
    FACET_COMBINATION_SUM: _ClassVar[FacetCombination]
    FACET_COMBINATION_ANY: _ClassVar[FacetCombination]

class SearchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_MODE_UNSPECIFIED: _ClassVar[SearchMode]
    SEARCH_MODE_HYBRID: _ClassVar[SearchMode]
    SEARCH_MODE_FACETS: _ClassVar[SearchMode]
    SEARCH_MODE_LEXICAL: _ClassVar[SearchMode]
FACET_COMBINATION_UNSPECIFIED: FacetCombination
FACET_COMBINATION_SUM: FacetCombination
FACET_COMBINATION_ANY: FacetCombination
SEARCH_MODE_UNSPECIFIED: SearchMode
SEARCH_MODE_HYBRID: SearchMode
SEARCH_MODE_FACETS: SearchMode
SEARCH_MODE_LEXICAL: SearchMode

class Collection(_message.Message):
    __slots__ = ("name", "model", "model_revision", "num_facets", "dim", "num_documents", "index_revision", "create_time", "index_kind", "space", "num_damaged", "num_parts", "search_fields", "language")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_REVISION_FIELD_NUMBER: _ClassVar[int]
    NUM_FACETS_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    INDEX_KIND_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    NUM_DAMAGED_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTS_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELDS_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    model: str
    model_revision: str
    num_facets: int
    dim: int
    num_documents: int
    index_revision: int
    create_time: _timestamp_pb2.Timestamp
    index_kind: str
    space: str
    num_damaged: int
    num_parts: int
    search_fields: _containers.RepeatedCompositeFieldContainer[SearchField]
    language: str
    def __init__(self, name: _Optional[str] = ..., model: _Optional[str] = ..., model_revision: _Optional[str] = ..., num_facets: _Optional[int] = ..., dim: _Optional[int] = ..., num_documents: _Optional[int] = ..., index_revision: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., index_kind: _Optional[str] = ..., space: _Optional[str] = ..., num_damaged: _Optional[int] = ..., num_parts: _Optional[int] = ..., search_fields: _Optional[_Iterable[_Union[SearchField, _Mapping]]] = ..., language: _Optional[str] = ...) -> None: ...

class SearchField(_message.Message):
    __slots__ = ("name", "weight")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class SearchFields(_message.Message):
    __slots__ = ("fields",)
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[SearchField]
    def __init__(self, fields: _Optional[_Iterable[_Union[SearchField, _Mapping]]] = ...) -> None: ...

class CreateCollectionRequest(_message.Message):
    __slots__ = ("name", "model", "search_fields", "language")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELDS_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    model: str
    search_fields: SearchFields
    language: str
    def __init__(self, name: _Optional[str] = ..., model: _Optional[str] = ..., search_fields: _Optional[_Union[SearchFields, _Mapping]] = ..., language: _Optional[str] = ...) -> None: ...

class CreateCollectionResponse(_message.Message):
    __slots__ = ("collection",)
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    collection: Collection
    def __init__(self, collection: _Optional[_Union[Collection, _Mapping]] = ...) -> None: ...

class GetCollectionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetCollectionResponse(_message.Message):
    __slots__ = ("collection",)
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    collection: Collection
    def __init__(self, collection: _Optional[_Union[Collection, _Mapping]] = ...) -> None: ...

class ListCollectionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCollectionsResponse(_message.Message):
    __slots__ = ("collections", "next_page_token")
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    collections: _containers.RepeatedCompositeFieldContainer[Collection]
    next_page_token: str
    def __init__(self, collections: _Optional[_Iterable[_Union[Collection, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteCollectionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteCollectionResponse(_message.Message):
    __slots__ = ("num_documents", "index_revision")
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    num_documents: int
    index_revision: int
    def __init__(self, num_documents: _Optional[int] = ..., index_revision: _Optional[int] = ...) -> None: ...

class ReindexCollectionRequest(_message.Message):
    __slots__ = ("name", "model", "search_fields")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    model: str
    search_fields: SearchFields
    def __init__(self, name: _Optional[str] = ..., model: _Optional[str] = ..., search_fields: _Optional[_Union[SearchFields, _Mapping]] = ...) -> None: ...

class ReindexCollectionResponse(_message.Message):
    __slots__ = ("done", "num_encoded", "collection")
    DONE_FIELD_NUMBER: _ClassVar[int]
    NUM_ENCODED_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    done: bool
    num_encoded: int
    collection: Collection
    def __init__(self, done: _Optional[bool] = ..., num_encoded: _Optional[int] = ..., collection: _Optional[_Union[Collection, _Mapping]] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("id", "text", "payload", "facet_embeddings", "revision", "token_stats", "facet_spans", "parts", "part_facets", "source")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    FACET_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_STATS_FIELD_NUMBER: _ClassVar[int]
    FACET_SPANS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PART_FACETS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    payload: _struct_pb2.Struct
    facet_embeddings: _common_pb2.FacetArray
    revision: int
    token_stats: _common_pb2.TokenStats
    facet_spans: _containers.RepeatedCompositeFieldContainer[_common_pb2.Span]
    parts: _containers.RepeatedCompositeFieldContainer[_results_pb2.DocumentPart]
    part_facets: _containers.RepeatedScalarFieldContainer[int]
    source: str
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., facet_embeddings: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ..., revision: _Optional[int] = ..., token_stats: _Optional[_Union[_common_pb2.TokenStats, _Mapping]] = ..., facet_spans: _Optional[_Iterable[_Union[_common_pb2.Span, _Mapping]]] = ..., parts: _Optional[_Iterable[_Union[_results_pb2.DocumentPart, _Mapping]]] = ..., part_facets: _Optional[_Iterable[int]] = ..., source: _Optional[str] = ...) -> None: ...

class UpsertRequest(_message.Message):
    __slots__ = ("collection", "documents", "encoded_by")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    ENCODED_BY_FIELD_NUMBER: _ClassVar[int]
    collection: str
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    encoded_by: _common_pb2.ModelVersion
    def __init__(self, collection: _Optional[str] = ..., documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., encoded_by: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ...) -> None: ...

class UpsertResponse(_message.Message):
    __slots__ = ("num_upserted", "index_revision", "model", "timings", "truncated_documents", "num_added", "num_changed", "num_unchanged")
    NUM_UPSERTED_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NUM_ADDED_FIELD_NUMBER: _ClassVar[int]
    NUM_CHANGED_FIELD_NUMBER: _ClassVar[int]
    NUM_UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    num_upserted: int
    index_revision: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    truncated_documents: _containers.RepeatedCompositeFieldContainer[_common_pb2.TruncatedDocument]
    num_added: int
    num_changed: int
    num_unchanged: int
    def __init__(self, num_upserted: _Optional[int] = ..., index_revision: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., truncated_documents: _Optional[_Iterable[_Union[_common_pb2.TruncatedDocument, _Mapping]]] = ..., num_added: _Optional[int] = ..., num_changed: _Optional[int] = ..., num_unchanged: _Optional[int] = ...) -> None: ...

class UpsertStreamRequest(_message.Message):
    __slots__ = ("open", "batch")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    open: UpsertStreamOpen
    batch: UpsertStreamBatch
    def __init__(self, open: _Optional[_Union[UpsertStreamOpen, _Mapping]] = ..., batch: _Optional[_Union[UpsertStreamBatch, _Mapping]] = ...) -> None: ...

class UpsertStreamOpen(_message.Message):
    __slots__ = ("collection", "resume_token", "encoded_by")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ENCODED_BY_FIELD_NUMBER: _ClassVar[int]
    collection: str
    resume_token: str
    encoded_by: _common_pb2.ModelVersion
    def __init__(self, collection: _Optional[str] = ..., resume_token: _Optional[str] = ..., encoded_by: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ...) -> None: ...

class UpsertStreamBatch(_message.Message):
    __slots__ = ("sequence", "documents")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    def __init__(self, sequence: _Optional[int] = ..., documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ...) -> None: ...

class UpsertStreamResponse(_message.Message):
    __slots__ = ("opened", "ack")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    opened: UpsertStreamOpened
    ack: UpsertStreamAck
    def __init__(self, opened: _Optional[_Union[UpsertStreamOpened, _Mapping]] = ..., ack: _Optional[_Union[UpsertStreamAck, _Mapping]] = ...) -> None: ...

class UpsertStreamOpened(_message.Message):
    __slots__ = ("resume_token", "last_acked_sequence", "max_unacked_batches")
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LAST_ACKED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_UNACKED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    resume_token: str
    last_acked_sequence: int
    max_unacked_batches: int
    def __init__(self, resume_token: _Optional[str] = ..., last_acked_sequence: _Optional[int] = ..., max_unacked_batches: _Optional[int] = ...) -> None: ...

class UpsertStreamAck(_message.Message):
    __slots__ = ("sequence", "num_upserted", "rejected_documents", "index_revision", "already_stored", "truncated_documents", "num_added", "num_changed", "num_unchanged")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NUM_UPSERTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    ALREADY_STORED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NUM_ADDED_FIELD_NUMBER: _ClassVar[int]
    NUM_CHANGED_FIELD_NUMBER: _ClassVar[int]
    NUM_UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    num_upserted: int
    rejected_documents: _containers.RepeatedCompositeFieldContainer[RejectedDocument]
    index_revision: int
    already_stored: bool
    truncated_documents: _containers.RepeatedCompositeFieldContainer[_common_pb2.TruncatedDocument]
    num_added: int
    num_changed: int
    num_unchanged: int
    def __init__(self, sequence: _Optional[int] = ..., num_upserted: _Optional[int] = ..., rejected_documents: _Optional[_Iterable[_Union[RejectedDocument, _Mapping]]] = ..., index_revision: _Optional[int] = ..., already_stored: _Optional[bool] = ..., truncated_documents: _Optional[_Iterable[_Union[_common_pb2.TruncatedDocument, _Mapping]]] = ..., num_added: _Optional[int] = ..., num_changed: _Optional[int] = ..., num_unchanged: _Optional[int] = ...) -> None: ...

class RejectedDocument(_message.Message):
    __slots__ = ("position", "id", "error")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    position: int
    id: str
    error: _status_pb2.Status
    def __init__(self, position: _Optional[int] = ..., id: _Optional[str] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class GetDocumentsRequest(_message.Message):
    __slots__ = ("collection", "ids", "include_facets", "min_revision")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FACETS_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    collection: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    include_facets: bool
    min_revision: int
    def __init__(self, collection: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., include_facets: _Optional[bool] = ..., min_revision: _Optional[int] = ...) -> None: ...

class GetDocumentsResponse(_message.Message):
    __slots__ = ("documents", "missing_ids", "index_revision")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    MISSING_IDS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    missing_ids: _containers.RepeatedScalarFieldContainer[str]
    index_revision: int
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., missing_ids: _Optional[_Iterable[str]] = ..., index_revision: _Optional[int] = ...) -> None: ...

class DeleteDocumentsRequest(_message.Message):
    __slots__ = ("collection", "ids", "where", "source")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    collection: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    where: _filters_pb2.Filter
    source: str
    def __init__(self, collection: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., where: _Optional[_Union[_filters_pb2.Filter, _Mapping]] = ..., source: _Optional[str] = ...) -> None: ...

class DeleteDocumentsResponse(_message.Message):
    __slots__ = ("num_deleted", "index_revision", "warnings")
    NUM_DELETED_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    num_deleted: int
    index_revision: int
    warnings: _containers.RepeatedCompositeFieldContainer[_filters_pb2.FilterWarning]
    def __init__(self, num_deleted: _Optional[int] = ..., index_revision: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_filters_pb2.FilterWarning, _Mapping]]] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("collection", "page_size", "page_token", "where", "include_facets", "min_revision", "source", "include_document")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FACETS_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    collection: str
    page_size: int
    page_token: str
    where: _filters_pb2.Filter
    include_facets: bool
    min_revision: int
    source: str
    include_document: bool
    def __init__(self, collection: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., where: _Optional[_Union[_filters_pb2.Filter, _Mapping]] = ..., include_facets: _Optional[bool] = ..., min_revision: _Optional[int] = ..., source: _Optional[str] = ..., include_document: _Optional[bool] = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("documents", "next_page_token", "index_revision", "warnings")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    next_page_token: str
    index_revision: int
    warnings: _containers.RepeatedCompositeFieldContainer[_filters_pb2.FilterWarning]
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., index_revision: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_filters_pb2.FilterWarning, _Mapping]]] = ...) -> None: ...

class ListSourcesRequest(_message.Message):
    __slots__ = ("collection", "page_size", "page_token")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    collection: str
    page_size: int
    page_token: str
    def __init__(self, collection: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSourcesResponse(_message.Message):
    __slots__ = ("sources", "next_page_token", "index_revision")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[DocumentSource]
    next_page_token: str
    index_revision: int
    def __init__(self, sources: _Optional[_Iterable[_Union[DocumentSource, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., index_revision: _Optional[int] = ...) -> None: ...

class DocumentSource(_message.Message):
    __slots__ = ("source", "num_documents")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    source: str
    num_documents: int
    def __init__(self, source: _Optional[str] = ..., num_documents: _Optional[int] = ...) -> None: ...

class CountDocumentsRequest(_message.Message):
    __slots__ = ("collection", "where", "min_revision")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    collection: str
    where: _filters_pb2.Filter
    min_revision: int
    def __init__(self, collection: _Optional[str] = ..., where: _Optional[_Union[_filters_pb2.Filter, _Mapping]] = ..., min_revision: _Optional[int] = ...) -> None: ...

class CountDocumentsResponse(_message.Message):
    __slots__ = ("num_documents", "index_revision", "warnings")
    NUM_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    num_documents: int
    index_revision: int
    warnings: _containers.RepeatedCompositeFieldContainer[_filters_pb2.FilterWarning]
    def __init__(self, num_documents: _Optional[int] = ..., index_revision: _Optional[int] = ..., warnings: _Optional[_Iterable[_Union[_filters_pb2.FilterWarning, _Mapping]]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("collection", "queries", "top_k", "where", "exact", "min_revision", "evidence", "num_words", "include_document", "mode", "min_confidence", "diversify", "model", "group", "combine", "use_reader")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    DIVERSIFY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    COMBINE_FIELD_NUMBER: _ClassVar[int]
    USE_READER_FIELD_NUMBER: _ClassVar[int]
    collection: str
    queries: _containers.RepeatedCompositeFieldContainer[SearchQuery]
    top_k: int
    where: _filters_pb2.Filter
    exact: bool
    min_revision: int
    evidence: bool
    num_words: int
    include_document: bool
    mode: SearchMode
    min_confidence: float
    diversify: float
    model: str
    group: bool
    combine: FacetCombination
    use_reader: bool
    def __init__(self, collection: _Optional[str] = ..., queries: _Optional[_Iterable[_Union[SearchQuery, _Mapping]]] = ..., top_k: _Optional[int] = ..., where: _Optional[_Union[_filters_pb2.Filter, _Mapping]] = ..., exact: _Optional[bool] = ..., min_revision: _Optional[int] = ..., evidence: _Optional[bool] = ..., num_words: _Optional[int] = ..., include_document: _Optional[bool] = ..., mode: _Optional[_Union[SearchMode, str]] = ..., min_confidence: _Optional[float] = ..., diversify: _Optional[float] = ..., model: _Optional[str] = ..., group: _Optional[bool] = ..., combine: _Optional[_Union[FacetCombination, str]] = ..., use_reader: _Optional[bool] = ...) -> None: ...

class SearchQuery(_message.Message):
    __slots__ = ("text", "facet_embeddings")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FACET_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    text: str
    facet_embeddings: _common_pb2.FacetArray
    def __init__(self, text: _Optional[str] = ..., facet_embeddings: _Optional[_Union[_common_pb2.FacetArray, _Mapping]] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("results", "index_revision", "exhaustive", "model", "timings", "index_kind", "warnings", "recall", "left_out")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTIVE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    INDEX_KIND_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_results_pb2.SearchResult]
    index_revision: int
    exhaustive: bool
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    index_kind: str
    warnings: _containers.RepeatedCompositeFieldContainer[_filters_pb2.FilterWarning]
    recall: float
    left_out: str
    def __init__(self, results: _Optional[_Iterable[_Union[_results_pb2.SearchResult, _Mapping]]] = ..., index_revision: _Optional[int] = ..., exhaustive: _Optional[bool] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., index_kind: _Optional[str] = ..., warnings: _Optional[_Iterable[_Union[_filters_pb2.FilterWarning, _Mapping]]] = ..., recall: _Optional[float] = ..., left_out: _Optional[str] = ...) -> None: ...

class RerankRequest(_message.Message):
    __slots__ = ("query", "texts", "top_k", "mode", "model", "use_reader")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    USE_READER_FIELD_NUMBER: _ClassVar[int]
    query: str
    texts: _containers.RepeatedScalarFieldContainer[str]
    top_k: int
    mode: SearchMode
    model: str
    use_reader: bool
    def __init__(self, query: _Optional[str] = ..., texts: _Optional[_Iterable[str]] = ..., top_k: _Optional[int] = ..., mode: _Optional[_Union[SearchMode, str]] = ..., model: _Optional[str] = ..., use_reader: _Optional[bool] = ...) -> None: ...

class RerankResponse(_message.Message):
    __slots__ = ("results", "model", "timings", "num_tokens")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_results_pb2.RankedText]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    num_tokens: int
    def __init__(self, results: _Optional[_Iterable[_Union[_results_pb2.RankedText, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., num_tokens: _Optional[int] = ...) -> None: ...
