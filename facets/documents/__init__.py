"""Documents and search: collections of texts, over a durable store and indexes derived from it."""

from facets.documents.collections import Collections
from facets.documents.confidence import RelevanceCurve
from facets.documents.diagnosis import CollectionDiagnosis, CollectionMap
from facets.documents.engine import CollectionEngine
from facets.documents.filters import AllOf, AnyOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range
from facets.documents.parts import EncodedText
from facets.documents.queries import DocumentQuery, RerankQuery
from facets.documents.records import CollectionInfo, CollectionRecord
from facets.documents.reindexing import TargetModel
from facets.documents.request import SearchRequest
from facets.documents.reranking import rerank
from facets.documents.types import (
    Combination,
    CountResult,
    DeleteResult,
    Document,
    DocumentPage,
    DocumentPart,
    FacetMatch,
    FilterWarning,
    GetResult,
    SearchHit,
    SearchMode,
    SearchResult,
    Span,
    StoredDocument,
    UpsertResult,
)
from facets.index.config import EngineConfig

__all__ = [
    "AllOf",
    "AnyOf",
    "CollectionDiagnosis",
    "CollectionEngine",
    "CollectionInfo",
    "CollectionMap",
    "CollectionRecord",
    "Collections",
    "Combination",
    "Contains",
    "CountResult",
    "DeleteResult",
    "Document",
    "DocumentPage",
    "DocumentPart",
    "DocumentQuery",
    "EncodedText",
    "EngineConfig",
    "Equals",
    "Exists",
    "FacetMatch",
    "Filter",
    "FilterWarning",
    "GetResult",
    "NoneOf",
    "OneOf",
    "Range",
    "RelevanceCurve",
    "RerankQuery",
    "SearchHit",
    "SearchMode",
    "SearchRequest",
    "SearchResult",
    "Span",
    "StoredDocument",
    "TargetModel",
    "UpsertResult",
    "rerank",
]
