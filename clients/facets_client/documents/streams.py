"""The stream that stores documents: its messages, and a session that sends batches and takes their acks."""

from collections.abc import Callable, Sequence
from typing import Any

import grpc
from facets_proto.codec import from_message, message_of, to_message
from facets_proto.v1 import documents_pb2 as pb

from facets_client.core.blocking import BlockingStream
from facets_client.core.channel import Rpc, error_info, rpc_of, status_code
from facets_client.core.types import ModelVersion, TruncatedDocument
from facets_client.core.values import check_payload, check_text, shown
from facets_client.documents.results import RejectedDocument, StreamAck
from facets_client.documents.types import Document
from facets_client.errors import UnavailableError

UPSERT_STREAM = rpc_of(pb.UpsertStreamRequest, pb.UpsertStreamResponse)
BATCH_BYTES = 2**20  # of one batch of a stream: its acknowledgement takes the model no more than a minute
DocumentMessage = pb.Document  # a document on the wire


class UpsertSession:
    """Sends numbered batches and receives their acks; closed by ``with`` or ``close()``.

    At most ``max_unacked_batches`` may be under way: send, and receive an ack before sending more.

    Attributes:
        resume_token: Opens the same stream again after a broken connection.
        last_acked_sequence: Last batch that the server has stored; numbering goes on from there.
        max_unacked_batches: Batches to send at most before their acks.
    """

    def __init__(
        self,
        open_stream: Callable[[Rpc[Any, Any]], BlockingStream],
        collection: str,
        *,
        resume_token: str,
        encoded_by: ModelVersion | None = None,
    ) -> None:
        self._stream = open_stream(UPSERT_STREAM)
        try:
            self._stream.send(opening(collection, resume_token, encoded_by))
            opened = self._receive().opened
        except BaseException:
            self._stream.close()
            raise
        self.resume_token: str = opened.resume_token
        self.last_acked_sequence: int = opened.last_acked_sequence
        self.max_unacked_batches: int = max(1, opened.max_unacked_batches)
        self._sequence = self.last_acked_sequence

    def send(self, documents: Sequence[DocumentMessage]) -> int:
        """Sends a batch of converted documents (``from_document``).

        Returns:
            The number of the batch in the stream.
        """
        self._sequence += 1
        self._stream.send(numbered(self._sequence, documents))
        return self._sequence

    def receive_ack(self) -> StreamAck:
        """Waits for the ack of the oldest batch under way."""
        return to_ack(self._receive().ack, self.resume_token)

    def finish(self) -> None:
        """Ends the stream in good order, after the last ack."""
        self._stream.half_close()
        self._stream.receive()

    def close(self) -> None:
        """Cancels what is under way."""
        self._stream.close()

    def __enter__(self) -> "UpsertSession":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _receive(self) -> Any:
        reply = self._stream.receive()
        if reply is None:
            raise UnavailableError(
                grpc.StatusCode.UNAVAILABLE, "the server ended the stream before everything was acknowledged"
            )
        return reply


def from_document(document: Document) -> DocumentMessage:
    """A document as a message.

    Raises:
        ValueError: When its payload cannot be carried without loss, or a text is no Unicode.
        TypeError: It is none, or its id or text is no str.
    """
    if not hasattr(document, "payload"):
        raise TypeError(f"expected a Document, got {shown(document)}: try Document(id=..., text=..., payload=...)")
    check_text(document.id)
    check_text(document.text)
    check_payload(document.payload)
    stats = None if document.facet_embeddings is None else document.token_stats
    return to_message(document, DocumentMessage, revision=0, token_stats=stats)


def to_document(message: DocumentMessage) -> Document:
    """A message as a document: as a server reads it, so integers are those that a double holds."""
    return from_message(message, Document)


def opening(collection: str, resume_token: str, encoded_by: ModelVersion | None = None) -> pb.UpsertStreamRequest:
    """First request of an upsert stream; an empty token starts a new one."""
    opened = message_of(pb.UpsertStreamOpen, collection=collection, resume_token=resume_token, encoded_by=encoded_by)
    return pb.UpsertStreamRequest(open=opened)


def numbered(sequence: int, documents: Sequence[DocumentMessage]) -> pb.UpsertStreamRequest:
    """One numbered batch of an upsert stream."""
    return pb.UpsertStreamRequest(batch=pb.UpsertStreamBatch(sequence=sequence, documents=documents))


def to_ack(message: pb.UpsertStreamAck, resume_token: str) -> StreamAck:
    """The server's word that a batch is durable."""
    return from_message(
        message,
        StreamAck,
        rejected=tuple(map(_to_rejected, message.rejected_documents)),
        resume_token=resume_token,
        truncated=tuple(from_message(item, TruncatedDocument) for item in message.truncated_documents),
    )


def _to_rejected(item: pb.RejectedDocument) -> RejectedDocument:
    code, reason = status_code(item.error.code).name, error_info(item.error.details).reason
    return RejectedDocument(item.position, item.id, code, reason, item.error.message)
