"""Hits and acknowledgements as replies, where these are not records of the library."""

from dataclasses import replace

from facets_proto.codec import to_message
from facets_proto.v1 import documents_pb2 as pb

from facets.documents import CollectionInfo, SearchHit
from facets_server.documents.ingest import Rejection, StoredBatch
from facets_server.documents.requests import DocumentQuery
from facets_server.documents.searching import Found
from facets_server.documents.stream_store import OpenStream
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import status_of


def collection_to_message(info: CollectionInfo, revision: int) -> pb.Collection:
    """A collection, as of a revision of the data directory."""
    return to_message(info, pb.Collection, index_revision=revision)


def opened_to_message(stream: OpenStream, window: int) -> pb.UpsertStreamResponse:
    """The reply that opens an ingest stream."""
    return pb.UpsertStreamResponse(
        opened=pb.UpsertStreamOpened(
            resume_token=stream.token, last_acked_sequence=stream.last_sequence, max_unacked_batches=window
        )
    )


def ack_to_message(sequence: int, stored: StoredBatch, already_stored: bool) -> pb.UpsertStreamResponse:
    """The acknowledgement of a durable batch."""
    ack = to_message(
        stored,
        pb.UpsertStreamAck,
        sequence=sequence,
        rejected_documents=[_rejected(rejection) for rejection in stored.rejected_documents],
        already_stored=already_stored,
    )
    return pb.UpsertStreamResponse(ack=ack)


def _rejected(rejection: Rejection) -> pb.RejectedDocument:
    return to_message(rejection, pb.RejectedDocument, error=status_of(rejection.error))


def hits_to_message(found: Found, request: DocumentQuery, call: CallContext) -> pb.SearchResponse:
    """What was found, with what the request asks for."""
    call.num_items = len(found.hits)
    results = found.hits
    if not request.include_document:
        results = tuple(tuple(map(_without_document, hits)) for hits in found.hits)
    return to_message(found, pb.SearchResponse, results=results, model=found.model, timings=call)


def _without_document(hit: SearchHit) -> SearchHit:
    return replace(hit, text="", payload=None)
