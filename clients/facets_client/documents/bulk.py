"""Documents of an input to a collection: a window of batches on a stream, each settled by its durable ack."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import grpc

from facets_client.client import FacetsClient
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES, least
from facets_client.documents.messages import BATCH_BYTES, DocumentMessage, from_document
from facets_client.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, ServerError
from facets_client.generated.session import UpsertSession
from facets_client.generated.types import Document, ModelVersion, TruncatedDocument
from facets_client.load.batches import Batch, Entry, Pace, Place, batches
from facets_client.load.records import EXCERPT_CHARS, Record, Rejection
from facets_client.load.runner import BulkSettings, Settled

# Ids remembered to find duplicates: enough for neighbours, little memory for any number of documents.
DUPLICATE_WINDOW = 100_000
_TRUNCATED_SHOWN = 3
# Place, most bytes of a text (0: any) -> the documents after it.
Reading: TypeAlias = Callable[[Place, int], Iterator[Record | Rejection]]
_TOKEN_REFUSED = (NotFoundError, InvalidArgumentError, FailedPreconditionError)


class IndexTask:
    """A task of the bulk runner: stores the documents of an input.

    Args:
        client: Connected to the server.
        reading: The documents of the input.
        collection: Where to store.
        settings: How to go through the input.
        encoded_by: The model that has encoded the documents; None: the server encodes them.

    Attributes:
        index_revision: Revision that holds everything stored; give it as min_revision to search it.
        truncated: The first documents of this run that were stored without being read to their end; how many there
            are stands in the place, as ``num_truncated``.
    """

    def __init__(
        self,
        client: FacetsClient,
        reading: Reading,
        collection: str,
        *,
        settings: BulkSettings,
        encoded_by: ModelVersion | None = None,
    ) -> None:
        self._client = client
        self._open_stream = partial(client.open_upsert_session, collection, encoded_by=encoded_by)
        self._reading = reading
        self._settings = settings
        self._session: UpsertSession | None = None
        self._under_way: deque[int] = deque()  # numbers of the batches in the stream
        self._pace = Pace()
        self._busy_since = 0.0  # when the server began with the oldest batch under way, by the monotonic clock
        self.resume_token = ""
        self.index_revision = 0
        self.truncated: list[TruncatedDocument] = []

    def read(self, place: Place) -> Iterator[Batch[DocumentMessage]]:
        """The batches after a place, within the server's limits."""
        self.resume_token = place.resume_token
        limits = self._client.model().limits
        return document_batches(
            self._reading(place, limits.max_document_bytes),
            self._settings,
            place=place,
            max_documents=limits.max_documents_per_upsert,
            max_message_bytes=limits.max_message_bytes,
            pace=self._pace,
        )

    @property
    def max_under_way(self) -> int:
        """As many as the server allows."""
        return self._session.max_unacked_batches if self._session else 1

    def send(self, batch: Batch[DocumentMessage]) -> None:
        """Sends a batch on the stream."""
        if not self._under_way:
            self._busy_since = time.monotonic()
        self._under_way.append(self._open_session().send(batch.items))

    def settle(self, batch: Batch[DocumentMessage]) -> Settled:
        """Waits for the ack of the oldest batch."""
        ack = self._open_session().receive_ack()
        sequence = self._under_way.popleft()
        if ack.sequence != sequence:
            text = f"the server acknowledged batch {ack.sequence}, expected {sequence}"
            raise ServerError(grpc.StatusCode.INTERNAL, text)
        now = time.monotonic()
        self._pace.settled(batch.num_bytes, now - self._busy_since)
        self._busy_since = now
        self.index_revision = ack.index_revision
        for item in ack.rejected:
            if item.position >= len(batch.entries):
                text = f"the server rejected document {item.position} of a batch of {len(batch.entries)}"
                raise ServerError(grpc.StatusCode.INTERNAL, text)
        self.truncated += ack.truncated[: _TRUNCATED_SHOWN - len(self.truncated)]
        return Settled(
            [
                batch.entries[item.position].rejected(item.reason.lower() or item.code.lower(), item.message)
                for item in ack.rejected
            ],
            {"num_truncated": len(ack.truncated)},
        )

    def abandon(self) -> None:
        """Closes the stream; the next one goes on with its token."""
        self._under_way.clear()
        if self._session:
            self._session.close()
            self._session = None

    def finish(self) -> None:
        """Ends the stream in good order."""
        if self._session:
            self._session.finish()

    def _open_session(self) -> UpsertSession:
        """The open stream; opens it, on the same token as before, when there is none."""
        if self._session is None:
            try:
                self._session = self._open_stream(resume_token=self.resume_token)
            except _TOKEN_REFUSED:
                if not self.resume_token:
                    raise
                # The server has forgotten the stream; what is acknowledged stays stored.
                self._session = self._open_stream()
            self.resume_token = self._session.resume_token
        return self._session


