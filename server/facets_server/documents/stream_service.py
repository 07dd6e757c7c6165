"""The protocol of UpsertStream: open, batches, durable acknowledgements, resume.

While one batch is being stored the next ones are already being encoded. A batch is acknowledged after its
documents and then its sequence number are durable, so that a client may forget what was acknowledged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from facets_proto.v1 import documents_pb2 as pb

from facets.documents import CollectionEngine
from facets.errors import InvalidInputError
from facets_server.documents.ingest import Ingest, PreparedBatch, StoredBatch, open_ingest
from facets_server.documents.replies import ack_to_message, opened_to_message
from facets_server.documents.requests import incoming_of
from facets_server.documents.stream_store import OpenStream, StreamStore
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import SequenceGapError
from facets_server.runtime.limits import LimitsConfig, check_count
from facets_server.runtime.messages import read_ahead
from facets_server.texts.served import TextModels


@dataclass(frozen=True, slots=True)
class _Begun:
    sequence: int
    batch: PreparedBatch | None  # None: stored before


class IngestStream:
    """Runs UpsertStream calls."""

    def __init__(
        self,
        models: TextModels,
        engine: CollectionEngine,
        *,
        streams: StreamStore,
        admission: Admission,
        limits: LimitsConfig,
        window: int,
    ) -> None:
        self._models = models
        self._engine = engine
        self._streams = streams
        self._admission = admission
        self._limits = limits
        self._window = window

    def run(self, requests: Iterator[pb.UpsertStreamRequest], call: CallContext) -> Iterator[pb.UpsertStreamResponse]:
        """Answers one stream.

        Args:
            requests: The opening request, then batches.
            call: The whole stream.

        Raises:
            InvalidInputError: The first request does not open the stream, or a later one is no batch.
            NotFoundError: No such collection, model or resume token.
            SequenceGapError: A batch is missing.
            ConflictError: The stream was opened again elsewhere.
        """
        opening = next(requests, None)
        if opening is None or opening.WhichOneof("message") != "open":
            raise InvalidInputError("must be the first request of the stream, got another", path="open")
        ingest = open_ingest(
            self._engine,
            self._models,
            opening.open.collection,
            max_text_bytes=self._limits.max_document_bytes,
            encoded_by=(opening.open.encoded_by.name, opening.open.encoded_by.revision),
        )
        stream = self._open(opening.open)
        yield opened_to_message(stream, self._window)
        begin = _Beginner(ingest, stream, admission=self._admission, limits=self._limits, call=call)
        size = pb.UpsertStreamRequest.ByteSize
        for begun in read_ahead(requests, begin, window=self._window, num_bytes=size, admission=self._admission):
            stored = None
            if begun.batch is not None:
                stored = ingest.store_good(begun.batch, check=partial(self._streams.check, stream))
                self._streams.advance(stream, begun.sequence)
            yield ack_to_message(begun.sequence, stored or StoredBatch(0, (), self._engine.revision), stored is None)

    def _open(self, message: pb.UpsertStreamOpen) -> OpenStream:
        created = self._engine.record(message.collection).created.isoformat()
        if message.resume_token:
            return self._streams.resume(message.resume_token, collection=message.collection, collection_created=created)
        return self._streams.begin(collection=message.collection, collection_created=created)


class _Beginner:
    """Checks the batches of one stream as they arrive and hands their texts to the model."""

    def __init__(
        self, ingest: Ingest, stream: OpenStream, *, admission: Admission, limits: LimitsConfig, call: CallContext
    ) -> None:
        self._ingest = ingest
        self._stored = stream.last_sequence
        self._expected = stream.last_sequence + 1
        self._admission = admission
        self._limits = limits
        self._call = call

    def __call__(self, request: pb.UpsertStreamRequest) -> _Begun:
        """Begins the work on one batch."""
        if request.WhichOneof("message") != "batch":
            raise InvalidInputError("must be each request of the stream after open", path="batch")
        batch = request.batch
        if 1 <= batch.sequence <= self._stored:
            return _Begun(batch.sequence, None)
        if batch.sequence != self._expected:
            raise SequenceGapError(f"batch.sequence must be {self._expected}, got {batch.sequence}")
        check_count(batch.documents, ("batch", "documents"), self._limits.max_documents_per_upsert)
        permit = self._admission.permit(self._call.for_message(), may_refuse=False)
        try:
            prepared = self._ingest.prepare(incoming_of(batch.documents), self._call.for_message())
        except BaseException:
            permit.release()
            raise
        if prepared.pending is None:
            permit.release()
        else:
            prepared.pending.rows.when_ended(permit.release)
        self._call.num_items += len(batch.documents)
        self._expected += 1
        return _Begun(batch.sequence, prepared)
