"""Documents and queries as messages; replies about collections, documents and search."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Literal, get_args

import numpy as np
from facets_proto.v1 import common_pb2, documents_pb2
from numpy.typing import NDArray

from facets_client.core.arrays import from_array, to_array
from facets_client.core.channel import error_info, status_code
from facets_client.core.convert import to_matches, to_model_version, to_span, total_timings
from facets_client.core.results import Span
from facets_client.core.values import check_text, from_payload, to_payload
from facets_client.documents import results
from facets_client.texts.convert import to_token_stats

SearchMode = Literal["hybrid", "facets", "lexical"]
BATCH_BYTES = 2**20  # of one batch of a stream: its acknowledgement takes the model no more than a minute
DocumentMessage = documents_pb2.Document  # a document on the wire


def to_collection(message: documents_pb2.Collection) -> results.Collection:
    """What the server knows about a collection."""
    made = message.create_time.ToDatetime(tzinfo=UTC) if message.HasField("create_time") else None
    return results.Collection(
        name=message.name,
        model=message.model,
        model_revision=message.model_revision,
        num_facets=message.num_facets,
        dim=message.dim,
        num_documents=message.num_documents,
        num_damaged=message.num_damaged,
        index_revision=message.index_revision,
        create_time=made,
        index_kind=message.index_kind,
        space=message.space,
        num_vectors=message.num_vectors,
        snapshot_bytes=message.snapshot_bytes,
    )


def to_progress(message: documents_pb2.ReindexCollectionResponse) -> results.ReindexProgress:
    """How far a collection has moved to another model."""
    return results.ReindexProgress(message.num_encoded, message.done, to_collection(message.collection))


def from_document(document: results.Document) -> documents_pb2.Document:
    """A document as a message.

    Raises:
        ValueError: When its payload cannot be carried without loss, or a text is no Unicode.
    """
    check_text(document.id)
    check_text(document.text)
    message = documents_pb2.Document(id=document.id, text=document.text)
    if document.payload:
        message.payload.CopyFrom(from_payload(document.payload))
    if document.facet_embeddings is not None:
        message.facet_embeddings.CopyFrom(from_array(document.facet_embeddings))
    message.facet_spans.extend(map(_from_span, document.facet_spans))
    return message


def _from_span(span: Span | None) -> common_pb2.Span:
    return common_pb2.Span() if span is None else common_pb2.Span(start=span.start, end=span.end)


def to_document(message: documents_pb2.Document) -> results.Document:
    """A stored document, with its facets when the reply has them."""
    has_facets = message.HasField("facet_embeddings")
    return results.Document(
        id=message.id,
        text=message.text,
        payload=to_payload(message.payload),
        facet_embeddings=to_array(message.facet_embeddings) if has_facets else None,
        revision=message.revision,
        token_stats=to_token_stats(message.token_stats) if message.HasField("token_stats") else None,
        facet_spans=tuple(map(to_span, message.facet_spans)),
    )


def to_written(parts: Sequence[documents_pb2.UpsertResponse]) -> results.WriteResult:
    """The replies to the parts of a call as one result; places count over all of them."""
    truncated: list[results.TruncatedDocument] = []
    num_stored = 0
    for part in parts:
        found = _to_truncated(part.truncated_documents)
        truncated += (replace(item, position=num_stored + item.position) for item in found)
        num_stored += part.num_upserted
    return results.WriteResult(num_stored, parts[-1].index_revision, tuple(truncated))


def _to_truncated(messages: Iterable[common_pb2.TruncatedDocument]) -> tuple[results.TruncatedDocument, ...]:
    return tuple(results.TruncatedDocument(m.position, m.id, to_token_stats(m.token_stats)) for m in messages)


def stream_open(collection: str, resume_token: str) -> documents_pb2.UpsertStreamRequest:
    """First request of an upsert stream; an empty token starts a new one."""
    opening = documents_pb2.UpsertStreamOpen(collection=collection, resume_token=resume_token)
    return documents_pb2.UpsertStreamRequest(open=opening)


def stream_batch(sequence: int, documents: Sequence[documents_pb2.Document]) -> documents_pb2.UpsertStreamRequest:
    """One numbered batch of an upsert stream."""
    batch = documents_pb2.UpsertStreamBatch(sequence=sequence, documents=documents)
    return documents_pb2.UpsertStreamRequest(batch=batch)


def to_ack(message: documents_pb2.UpsertStreamAck, resume_token: str) -> results.StreamAck:
    """The server's word that a batch is durable."""
    return results.StreamAck(
        sequence=message.sequence,
        num_upserted=message.num_upserted,
        rejected=tuple(_to_rejected(item) for item in message.rejected_documents),
        index_revision=message.index_revision,
        already_stored=message.already_stored,
        resume_token=resume_token,
        truncated=_to_truncated(message.truncated_documents),
    )


def _to_rejected(message: documents_pb2.RejectedDocument) -> results.RejectedDocument:
    return results.RejectedDocument(
        position=message.position,
        id=message.id,
        code=status_code(message.error.code).name,
        reason=error_info(message.error.details).reason,
        message=message.error.message,
    )


def to_found(parts: Sequence[documents_pb2.GetDocumentsResponse]) -> results.FoundDocuments:
    """The replies to the parts of a call as one result, in the order of the ids."""
    return results.FoundDocuments(
        documents=tuple(to_document(item) for part in parts for item in part.documents),
        missing_ids=tuple(item for part in parts for item in part.missing_ids),
        index_revision=parts[-1].index_revision,
    )


def from_mode(mode: SearchMode) -> str:
    """Name of a mode in the proto.

    Raises:
        ValueError: There is none of that name.
    """
    if mode not in get_args(SearchMode):
        raise ValueError(f"mode must be one of {', '.join(get_args(SearchMode))}, got {mode!r}")
    return f"SEARCH_MODE_{mode.upper()}"


def from_query(query: str | NDArray[np.floating]) -> documents_pb2.SearchQuery:
    """A query, as a text or as a facet array ``[facets, dim]``."""
    if isinstance(query, str):
        return documents_pb2.SearchQuery(text=query)
    return documents_pb2.SearchQuery(facet_embeddings=from_array(query))


def to_search_results(parts: Sequence[documents_pb2.SearchResponse]) -> results.SearchResults:
    """The replies to the parts of a call as one result, in the order of the queries."""
    return results.SearchResults(
        hits=tuple(tuple(_to_hit(hit) for hit in result.hits) for part in parts for result in part.results),
        index_revision=parts[-1].index_revision,
        exhaustive=all(part.exhaustive for part in parts),
        index_kind=parts[-1].index_kind,
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def _to_hit(hit: documents_pb2.SearchHit) -> results.SearchHit:
    return results.SearchHit(
        id=hit.id,
        score=hit.score,
        text=hit.text,
        payload=to_payload(hit.payload),
        evidence=to_matches(hit.evidence),
        revision=hit.revision,
        facets_score=hit.facets_score,
        lexical_score=hit.lexical_score,
        matched_words=tuple(hit.matched_words),
        answer=to_span(hit.answer),
        confidence=hit.confidence if hit.HasField("confidence") else None,
        matched_spans=tuple(Span(span.start, span.end) for span in hit.matched_spans),
    )
