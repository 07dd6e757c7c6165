"""An open upsert stream, batch by batch: for callers that keep their own account of what is stored."""

from collections.abc import Callable, Sequence
from typing import Any

import grpc

from facets_client.core.blocking import BlockingStream
from facets_client.core.rpc import Rpc
from facets_client.documents.convert import DocumentMessage, stream_batch, stream_open, to_ack
from facets_client.documents.operations import UPSERT_STREAM
from facets_client.documents.results import StreamAck
from facets_client.errors import UnavailableError


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
    ) -> None:
        self._stream = open_stream(UPSERT_STREAM)
        try:
            self._stream.send(stream_open(collection, resume_token))
            opened = self._receive().opened
        except BaseException:
            self._stream.close()
            raise
        self.resume_token: str = opened.resume_token
        self.last_acked_sequence: int = opened.last_acked_sequence
        self.max_unacked_batches: int = max(1, opened.max_unacked_batches)
        self._sequence = self.last_acked_sequence

    def send(self, documents: Sequence[DocumentMessage]) -> int:
        """Sends a batch of converted documents (``documents.convert.from_document``).

        Returns:
            The number of the batch in the stream.
        """
        self._sequence += 1
        self._stream.send(stream_batch(self._sequence, documents))
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
