"""Requests about documents: what is to be stored, and searches."""

import math
from collections.abc import Sequence

import numpy as np
from facets_proto.v1 import documents_pb2
from google.protobuf import struct_pb2

from facets.documents import JsonValue, SearchMode
from facets.errors import ErrorPath, InvalidInputError
from facets_server.documents.filter_requests import filter_from_proto
from facets_server.documents.ingest import IncomingDocument
from facets_server.documents.searching import SearchQuery
from facets_server.runtime.arrays import array_from_proto
from facets_server.runtime.limits import LimitsConfig, check_count, check_number, check_texts
from facets_server.runtime.replies import num_words_of

__all__ = ["incoming_from_proto", "payload_from_proto", "search_from_proto"]


def payload_from_proto(message: struct_pb2.Struct, path: ErrorPath) -> dict[str, JsonValue]:
    """A payload as a JSON object; whole numbers become integers.

    Raises:
        InvalidInputError: A number is not finite.
    """
    return {name: _json(value, (*path, name)) for name, value in message.fields.items()}


def _json(value: struct_pb2.Value, path: ErrorPath) -> JsonValue:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        if not math.isfinite(number):
            raise InvalidInputError(f"must be a finite number, got {number}", path=path)
        return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return payload_from_proto(value.struct_value, path)
    if kind == "list_value":
        return [_json(entry, (*path, i)) for i, entry in enumerate(value.list_value.values)]
    return None


def incoming_from_proto(messages: Sequence[documents_pb2.Document]) -> list[IncomingDocument]:
    """Documents as sent; what cannot be converted is reported in ``problem`` and does not stop the others."""
    return [_incoming(message, ("documents", i)) for i, message in enumerate(messages)]


def _incoming(message: documents_pb2.Document, path: ErrorPath) -> IncomingDocument:
    try:
        facets = None
        if message.HasField("facet_embeddings"):
            facets = array_from_proto(message.facet_embeddings, (*path, "facet_embeddings"), num_axes=2)
        payload = payload_from_proto(message.payload, (*path, "payload"))
    except InvalidInputError as error:
        return IncomingDocument(id=message.id, text=message.text, problem=error)
    spans = [(span.start, span.end) for span in message.facet_spans]
    return IncomingDocument(
        id=message.id,
        text=message.text,
        payload=payload,
        facets=facets,
        spans=np.array(spans, dtype=np.int64) if spans else None,
    )


_DEFAULT_TOP_K = 10
_MODES: dict[int, SearchMode] = {
    documents_pb2.SEARCH_MODE_UNSPECIFIED: "hybrid",
    documents_pb2.SEARCH_MODE_HYBRID: "hybrid",
    documents_pb2.SEARCH_MODE_FACETS: "facets",
    documents_pb2.SEARCH_MODE_LEXICAL: "lexical",
}


def search_from_proto(request: documents_pb2.SearchRequest, limits: LimitsConfig) -> SearchQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.queries, ("queries",), limits.max_queries_per_search)
    texts = [(("queries", i, "text"), q.text) for i, q in enumerate(request.queries) if q.WhichOneof("query") == "text"]
    check_texts(texts, max_bytes=limits.max_document_bytes)
    queries = []
    for i, query in enumerate(request.queries):
        kind = query.WhichOneof("query")
        if kind is None:
            raise InvalidInputError("has no text and no facet_embeddings", path=("queries", i))
        field = ("queries", i, "facet_embeddings")
        queries.append(query.text if kind == "text" else array_from_proto(query.facet_embeddings, field, num_axes=2))
    top_k = request.top_k if request.HasField("top_k") else min(_DEFAULT_TOP_K, limits.max_top_k)
    check_number(top_k, ("top_k",), limits.max_top_k)
    if request.evidence and top_k * len(queries) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x queries with evidence is {top_k * len(queries)}, the limit is {limits.max_evidence_hits}",
            path="top_k",
        )
    num_words = num_words_of(request, limits)
    if request.mode not in _MODES:
        raise InvalidInputError(f"must be one of the values of SearchMode, got {request.mode}", path="mode")
    for share in ("min_confidence", "diversify"):
        if not 0 <= getattr(request, share) <= 1:
            raise InvalidInputError(f"must be in [0, 1], got {getattr(request, share):g}", path=share)
    return SearchQuery(
        collection=request.collection,
        queries=tuple(queries),
        top_k=top_k,
        filter=filter_from_proto(request.filter) if request.HasField("filter") else None,
        exact=request.exact,
        mode=_MODES[request.mode],
        model=request.model,
        min_confidence=request.min_confidence,
        diversify=request.diversify,
        min_revision=request.min_revision or None,
        num_words=num_words if request.evidence else 0,
        include_document=request.include_document if request.HasField("include_document") else True,
    )
