"""Stores the documents of files: a window of batches on a stream, each completed by its acknowledgement."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from facets_proto.v1 import documents_pb2 as pb

from facets_client.core.asynchronous import in_thread
from facets_client.core.blocking import BlockingStream
from facets_client.core.drawing import count_of
from facets_client.core.requests import least
from facets_client.documents.files import FileRecord
from facets_client.documents.messages import DocumentMessage, to_ack, to_messages
from facets_client.documents.results import StreamAck
from facets_client.generated.types import ModelVersion
from facets_client.load.runner import Batch, BulkSettings, Settled, batches

_BATCH_BYTES = 2**16  # a few seconds of a slow server: the progress bar treats a batch as a unit
_DELETED_AT_A_TIME = 1000


class AsyncUpsertSession:
    """Sends numbered batches and receives their acks; closed by ``close()``.

    Send at most ``max_unacked_batches`` before receiving an ack. ``resume_token`` opens the same stream again after a
    broken connection; ``last_acked_sequence`` is then the last batch that the server has stored.
    """

    def __init__(self, stream: BlockingStream, opened: pb.UpsertStreamOpened) -> None:
        self._stream = stream
        self.resume_token: str = opened.resume_token
        self.last_acked_sequence: int = opened.last_acked_sequence
        self.max_unacked_batches: int = max(1, opened.max_unacked_batches)
        self._sequence = self.last_acked_sequence

    async def send(self, documents: Sequence[DocumentMessage]) -> None:
        """Sends a batch of converted documents (``from_document``)."""
        self._sequence += 1
        batch = pb.UpsertStreamBatch(sequence=self._sequence, documents=documents)
        self._stream.send(pb.UpsertStreamRequest(batch=batch))

    async def receive_ack(self) -> StreamAck:
        """Waits for the ack of the oldest batch in progress."""
        return to_ack((await in_thread(self._stream.receive)).ack, self.resume_token)

    async def finish(self) -> None:
        """Ends the stream normally, after the last ack."""
        await in_thread(self._stream.finish)

    async def close(self) -> None:
        """Cancels what is in progress."""
        self._stream.close()


@dataclass(eq=False)
class AsyncIndexTask:
    """A task of the bulk runner: stores the documents of an input, and deletes what its files no longer contain.

    After the last batch, documents that came from a file of the input are deleted if the file was read to its end and
    did not yield them; ``keep``: they are kept. If the input has none of the stored documents, its files are taken for
    others of the same names, and nothing is deleted. ``prepare`` opens the collection. Memory: about 80 bytes for each
    document, and the window.
    """

    client: Any
    read_documents: Callable[[], Iterator[FileRecord]]
    collection: str
    settings: BulkSettings
    prepare: Callable[[], Awaitable[object]]
    encoded_by: ModelVersion | None = None
    keep: bool = False
    notes: list[str] = field(default_factory=list, init=False)  # for the user
    num_removed: int = field(default=0, init=False)
    index_revision: int = field(default=0, init=False)  # of all that is stored: the min_revision that finds it
    _session: AsyncUpsertSession | None = field(default=None, init=False)
    _seen: set[int] = field(default_factory=set, init=False)  # hashes of the ids that the input has
    complete: list[str] = field(default_factory=list, init=False)  # files that were read to their end
    sources: dict[str, int] = field(default_factory=dict, init=False)  # stored files and numbers of their documents
    _num_stored: Counter[str] = field(default_factory=Counter, init=False)  # documents of each file
    _has_unknown: set[str] = field(default_factory=set, init=False)  # files with rejected rows whose ids are not known
    _has_stored: bool = field(default=False, init=False)  # whether documents of the input had been stored before

    async def read(self) -> Iterator[Batch[DocumentMessage]]:
        """The batches of the input, within the server's limits; opens the collection first."""
        await self.prepare()
        limits = (await self.client.model()).limits
        return batches(
            to_messages(self.read_documents(), limits.max_message_bytes, self._seen),
            self.settings,
            max_records=limits.max_documents_per_upsert,
            max_bytes=least(limits.max_message_bytes, _BATCH_BYTES),
        )

    @property
    def max_under_way(self) -> int:
        """Maximum number of batches in flight, as the server allows."""
        return self._session.max_unacked_batches if self._session else 1

    async def send(self, batch: Batch[DocumentMessage]) -> None:
        """Sends a batch on the stream, which is opened if needed."""
        if self._session is None:
            self._session = await self.client.open_upsert_session(self.collection, encoded_by=self.encoded_by)
        await self._session.send([record.item for record in batch.records])

    async def settle(self, batch: Batch[DocumentMessage]) -> Settled:
        """Waits for the acknowledgement of the oldest batch."""
        settled = await self._receive_ack(batch) if batch.records else Settled()
        self._num_stored.update(record.file for record in batch.records)
        self._num_stored.subtract(rejection.file for rejection in settled.rejections)
        self._has_unknown.update(rejection.file for rejection in batch.rejections if not rejection.id)
        self.complete += [end.file for end in batch.ends if end.is_complete]
        return settled

    async def _receive_ack(self, batch: Batch[DocumentMessage]) -> Settled:
        assert self._session is not None
        ack = await self._session.receive_ack()
        self.index_revision = ack.index_revision
        rejections = [
            batch.records[item.position].rejected(item.reason.lower() or item.code.lower(), item.message)
            for item in ack.rejected
        ]
        counts = {name: getattr(ack, name) for name in ("num_added", "num_changed", "num_unchanged")}
        self._has_stored |= ack.num_changed + ack.num_unchanged > 0
        return Settled(rejections, {**counts, "num_truncated": len(ack.truncated)})

    async def abandon(self) -> None:
        """Closes the stream. Batches in flight are sent again: storing a document again changes nothing."""
        if self._session:
            await self._session.close()
            self._session = None

    async def finish(self) -> None:
        """Ends the stream normally, and deletes what the files no longer contain."""
        if self._session:
            await self._session.finish()
        if self.keep or not self.complete:
            return
        self.sources = await self.client.list_sources(self.collection)
        for name in self.complete:
            if self.sources.get(name, 0) == self._num_stored[name]:
                continue
            if name in self._has_unknown:
                self.notes.append(f"{name}: nothing was deleted, because a rejected record has no known id")
            else:
                await self._delete_unseen(name)

    async def _delete_unseen(self, source: str) -> None:
        listed = self.client.list_documents(
            self.collection, source=source, include_document=False, page_size=_DELETED_AT_A_TIME
        )
        unseen = [document.id async for document in listed if hash(document.id) not in self._seen]
        if unseen and not self._has_stored:
            of_another = ("document of another file of this name stays", "documents of another file of this name stay")
            self.notes.append(f"{source}: {count_of(len(unseen), *of_another)}: this one has none of them")
            return
        for start in range(0, len(unseen), _DELETED_AT_A_TIME):
            ids = unseen[start : start + _DELETED_AT_A_TIME]
            deleted = await self.client.delete_documents(self.collection, ids)
            self.num_removed += deleted.num_documents
            self.index_revision = deleted.index_revision