def document_batches(
    records: Iterator[Record | Rejection],
    settings: BulkSettings,
    *,
    place: Place,
    max_documents: int = 0,
    max_message_bytes: int = 0,
    pace: Pace | None = None,
) -> Iterator[Batch[DocumentMessage]]:
    """Documents after a place, in batches.

    Args:
        records: The documents after the place.
        settings: How to go through the input.
        place: What is done already.
        max_documents: The server's limit of a batch; 0: none.
        max_message_bytes: Likewise, of bytes.
        pace: Tells how many bytes a batch shall have; None: as many as may be.
    """
    most = least(max_message_bytes, BATCH_BYTES)
    read = _entries(records, max_message_bytes)
    return batches(
        _until_rejected(read) if settings.strict else read,
        size=min(settings.batch_size, max_documents or settings.batch_size),
        max_message_bytes=lambda: most if pace is None else min(most, pace.num_bytes),
        limit=max(0, settings.limit - place.num_records) if settings.limit else None,
    )


def _until_rejected(
    read: Iterator[Entry[DocumentMessage] | Rejection],
) -> Iterator[Entry[DocumentMessage] | Rejection]:
    """Nothing after the first rejection."""
    for item in read:
        yield item
        if isinstance(item, Rejection):
            return


def _entries(
    records: Iterator[Record | Rejection], max_message_bytes: int
) -> Iterator[Entry[DocumentMessage] | Rejection]:
    """Documents on the wire, and what is none.

    A record whose id came up among the last ``DUPLICATE_WINDOW`` ones is rejected: one batch must not hold an
    id twice, and neighbours with one id are a mistake in the input. Farther apart the later one replaces the
    earlier one, as in any other upsert.
    """
    seen: dict[str, str] = {}
    for record in records:
        if isinstance(record, Rejection):
            yield record
            continue
        entry = _entry(record, seen, max_message_bytes)
        if isinstance(entry, Entry):
            seen[record.id] = f"line {record.line}" + (f" of {record.name}" if record.name else "")
            if len(seen) > DUPLICATE_WINDOW:
                del seen[next(iter(seen))]
        yield entry


def _entry(record: Record, seen: dict[str, str], max_message_bytes: int) -> Entry[DocumentMessage] | Rejection:
    def rejected(reason: str, message: str) -> Rejection:
        where = {"id": record.id, "excerpt": record.text[:EXCERPT_CHARS], "name": record.name}
        return Rejection(record.line, record.end, reason, message, file=record.file, **where)

    if record.id in seen:
        return rejected("duplicate_id", f"id was there before, at {seen[record.id]}")
    try:
        document = from_document(Document(record.id, record.text, record.payload, **record.encoded))
    except (TypeError, ValueError) as error:
        return rejected("invalid_document", str(error))
    size = document.ByteSize()
    needed = size + ENVELOPE_BYTES + ITEM_BYTES
    if max_message_bytes and needed > max_message_bytes:
        message = f"document needs a message of {needed} bytes, the limit is {max_message_bytes}"
        return rejected("document_too_long", message)
    excerpt, where = record.text[:EXCERPT_CHARS], (record.file, record.name)
    return Entry(document, record.id, record.line, record.end, excerpt, size, *where)
