"""Records grouped into batches that a server takes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from facets_proto.v1 import documents_pb2

from facets_client.core.records import EXCERPT_CHARS, Record, Rejection
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES
from facets_client.documents.convert import from_document
from facets_client.documents.results import Document

__all__ = ["DUPLICATE_WINDOW", "Batch", "batches"]

# Ids remembered to find duplicates: enough for neighbours, little memory for any number of documents.
DUPLICATE_WINDOW = 100_000
# A batch without documents ends here, so that a hopeless input moves on in bounded memory, too.
_MAX_REJECTIONS = 1_000


@dataclass(slots=True)
class Batch:
    """Consecutive records: those to send, those that cannot be sent, and where they end in the input.

    Attributes:
        documents: Converted documents; entry i came from records[i].
        records: The records behind the documents.
        rejections: Records that are not sent.
        num_records: Records and rejections together.
        line: Lines up to the end of the batch.
        end: Bytes up to the end of the batch, in the uncompressed stream.
        sequence: Number in the stream under way; 0: not sent.
    """

    documents: list[documents_pb2.Document] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    num_records: int = 0
    line: int = 0
    end: int = 0
    sequence: int = 0
    num_bytes: int = ENVELOPE_BYTES


def batches(items: Iterable[Record | Rejection], *, batch_size: int, max_message_bytes: int) -> Iterator[Batch]:
    """Groups records in order.

    A record whose id came up among the last ``DUPLICATE_WINDOW`` ones is rejected: one batch must not hold an
    id twice, and neighbours with one id are a mistake in the input. Farther apart the later one replaces the
    earlier one, as in any other upsert.

    Args:
        items: Records and rejections as read.
        batch_size: Most documents of a batch.
        max_message_bytes: Most bytes of a batch on the wire; 0: no limit.
    """
    seen: dict[str, int] = {}
    batch = Batch()
    for item in items:
        document = _convert(item, seen, max_message_bytes) if isinstance(item, Record) else item
        size = document.ByteSize() + ITEM_BYTES if isinstance(document, documents_pb2.Document) else 0
        if max_message_bytes and batch.num_bytes + size > max_message_bytes:
            yield batch
            batch = Batch()
        if isinstance(document, Rejection):
            batch.rejections.append(document)
        else:
            assert isinstance(item, Record)
            batch.documents.append(document)
            batch.records.append(item)
            batch.num_bytes += size
        batch.num_records += 1
        batch.line, batch.end = item.line, item.end
        if len(batch.documents) == batch_size or len(batch.rejections) == _MAX_REJECTIONS:
            yield batch
            batch = Batch()
    if batch.num_records:
        yield batch


def _convert(record: Record, seen: dict[str, int], max_message_bytes: int) -> documents_pb2.Document | Rejection:
    """The record as a document on the wire, or why it is none."""
    if record.id in seen:
        message = f"id was there before, at line {seen[record.id]}"
        return reject(record, "duplicate_id", message)
    try:
        document = from_document(Document(record.id, record.text, record.payload))
    except (TypeError, ValueError) as error:
        return reject(record, "invalid_document", str(error))
    num_bytes = document.ByteSize() + ENVELOPE_BYTES + ITEM_BYTES
    if max_message_bytes and num_bytes > max_message_bytes:
        message = f"document needs a message of {num_bytes} bytes, the limit is {max_message_bytes}"
        return reject(record, "document_too_long", message)
    seen[record.id] = record.line
    if len(seen) > DUPLICATE_WINDOW:
        del seen[next(iter(seen))]
    return document


def reject(record: Record, reason: str, message: str) -> Rejection:
    """A record that is not stored."""
    return Rejection(record.line, record.end, reason, message, id=record.id, excerpt=record.text[:EXCERPT_CHARS])
