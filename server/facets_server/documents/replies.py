"""Collections, documents, hits and acknowledgements as replies."""

from collections.abc import Sequence

from facets_proto.v1 import common_pb2, documents_pb2
from google.protobuf import json_format, struct_pb2, timestamp_pb2

from facets.documents import CollectionInfo, DocumentPage, GetResult, Hit, JsonValue, Span, StoredDocument
from facets.model.contract import ModelInfo
from facets_server.documents.ingest import StoredBatch, Truncated
from facets_server.documents.searching import Evidence, Found, SearchQuery
from facets_server.documents.stream_store import OpenStream
from facets_server.runtime.arrays import array_to_proto
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import status_of
from facets_server.runtime.limits import Page
from facets_server.runtime.replies import nearest_to_proto, spans_to_proto, timings_to_proto, version_to_proto

__all__ = [
    "ack_to_proto",
    "collection_to_proto",
    "collections_to_proto",
    "document_to_proto",
    "found_to_proto",
    "hits_to_proto",
    "opened_to_proto",
    "page_to_proto",
    "payload_to_proto",
    "upserted_to_proto",
]


def payload_to_proto(payload: dict[str, JsonValue]) -> struct_pb2.Struct:
    """A JSON object as a message."""
    message = struct_pb2.Struct()
    json_format.ParseDict(payload, message)
    return message


def document_to_proto(document: StoredDocument) -> documents_pb2.Document:
    """A stored document; with its facets when they were read."""
    facets = document.facet_embeddings
    return documents_pb2.Document(
        id=document.id,
        text=document.text,
        payload=payload_to_proto(document.payload),
        facet_embeddings=None if facets is None else array_to_proto(facets),
        revision=document.revision,
        token_stats=_reading(document.num_read, document.num_tokens),
        facet_spans=spans_to_proto(document.spans),
    )


def _reading(num_read: int | None, num_tokens: int | None) -> common_pb2.TokenStats | None:
    if num_read is None or num_tokens is None:
        return None
    return common_pb2.TokenStats(num_tokens=num_read, num_tokens_in_text=num_tokens, truncated=num_read < num_tokens)


def collection_to_proto(info: CollectionInfo, revision: int) -> documents_pb2.Collection:
    """A collection, as of a revision of the data directory."""
    created = timestamp_pb2.Timestamp()
    created.FromDatetime(info.created)
    return documents_pb2.Collection(
        name=info.name,
        model=info.model,
        model_revision=info.model_revision,
        num_facets=info.num_facets,
        dim=info.dim,
        num_documents=info.num_documents,
        num_damaged=info.num_damaged,
        index_revision=revision,
        create_time=created,
        index_kind=info.index_kind,
        space=info.space,
        num_vectors=info.num_vectors,
        snapshot_bytes=info.snapshot_bytes,
    )


def collections_to_proto(page: Page[CollectionInfo], revision: int) -> documents_pb2.ListCollectionsResponse:
    """One page of the collections."""
    return documents_pb2.ListCollectionsResponse(
        collections=[collection_to_proto(info, revision) for info in page.items], next_page_token=page.next_token
    )


def found_to_proto(result: GetResult) -> documents_pb2.GetDocumentsResponse:
    """Documents that were asked for by id."""
    return documents_pb2.GetDocumentsResponse(
        documents=[document_to_proto(document) for document in result.documents],
        missing_ids=result.missing,
        index_revision=result.index_revision,
    )


def page_to_proto(page: DocumentPage) -> documents_pb2.ListDocumentsResponse:
    """One page of the documents."""
    return documents_pb2.ListDocumentsResponse(
        documents=[document_to_proto(document) for document in page.documents],
        next_page_token=page.next_page_token,
        index_revision=page.index_revision,
    )


def upserted_to_proto(stored: StoredBatch, model: ModelInfo, call: CallContext) -> documents_pb2.UpsertResponse:
    """The reply to a stored call."""
    return documents_pb2.UpsertResponse(
        num_upserted=stored.num_stored,
        index_revision=stored.revision,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
        truncated_documents=_truncated(stored.truncated),
    )


def _truncated(documents: Sequence[Truncated]) -> list[common_pb2.TruncatedDocument]:
    return [
        common_pb2.TruncatedDocument(
            position=one.position, id=one.id, token_stats=_reading(one.stats.num_tokens, one.stats.num_tokens_in_text)
        )
        for one in documents
    ]


def opened_to_proto(stream: OpenStream, window: int) -> documents_pb2.UpsertStreamResponse:
    """The reply that opens an ingest stream."""
    return documents_pb2.UpsertStreamResponse(
        opened=documents_pb2.UpsertStreamOpened(
            resume_token=stream.token,
            last_acked_sequence=stream.last_sequence,
            max_unacked_batches=window,
        )
    )


def ack_to_proto(sequence: int, stored: StoredBatch, already_stored: bool) -> documents_pb2.UpsertStreamResponse:
    """The acknowledgement of a durable batch."""
    return documents_pb2.UpsertStreamResponse(
        ack=documents_pb2.UpsertStreamAck(
            sequence=sequence,
            num_upserted=stored.num_stored,
            rejected_documents=[
                documents_pb2.RejectedDocument(
                    position=rejection.position, id=rejection.id, error=status_of(rejection.error)
                )
                for rejection in stored.rejections
            ],
            index_revision=stored.revision,
            already_stored=already_stored,
            truncated_documents=_truncated(stored.truncated),
        )
    )


def hits_to_proto(found: Found, query: SearchQuery, call: CallContext) -> documents_pb2.SearchResponse:
    """What was found, with what the query asks for."""
    call.num_items = len(found.hits)
    return documents_pb2.SearchResponse(
        results=[
            documents_pb2.SearchResult(
                hits=[_hit(*pair, include=query.include_document) for pair in zip(hits, why, strict=True)]
            )
            for hits, why in zip(found.hits, found.evidence, strict=True)
        ],
        index_revision=found.index_revision,
        exhaustive=found.exhaustive,
        model=version_to_proto(found.model),
        timings=timings_to_proto(call),
        index_kind=found.index_kind,
    )


def _hit(hit: Hit, evidence: Sequence[Evidence], *, include: bool) -> documents_pb2.SearchHit:
    answer = hit.answer
    return documents_pb2.SearchHit(
        id=hit.id,
        score=hit.score,
        text=hit.text if include else "",
        payload=payload_to_proto(hit.payload) if include else None,
        evidence=[_match(entry) for entry in evidence],
        revision=hit.revision,
        facets_score=hit.facets_score,
        lexical_score=hit.lexical_score,
        matched_words=hit.matched_words,
        answer=_span(answer),
        confidence=hit.confidence,
        matched_spans=[common_pb2.Span(start=start, end=end) for start, end in (answer.words if answer else ())],
    )


def _span(span: Span | None) -> common_pb2.Span | None:
    return None if span is None else common_pb2.Span(start=span.start, end=span.end)


def _match(evidence: Evidence) -> common_pb2.FacetMatch:
    return common_pb2.FacetMatch(
        first_facet=evidence.match.query_facet,
        second_facet=evidence.match.document_facet,
        cosine=evidence.match.cosine,
        contribution=evidence.match.contribution,
        first_words=nearest_to_proto(evidence.query_words),
        second_words=nearest_to_proto(evidence.document_words),
        second_span=_span(evidence.match.span),
    )
