"""Requests about documents: what is to be stored, filters on payloads, and searches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from facets_proto.v1 import documents_pb2 as pb
from facets_proto.v1 import filters_pb2, papers_pb2
from facets_proto.values import payload_from_message
from google.protobuf import struct_pb2
from numpy.typing import NDArray

from facets.documents import (
    AllOf,
    AnyOf,
    Contains,
    DocumentPart,
    Equals,
    Exists,
    Filter,
    NoneOf,
    OneOf,
    Range,
    SearchRequest,
)
from facets.documents.filters import Scalar
from facets.documents.parts import check_sections
from facets.errors import ErrorPath, InvalidInputError
from facets_server.documents.ingest import IncomingDocument
from facets_server.runtime.limits import LimitsConfig, check_count, check_number, check_texts
from facets_server.runtime.records import array_of, named, num_words_of, record_of, top_k_of

_DEEPEST = 32  # nested filters
_MOST = 256  # conditions in one filter


def incoming_of(messages: Sequence[pb.Document]) -> list[IncomingDocument]:
    """Documents as sent; what cannot be converted is reported in ``problem`` and does not stop the others."""
    return [_incoming(message, ("documents", i)) for i, message in enumerate(messages)]


def _incoming(message: pb.Document, path: ErrorPath) -> IncomingDocument:
    try:
        facets = None
        if message.HasField("facet_embeddings"):
            facets = array_of(message.facet_embeddings, (*path, "facet_embeddings"), num_axes=2)
        with named((*path, "payload")):
            payload = payload_from_message(message.payload)
        given = [record_of(part, DocumentPart, headings=tuple(part.headings)) for part in message.parts]
        sections = check_sections(message.text, given, (*path, "parts"))
        if message.part_facets and not (message.facet_spans and facets is not None):
            raise InvalidInputError("must come with facet_embeddings and facet_spans", path=(*path, "part_facets"))
    except InvalidInputError as error:
        return IncomingDocument(id=message.id, text=message.text, problem=error)
    has_read = message.HasField("token_stats")
    spans = [(span.start, span.end) for span in message.facet_spans]
    return IncomingDocument(
        id=message.id,
        text=message.text,
        payload=payload,
        facets=facets,
        spans=np.array(spans, dtype=np.int64) if spans else None,
        sections=sections,
        part_facets=tuple(message.part_facets),
        num_tokens=message.token_stats.num_tokens_in_text if facets is not None and has_read else None,
        num_read=message.token_stats.num_tokens if facets is not None and has_read else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentQuery(SearchRequest):
    """A search as the message asks for it; its facets are those of ``queries`` once these are encoded.

    Attributes:
        collection: Where to search.
        queries: Texts, or facets ``[facets, D]`` made by the caller.
        model: The model that encodes the texts; empty: the collection's.
        evidence: Say which facets met.
        num_words: Nearest words for each facet of the evidence.
        include_document: Whether hits carry text and payload.
    """

    collection: str
    queries: tuple[str | NDArray[np.float32], ...]
    model: str = ""
    evidence: bool = False
    num_words: int = 5
    include_document: bool = True


def search_of(message: pb.SearchRequest, limits: LimitsConfig) -> DocumentQuery:
    """A request as a checked record.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(message.queries, ("queries",), limits.max_queries_per_search)
    texts = [(("queries", i, "text"), q.text) for i, q in enumerate(message.queries) if q.WhichOneof("query") == "text"]
    check_texts(texts, max_bytes=limits.max_long_text_bytes)
    queries = tuple(_query(query, ("queries", i)) for i, query in enumerate(message.queries))
    top_k = top_k_of(message, ("top_k",), limits)
    if message.evidence and top_k * len(queries) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x queries with evidence is {top_k * len(queries)}, the limit is {limits.max_evidence_hits}", path="top_k"
        )
    num_words = num_words_of(message, limits)
    for share in ("min_confidence", "diversify"):
        if not 0 <= getattr(message, share) <= 1:
            raise InvalidInputError(f"must be in [0, 1], got {getattr(message, share):g}", path=share)
    return record_of(
        message, DocumentQuery, queries=queries, top_k=top_k, num_words=num_words, where=filter_of(message)
    )


