"""Documents and search: a durable SQLite store and vector indexes derived from it."""

from facets.index.config import EngineConfig
from facets.index.documents import (
    CollectionInfo,
    CountResult,
    DeleteResult,
    Document,
    DocumentPage,
    GetResult,
    Hit,
    JsonValue,
    SearchResult,
    StoredDocument,
    UpsertResult,
)
from facets.index.engine import CollectionEngine
from facets.index.filters import And, Contains, Equals, Exists, Filter, In, Not, Or, Range

__all__ = [
    "And",
    "CollectionEngine",
    "CollectionInfo",
    "Contains",
    "CountResult",
    "DeleteResult",
    "Document",
    "DocumentPage",
    "EngineConfig",
    "Equals",
    "Exists",
    "Filter",
    "GetResult",
    "Hit",
    "In",
    "JsonValue",
    "Not",
    "Or",
    "Range",
    "SearchResult",
    "StoredDocument",
    "UpsertResult",
]
