"""The protocol of UpsertStream: open, batches, durable acknowledgements, resume.

While one batch is being stored the next ones are already being encoded. A batch is acknowledged once its documents, and
then its sequence number, are durable, so a client may discard acknowledged batches.
"""

from collections.abc import Callable, Iterator
from functools import partial

from facets_proto.codec import to_message
from facets_proto.v1 import documents_pb2 as pb

from facets.errors import InvalidInputError
from facets_server.documents.ingest import Ingest, PreparedBatch, StoredBatch
from facets_server.documents.requests import incoming_of
from facets_server.documents.stream_store import OpenStream, StreamStore
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import SequenceGapError, status_of
from facets_server.runtime.messages import read_ahead
from facets_server.runtime.requests import check_count
from facets_server.runtime.rooms import ServerParts
from facets_server.texts.served import TextModels

_Begun = tuple[int, PreparedBatch | None]  # sequence number, and the batch unless it was stored before


class IngestStream:
    """Runs UpsertStream calls."""

    def __init__(self, models: TextModels, parts: ServerParts, streams: StreamStore) -> None:
        self._models = models
        self._engine = parts.engine
        self._admission = parts.admission
        self._limits = parts.config.limits
        self._streams = streams

    def run(self, requests: Iterator[pb.UpsertStreamRequest], call: CallContext) -> Iterator[pb.UpsertStreamResponse]:
        """Answers one stream: the opening request, then batches.

        Raises:
            InvalidInputError: The first request does not open the stream, or a later one is not a batch.
            NotFoundError: The collection, its model or the resume token is unknown.
            SequenceGapError: A batch is missing.
            ConflictError: The stream was opened again elsewhere.
        """
        first = next(requests, None)
        if first is None or first.WhichOneof("message") != "open":
            raise InvalidInputError("must be the first request of the stream, got another", path="open")
        opening = first.open
        ingest = Ingest(
            self._engine,
            self._models,
            opening.collection,
            max_text_bytes=self._limits.max_document_bytes,
            encoded_by=(opening.encoded_by.name, opening.encoded_by.revision),
        )
        stream = self._open(opening)
        yield pb.UpsertStreamResponse(
            opened=pb.UpsertStreamOpened(
                resume_token=stream.token,
                last_acked_sequence=stream.last_sequence,
                max_unacked_batches=self._admission.config.max_stream_window,
            )
        )
        begin = self._beginner(ingest, stream.last_sequence, call)
        for sequence, batch in read_ahead(requests, begin, self._admission):
            if batch is None:
                stored = StoredBatch(0, (), self._engine.revision)
            else:
                stored = ingest.store_good(batch, check=partial(self._streams.check, stream))
                self._streams.advance(stream, sequence)
            yield _acknowledgement(sequence, stored, already_stored=batch is None)

    def _open(self, message: pb.UpsertStreamOpen) -> OpenStream:
        created = self._engine.record(message.collection).create_time.isoformat()
        if message.resume_token:
            return self._streams.resume(message.resume_token, collection=message.collection, collection_created=created)
        return self._streams.begin(collection=message.collection, collection_created=created)

    def _beginner(
        self, ingest: Ingest, num_stored: int, call: CallContext
    ) -> Callable[[pb.UpsertStreamRequest], _Begun]:
        """A function that checks each batch on arrival and hands its texts to the model."""
        expected = num_stored + 1

        def begin(request: pb.UpsertStreamRequest) -> _Begun:
            nonlocal expected
            if request.WhichOneof("message") != "batch":
                raise InvalidInputError("must be each request of the stream after open", path="batch")
            batch = request.batch
            if 1 <= batch.sequence <= num_stored:
                return batch.sequence, None
            if batch.sequence != expected:
                raise SequenceGapError(f"batch.sequence must be {expected}, got {batch.sequence}")
            check_count(batch.documents, ("batch", "documents"), self._limits.max_documents_per_upsert)
            permit = self._admission.stream_permit(call.for_message())
            try:
                prepared = ingest.prepare(incoming_of(batch.documents), call.for_message())
            except BaseException:
                permit.close()
                raise
            if prepared.pending is None:
                permit.close()
            else:
                prepared.pending.rows.when_ended(permit.close)
            call.num_items += len(batch.documents)
            expected += 1
            return batch.sequence, prepared

        return begin


def _acknowledgement(sequence: int, stored: StoredBatch, *, already_stored: bool) -> pb.UpsertStreamResponse:
    rejected = [
        to_message(rejection, pb.RejectedDocument, error=status_of(rejection.error))
        for rejection in stored.rejected_documents
    ]
    ack = to_message(
        stored, pb.UpsertStreamAck, sequence=sequence, rejected_documents=rejected, already_stored=already_stored
    )
    return pb.UpsertStreamResponse(ack=ack)