def _query(message: pb.SearchQuery, path: ErrorPath) -> str | NDArray[np.float32]:
    kind = message.WhichOneof("query")
    if kind is None:
        raise InvalidInputError("has no text and no facet_embeddings", path=path)
    if kind == "text":
        return message.text
    return array_of(message.facet_embeddings, (*path, "facet_embeddings"), num_axes=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class RerankQuery(SearchRequest):
    """A request to rerank; its facets are those of the query once it is encoded.

    Attributes:
        query: What the texts shall answer.
        documents: The texts.
        model: The model that encodes both; empty: the default of collections.
    """

    query: str
    documents: Sequence[str]
    model: str = ""


def reranking_of(message: pb.RerankRequest, limits: LimitsConfig) -> RerankQuery:
    """A request as a checked record.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(message.texts, ("texts",), limits.max_texts_per_request)
    named = [(("query",), message.query), *((("texts", i), text) for i, text in enumerate(message.texts))]
    check_texts(named, max_bytes=limits.max_long_text_bytes)
    top_k = message.top_k if message.HasField("top_k") else len(message.texts)
    top_k = check_number(top_k, ("top_k",), len(message.texts))
    return record_of(message, RerankQuery, documents=list(message.texts), texts=[message.query], top_k=top_k)


def search_fields_of(request: pb.CreateCollectionRequest | pb.ReindexCollectionRequest) -> dict[str, float] | None:
    """The fields that a collection shall search, with what they weigh; None: the request does not say.

    Raises:
        InvalidInputError: A name is there twice; the engine checks the rest.
    """
    if not request.HasField("search_fields"):
        return None
    fields: dict[str, float] = {}
    for place, field in enumerate(request.search_fields.fields):
        if field.name in fields:
            path = ("search_fields", "fields", place, "name")
            raise InvalidInputError(f"is {field.name!r}, as an earlier one is: expected different names", path=path)
        fields[field.name] = field.weight
    return fields


def filter_of(
    request: pb.SearchRequest
    | pb.ListDocumentsRequest
    | pb.CountDocumentsRequest
    | pb.DeleteDocumentsRequest
    | papers_pb2.RankPapersRequest,
) -> Filter | None:
    """The filter of a request as the engine's; None: it has none.

    Raises:
        InvalidInputError: A condition is missing or incomplete, or the filter is too deep or too long.
    """
    return _Converter().convert(request.where, ("where",), 1) if request.HasField("where") else None


class _Converter:
    def __init__(self) -> None:
        self._num_conditions = 0

    def convert(self, message: filters_pb2.Filter, path: ErrorPath, depth: int) -> Filter:
        self._num_conditions += 1
        if depth > _DEEPEST or self._num_conditions > _MOST:
            raise InvalidInputError(
                f"is nested deeper than {_DEEPEST} or is one of more than {_MOST} conditions", path=path
            )
        kind = message.WhichOneof("condition")
        if kind == "field":
            return _field(message.field, (*path, "field"))
        if kind is None:
            raise InvalidInputError("has no condition, expected one", path=path)
        parts = [
            self.convert(part, (*path, kind, "filters", i), depth + 1)
            for i, part in enumerate(getattr(message, kind).filters)
        ]
        if kind == "all_of":
            return AllOf(parts)
        return AnyOf(parts) if kind == "any_of" else NoneOf(parts)


def _field(message: filters_pb2.FieldCondition, path: ErrorPath) -> Filter:
    key = message.field
    if not key:
        raise InvalidInputError("is empty, expected the name of a field", path=(*path, "field"))
    test = message.WhichOneof("test")
    if test == "equals":
        return Equals(key, _scalar(message.equals, (*path, "equals")))
    if test == "contains":
        return Contains(key, _scalar(message.contains, (*path, "contains")))
    if test == "one_of":
        values = [_scalar(v, (*path, "one_of", i)) for i, v in enumerate(message.one_of.values)]
        if not values:
            raise InvalidInputError("has 0 items, expected at least 1", path=(*path, "one_of"))
        return OneOf(key, values)
    if test == "exists":
        return Exists(key) if message.exists else NoneOf([Exists(key)])
    if test == "range":
        return _range(key, message.range, (*path, "range"))
    if test == "string_range":
        return _range(key, message.string_range, (*path, "string_range"))
    raise InvalidInputError("has no test, expected equals, one_of, range or another", path=path)


def _range(key: str, message: filters_pb2.NumberRange | filters_pb2.StringRange, path: ErrorPath) -> Range:
    bounds = {name: getattr(message, name) for name in ("gt", "gte", "lt", "lte") if message.HasField(name)}
    if not bounds:
        raise InvalidInputError("has no bound, expected at least one of gt, gte, lt, lte", path=path)
    return Range(field=key, **bounds)


def _scalar(value: struct_pb2.Value, path: ErrorPath) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        return value.number_value
    raise InvalidInputError(f"must be a string, number, boolean or null, got {kind or 'nothing'}", path=path)
