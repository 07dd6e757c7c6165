"""Searches and hits."""

from facets_proto.v1 import common_pb2, documents_pb2

from facets.documents import Hit
from facets.errors import InvalidInputError
from facets_server.documents.document_messages import payload_to_proto
from facets_server.documents.filters import filter_from_proto
from facets_server.documents.searching import Evidence, Found, SearchQuery
from facets_server.runtime.arrays import array_from_proto
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.checks import check_count, check_number, check_texts
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.replies import nearest_to_proto, num_words_of, timings_to_proto, version_to_proto

__all__ = ["hits_to_proto", "search_from_proto"]

_DEFAULT_TOP_K = 10


def search_from_proto(request: documents_pb2.SearchRequest, limits: LimitsConfig) -> SearchQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.queries, ("queries",), limits.max_queries_per_search)
    texts = [(("queries", i, "text"), q.text) for i, q in enumerate(request.queries) if q.WhichOneof("query") == "text"]
    check_texts(texts, max_bytes=limits.max_text_bytes)
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
    return SearchQuery(
        collection=request.collection,
        queries=tuple(queries),
        top_k=top_k,
        filter=filter_from_proto(request.filter) if request.HasField("filter") else None,
        exact=request.exact,
        min_revision=request.min_revision or None,
        num_words=num_words if request.evidence else 0,
        include_document=request.include_document if request.HasField("include_document") else True,
    )


def hits_to_proto(found: Found, query: SearchQuery, call: CallContext) -> documents_pb2.SearchResponse:
    """What was found, with what the query asks for."""
    evidence = found.evidence if query.num_words else [[None] * len(hits) for hits in found.hits]
    call.num_items = len(found.hits)
    return documents_pb2.SearchResponse(
        results=[
            documents_pb2.SearchResult(
                hits=[_hit(*pair, include=query.include_document) for pair in zip(hits, why, strict=True)]
            )
            for hits, why in zip(found.hits, evidence, strict=True)
        ],
        index_revision=found.index_revision,
        exhaustive=found.exhaustive,
        model=version_to_proto(found.model),
        timings=timings_to_proto(call),
        index_kind=found.index_kind,
    )


def _hit(hit: Hit, evidence: Evidence | None, *, include: bool) -> documents_pb2.SearchHit:
    return documents_pb2.SearchHit(
        id=hit.id,
        score=hit.score,
        text=hit.text if include else "",
        payload=payload_to_proto(hit.payload) if include else None,
        evidence=[] if evidence is None else [_match(hit, evidence)],
        revision=hit.revision,
    )


def _match(hit: Hit, evidence: Evidence) -> common_pb2.FacetMatch:
    return common_pb2.FacetMatch(
        first_facet=hit.query_facet,
        second_facet=hit.document_facet,
        cosine=hit.score,
        contribution=1.0,
        first_words=nearest_to_proto(evidence.query_words),
        second_words=nearest_to_proto(evidence.document_words),
    )
