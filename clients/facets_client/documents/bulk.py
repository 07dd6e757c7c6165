"""Stores the documents of an input: a window of batches on a stream, each completed by its acknowledgement."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from facets_client.client import FacetsClient
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES
from facets_client.documents.files import FileRecord
from facets_client.documents.messages import BATCH_BYTES, DocumentMessage, from_document
from facets_client.generated.session import UpsertSession
from facets_client.generated.types import ModelVersion
from facets_client.load.rows import FileEnd, Record, Rejection
from facets_client.load.runner import Batch, BulkSettings, Settled, batches
from facets_client.load.state import Place

_DUPLICATE_WINDOW = 100_000  # ids remembered to find duplicates, in bounded memory
_FIRST_BATCH_BYTES = 16 * 1024
_SECONDS_PER_BATCH = 0.5


class IndexTask:
    """A task of the bulk runner: stores the documents of an input.

    Batches grow and shrink so that the server needs about half a second for each: Ctrl-C and the progress bar treat a
    batch as a unit.
    """

    def __init__(
        self,
        client: FacetsClient,
        read_documents: Callable[[Place], Iterator[FileRecord]],
        collection: str,
        *,
        settings: BulkSettings,
        encoded_by: ModelVersion | None = None,
    ) -> None:
        self._client = client
        self._open_stream = partial(client.open_upsert_session, collection, encoded_by=encoded_by)
        self._read_documents = read_documents
        self._settings = settings
        self._session: UpsertSession | None = None
        self._num_under_way = 0
        self._max_batch_bytes = _FIRST_BATCH_BYTES
        self._busy_since = 0.0  # when the server started on the oldest batch in flight
        self.index_revision = 0  # of everything stored; pass it as min_revision to search it

    def read(self, place: Place) -> Iterator[Batch[DocumentMessage]]:
        """The batches after a position, within the server's limits."""
        limits = self._client.model().limits
        max_bytes = min(limits.max_message_bytes or BATCH_BYTES, BATCH_BYTES)
        return batches(
            to_messages(self._read_documents(place), limits.max_message_bytes),
            self._settings,
            place,
            max_records=limits.max_documents_per_upsert,
            max_bytes=lambda: min(max_bytes, self._max_batch_bytes),
        )

    @property
    def max_under_way(self) -> int:
        """Maximum number of batches in flight, as the server allows."""
        return self._session.max_unacked_batches if self._session else 1

    def send(self, batch: Batch[DocumentMessage]) -> None:
        """Sends a batch on the stream, which is opened if needed."""
        self._session = self._session or self._open_stream()
        if not self._num_under_way:
            self._busy_since = time.monotonic()
        self._session.send([record.item for record in batch.records])
        self._num_under_way += 1

    def settle(self, batch: Batch[DocumentMessage]) -> Settled:
        """Waits for the acknowledgement of the oldest batch."""
        assert self._session is not None
        ack = self._session.receive_ack()
        self._num_under_way -= 1
        self._adapt_batch_size(batch.num_bytes)
        self.index_revision = ack.index_revision
        rejections = [
            batch.records[item.position].rejected(item.reason.lower() or item.code.lower(), item.message)
            for item in ack.rejected
        ]
        return Settled(rejections, {"num_truncated": len(ack.truncated)})

    def abandon(self) -> None:
        """Closes the stream. Batches in flight are sent again: storing a document again changes nothing."""
        self._num_under_way = 0
        if self._session:
            self._session.close()
            self._session = None

    def finish(self) -> None:
        """Ends the stream normally."""
        if self._session:
            self._session.finish()

    def _adapt_batch_size(self, num_bytes: int) -> None:
        now = time.monotonic()
        duration_s, self._busy_since = now - self._busy_since, now
        if duration_s > _SECONDS_PER_BATCH:
            self._max_batch_bytes = max(1, int(num_bytes * _SECONDS_PER_BATCH / duration_s))
        elif 2 * num_bytes > self._max_batch_bytes:  # a full batch, not the end of the input
            self._max_batch_bytes *= 2


def to_messages(
    records: Iterable[FileRecord], max_message_bytes: int = 0
) -> Iterator[Record[DocumentMessage] | Rejection | FileEnd]:
    """Documents as messages. Rejects unsendable documents, and an id that repeats within 100,000 records.

    A batch must not hold an id twice, and an id that repeats at a short distance is a mistake in the input. Farther
    apart, the later document replaces the earlier one.
    """
    seen: dict[str, str] = {}  # id -> its position in the input
    for record in records:
        if not isinstance(record, Record):
            yield record
            continue
        if record.id in seen:
            yield record.rejected("duplicate_id", f"duplicate of the id at {seen[record.id]}")
            continue
        try:
            message = from_document(record.item)
        except (TypeError, ValueError) as error:
            yield record.rejected("invalid_document", str(error))
            continue
        num_bytes = message.ByteSize()
        needed = num_bytes + ENVELOPE_BYTES + ITEM_BYTES
        if max_message_bytes and needed > max_message_bytes:
            rule = f"document needs a message of {needed} bytes, the limit is {max_message_bytes}"
            yield record.rejected("document_too_long", rule)
            continue
        seen[record.id] = f"line {record.line}" + (f" of {record.name}" if record.name else "")
        if len(seen) > _DUPLICATE_WINDOW:
            del seen[next(iter(seen))]
        yield Record(message, record.id, record.line, record.excerpt, num_bytes, record.file, record.name)
