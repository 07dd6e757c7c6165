"""Documents and search: collections of texts, over a durable store and indexes derived from it."""

from facets.documents.collections import Collections
from facets.documents.confidence import RelevanceCurve
from facets.documents.engine import CollectionEngine
from facets.documents.filters import AllOf, AnyOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range
from facets.documents.parts import EncodedText
from facets.documents.queries import DocumentQuery, RerankQuery, SearchRequest
from facets.documents.records import CollectionInfo, CollectionRecord
from facets.documents.reindexing import TargetModel
from facets.documents.search import rerank
from facets.documents.types import Document, DocumentPart, SearchHit, SearchMode, SearchResult, Span, StoredDocument
from facets.index.config import EngineConfig

__all__ = [
    "AllOf",
    "AnyOf",
    "CollectionEngine",
    "CollectionInfo",
    "CollectionRecord",
    "Collections",
    "Contains",
    "Document",
    "DocumentPart",
    "DocumentQuery",
    "EncodedText",
    "EngineConfig",
    "Equals",
    "Exists",
    "Filter",
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
    "rerank",
]
