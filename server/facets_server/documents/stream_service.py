"""The protocol of UpsertStream: open, batches, durable acknowledgements, resume.

While one batch is being stored the next ones are already being encoded. A batch is acknowledged once its documents, and
then its sequence number, are durable, so a client may discard acknowledged batches.
"""

from collections.abc import Iterator
from functools import partial

from facets_proto.codec import to_message
from facets_proto.v1 import documents_pb2 as pb

from facets.documents.collections import Collections
from facets.documents.ingest import PreparedBatch, StoredBatch
from facets.errors import InvalidInputError
from facets_server.documents.requests import documents_of, encoder_of
from facets_server.documents.stream_store import StreamStore
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import SequenceGapError, status_of
from facets_server.runtime.messages import read_ahead
from facets_server.runtime.requests import check_count
from facets_server.texts.served import PendingTexts

_Begun = tuple[int, PreparedBatch | None]  # sequence number, and the batch unless it was stored before


def upsert_stream(
    requests: Iterator[pb.UpsertStreamRequest],
    call: CallContext,
    collections: Collections,
    streams: StreamStore,
    *,
    admission: Admission,
    limits: LimitsConfig,
) -> Iterator[pb.UpsertStreamResponse]:
    """Answers one stream, the opening request, then batches; ``collections`` are those of the call."""
    first = next(requests, None)
    if first is None or first.WhichOneof("message") != "open":
        raise InvalidInputError("must be the first message of the stream, got another message or none", path="open")
    opening = first.open
    ingest = collections.ingest(opening.collection, encoded_by=encoder_of(opening))
    created = ingest.record.create_time.isoformat()
    place = {"collection": opening.collection, "collection_created": created}
    stream = streams.resume(opening.resume_token, **place) if opening.resume_token else streams.begin(**place)
    yield pb.UpsertStreamResponse(
        opened=pb.UpsertStreamOpened(
            resume_token=stream.token,
            last_acked_sequence=stream.last_sequence,
            max_unacked_batches=admission.config.max_stream_window,
        )
    )
    expected = stream.last_sequence + 1

    def begin(request: pb.UpsertStreamRequest) -> _Begun:
        """Checks a batch on arrival and hands its texts to the model."""
        nonlocal expected
        if request.WhichOneof("message") != "batch":
            raise InvalidInputError("must be each request of the stream after open", path="batch")
        batch = request.batch
        if 1 <= batch.sequence <= stream.last_sequence:
            return batch.sequence, None
        if batch.sequence != expected:
            raise SequenceGapError(f"batch.sequence must be {expected}, got {batch.sequence}")
        check_count(batch.documents, ("batch", "documents"), limits.max_documents_per_upsert)
        with admission.stream_permit(call.for_message()) as permit:
            prepared = ingest.reader.prepare(documents_of(batch.documents))
            if isinstance(prepared.pending, PendingTexts):
                prepared.pending.rows.when_ended(permit.pop_all().close)
        call.num_items += len(batch.documents)
        expected += 1
        return batch.sequence, prepared

    for sequence, batch in read_ahead(requests, begin, admission):
        if batch is None:
            stored = StoredBatch(0, (), collections.engine.revision)
        else:
            stored = ingest.store_good(batch, check=partial(streams.check, stream))
            streams.advance(stream, sequence)
        rejected = [
            to_message(rejection, pb.RejectedDocument, error=status_of(rejection.error))
            for rejection in stored.rejected_documents
        ]
        ack = to_message(
            stored, pb.UpsertStreamAck, sequence=sequence, rejected_documents=rejected, already_stored=batch is None
        )
        yield pb.UpsertStreamResponse(ack=ack)
