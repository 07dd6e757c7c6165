"""An upsert stream whose batches and acknowledgements the caller handles one by one."""

from collections.abc import Sequence

from facets_proto.v1 import documents_pb2 as pb

from facets_client.core.asynchronous import AsyncStream
from facets_client.documents.messages import DocumentMessage, to_ack
from facets_client.documents.results import StreamAck


class AsyncUpsertSession:
    """Sends numbered batches and receives their acks; closed by ``close()``.

    Send at most ``max_unacked_batches`` before receiving an ack. ``resume_token`` opens the same stream again after a
    broken connection; ``last_acked_sequence`` is then the last batch that the server has stored.
    """

    def __init__(self, stream: AsyncStream, opened: pb.UpsertStreamOpened) -> None:
        self._stream = stream
        self.resume_token: str = opened.resume_token
        self.last_acked_sequence: int = opened.last_acked_sequence
        self.max_unacked_batches: int = max(1, opened.max_unacked_batches)
        self._sequence = self.last_acked_sequence

    async def send(self, documents: Sequence[DocumentMessage]) -> None:
        """Sends a batch of converted documents (``from_document``)."""
        self._sequence += 1
        batch = pb.UpsertStreamBatch(sequence=self._sequence, documents=documents)
        await self._stream.send(pb.UpsertStreamRequest(batch=batch))

    async def half_close(self) -> None:
        """Tells the server that no further batch follows."""
        await self._stream.half_close()

    async def receive_ack(self) -> StreamAck:
        """Waits for the ack of the oldest batch in progress."""
        return to_ack((await self._stream.receive()).ack, self.resume_token)

    async def finish(self) -> None:
        """Ends the stream normally, after the last ack."""
        await self._stream.finish()

    async def close(self) -> None:
        """Cancels what is in progress."""
        await self._stream.close()
