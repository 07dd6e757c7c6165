"""Converts documents and replies between records and messages."""

import math
from collections.abc import Iterable, Iterator, Mapping

from facets_proto.codec import from_message
from facets_proto.v1 import documents_pb2 as pb

from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES, record_message, shown
from facets_client.core.status import status_error
from facets_client.documents.results import RejectedDocument, StreamAck
from facets_client.generated.types import Document, TruncatedDocument
from facets_client.load.rows import MAX_EXACT_INTEGER, FileEnd, Record, Rejection

DocumentMessage = pb.Document  # a document on the wire
# Maximum bytes per batch, so that the model needs at most a minute for it. A value takes two bytes or more, so payloads
# stay within the server's limit of 262,144 values per request.
BATCH_BYTES = 2**19

# A message may be nested 100 levels deep; each level of JSON takes three.
MAX_PAYLOAD_DEPTH = 20


def from_document(document: Document) -> DocumentMessage:
    """A document as a message; TypeError or ValueError if it is none, or cannot be sent without loss."""
    if not hasattr(document, "payload"):
        raise TypeError(f"expected a Document, got {shown(document)}: try Document(id=..., text=..., payload=...)")
    try:
        check_payload(document.payload)
    except ValueError as error:
        raise ValueError(f"document {document.id!r}: {error}") from None
    stats = None if document.facet_embeddings is None else document.token_stats
    return record_message(document, DocumentMessage, revision=0, token_stats=stats)


def to_messages(
    records: Iterable[Record[Document] | Rejection | FileEnd], max_message_bytes: int = 0, seen: set[int] | None = None
) -> Iterator[Record[DocumentMessage] | Rejection | FileEnd]:
    """Documents as messages; rejects invalid ones and repeated ids. ``seen``: is filled with 64-bit hashes of ids."""
    seen = set() if seen is None else seen
    for record in records:
        if not isinstance(record, Record):
            if isinstance(record, Rejection) and record.id:
                seen.add(hash(record.id))
            yield record
            continue
        key, num_before = hash(record.id), len(seen)
        seen.add(key)
        if len(seen) == num_before:
            rule = f"the id {record.id!r} is also that of an earlier record: expected different ids"
            yield record.rejected("duplicate_id", rule)
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
        yield Record(message, record.id, record.line, num_bytes, record.file)


def check_payload(payload: Mapping[str, object]) -> None:
    """Rejects values that a protobuf Struct would alter or fail on: large integers, NaN, infinity, deep nesting."""
    level: list[object] = [payload]
    for _ in range(MAX_PAYLOAD_DEPTH + 1):
        level = [inner for value in level for inner in _inner_values(value)]
        if not level:
            return
    raise ValueError(f"payload is nested more than {MAX_PAYLOAD_DEPTH} levels deep")


def _inner_values(value: object) -> Iterable[object]:
    if isinstance(value, str):
        return ()
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        number = str(value) if value.bit_length() <= 256 else f"of {value.bit_length()} bits"
        raise ValueError(f"payload has the integer {number}, beyond 2**53: give it as a string")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"payload has the number {value}, expected a finite one")
    if not isinstance(value, int | float | None):
        raise ValueError(f"payload has {shown(value)}, expected a value that JSON has")
    return ()


def to_ack(message: pb.UpsertStreamAck, resume_token: str) -> StreamAck:
    """The acknowledgement of a batch."""
    return from_message(
        message,
        StreamAck,
        rejected=tuple(map(_to_rejected, message.rejected_documents)),
        resume_token=resume_token,
        truncated=tuple(from_message(item, TruncatedDocument) for item in message.truncated_documents),
    )


def _to_rejected(item: pb.RejectedDocument) -> RejectedDocument:
    error = status_error(item.error)
    return RejectedDocument(item.position, item.id, error.code.name, error.reason, error.details)
