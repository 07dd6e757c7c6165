"""Reads requests about documents into records of the library: documents to store, filters, searches."""

from collections.abc import Sequence
from typing import Any

from facets_proto.v1 import documents_pb2 as pb
from facets_proto.v1 import filters_pb2
from google.protobuf import struct_pb2

from facets.documents import AllOf, AnyOf, Contains, Document, Equals, Exists, Filter, NoneOf, OneOf, Range
from facets.documents.filters import Scalar
from facets.documents.ingest import Rejection
from facets.documents.queries import DocumentQuery, RerankQuery
from facets.errors import ErrorPath, InvalidInputError
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.requests import (
    check_list_of_texts,
    check_not_empty,
    check_number,
    check_product,
    check_texts,
    record_of,
)

_GROUPS: dict[str, type[AllOf | AnyOf | NoneOf]] = {"all_of": AllOf, "any_of": AnyOf, "none_of": NoneOf}


def documents_of(messages: Sequence[pb.Document]) -> list[Document | Rejection]:
    """Documents as sent: their parts are the sections that the caller knows; those that cannot be read are rejected."""
    documents = list[Document | Rejection]()
    for position, message in enumerate(messages):
        try:
            documents.append(record_of(message, Document, ("documents", position)))
        except InvalidInputError as error:
            documents.append(Rejection(position, message.id, error))
    return documents


def search_of(message: pb.SearchRequest, limits: LimitsConfig) -> DocumentQuery:
    """A request as a record; raises InvalidInputError."""
    texts = [(i, query.text) for i, query in enumerate(message.queries) if query.WhichOneof("query") == "text"]
    check_texts((("queries", i, "text"), text, limits.max_long_text_bytes) for i, text in texts)
    query = record_of(message, DocumentQuery, where=filter_of(message))
    check_number(query.num_words, ("num_words",), limits.max_nearest_words)
    if query.evidence:
        check_product("queries", query.top_k, len(query.queries), limits.max_evidence_hits)
    return query


def reranking_of(message: pb.RerankRequest, limits: LimitsConfig) -> RerankQuery:
    """A request as a record; raises InvalidInputError."""
    check_not_empty(message.texts, ("texts",))
    check_texts([(("query",), message.query, limits.max_long_text_bytes)])
    check_list_of_texts(message.texts, "texts", max_bytes=limits.max_long_text_bytes)
    top_k = message.top_k if message.HasField("top_k") else len(message.texts)
    check_number(top_k, ("top_k",), len(message.texts))
    return record_of(message, RerankQuery, documents=list(message.texts), top_k=top_k)


def search_fields_of(request: pb.CreateCollectionRequest | pb.ReindexCollectionRequest) -> dict[str, float] | None:
    """The weights of the fields to search; None: the request does not say. The engine checks names and weights."""
    if not request.HasField("search_fields"):
        return None
    return {field.name: field.weight for field in request.search_fields.fields}


def filter_of(request: Any) -> Filter | None:
    """The filter of a request; None: it has none. The engine checks fields and values."""
    return _filter(request.where, ("where",)) if request.HasField("where") else None


def _filter(message: filters_pb2.Filter, path: ErrorPath) -> Filter:
    kind = message.WhichOneof("condition")
    if kind is None:
        raise InvalidInputError("has no condition, expected one", path=path)
    if kind == "field":
        return _field(message.field, (*path, "field"))
    parts = enumerate(getattr(message, kind).filters)
    return _GROUPS[kind]([_filter(part, (*path, kind, "filters", i)) for i, part in parts])


def _field(message: filters_pb2.FieldCondition, path: ErrorPath) -> Filter:
    key = message.field
    test = message.WhichOneof("test")
    match test:
        case "equals":
            return Equals(key, _scalar(message.equals, (*path, test)))
        case "contains":
            return Contains(key, _scalar(message.contains, (*path, test)))
        case "one_of":
            return OneOf(key, [_scalar(value, (*path, test, i)) for i, value in enumerate(message.one_of.values)])
        case "exists":
            return Exists(key) if message.exists else NoneOf([Exists(key)])
        case "range" | "string_range":
            given = getattr(message, test)
            return Range(key, **{bound.name: value for bound, value in given.ListFields()})
    raise InvalidInputError("has no test, expected equals, one_of, range or another", path=path)


def _scalar(value: struct_pb2.Value, path: ErrorPath) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind in ("string_value", "bool_value", "number_value"):
        scalar: Scalar = getattr(value, kind)
        return scalar
    raise InvalidInputError(f"must be a string, number, boolean or null, got {kind or 'nothing'}", path=path)
