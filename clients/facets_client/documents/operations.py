"""What the clients do with collections and their documents (see ``core/operations.py``)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import numpy as np
from facets_proto.v1 import documents_pb2 as pb
from numpy.typing import NDArray

from facets_client.core.blocking import BlockingStream
from facets_client.core.channel import Rpc, rpc_of
from facets_client.core.commands import (
    Emit,
    HalfClose,
    Items,
    Open,
    Operation,
    Send,
    StreamOperation,
    TakeInput,
    call,
    call_pages,
    receive,
)
from facets_client.core.convert import from_filter
from facets_client.core.operations import RoomOperations, least, slices, text_bytes, with_evidence
from facets_client.core.values import unsigned
from facets_client.documents import convert
from facets_client.documents.convert import DocumentMessage, SearchMode, stream_batch, stream_open, to_ack
from facets_client.documents.results import (
    Collection,
    Document,
    FoundDocuments,
    ReindexProgress,
    SearchResults,
    StreamAck,
    WriteResult,
)
from facets_client.errors import UnavailableError
from facets_client.filters import Filter

UPSERT_STREAM = rpc_of(pb.UpsertStreamRequest, pb.UpsertStreamResponse)


class CollectionOperations(RoomOperations):
    """CollectionService."""

    def create_collection(self, name: str, *, model: str = "") -> Operation[Collection]:
        """Makes an empty collection; AlreadyExistsError when the name is taken.

        Args:
            name: Of the collection.
            model: Its model, for passages or for sentences; empty: the server's default for collections.
        """
        request = pb.CreateCollectionRequest(name=name, model=model)
        reply = yield from call(request, pb.CreateCollectionResponse)
        return convert.to_collection(reply.collection)

    def get_collection(self, name: str) -> Operation[Collection]:
        """One collection; NotFoundError when there is none of that name."""
        reply = yield from call(pb.GetCollectionRequest(name=name), pb.GetCollectionResponse)
        return convert.to_collection(reply.collection)

    def list_collections(self) -> Operation[list[Collection]]:
        """All collections, in the order of their names."""
        found = yield from call_pages(
            lambda token: pb.ListCollectionsRequest(page_token=token),
            pb.ListCollectionsResponse,
            lambda reply: (reply.collections, reply.next_page_token),
        )
        return [convert.to_collection(collection) for collection in found]

    def delete_collection(self, name: str) -> Operation[WriteResult]:
        """Deletes a collection with its documents."""
        reply = yield from call(pb.DeleteCollectionRequest(name=name), pb.DeleteCollectionResponse)
        return WriteResult(reply.num_documents, reply.index_revision)

    def reindex_collection(self, name: str, *, model: str = "") -> StreamOperation[ReindexProgress]:
        """Moves a collection to another model, or to the served revision of its own, by encoding its texts anew.

        Meanwhile the collection is searched and written as it was. Whoever stops taking the progress leaves it as it
        was; the next call goes on.

        Args:
            name: Of the collection.
            model: Where it moves; empty: the served revision of its own model.

        Yields:
            The progress every few seconds; the last one is ``done``.
        """
        done = False
        while not done:
            request = pb.ReindexCollectionRequest(name=name, model=model)
            progress = convert.to_progress((yield from call(request, pb.ReindexCollectionResponse)))
            done = progress.done
            yield Emit(progress)


class DocumentOperations(RoomOperations):
    """DocumentService."""

    def upsert(self, collection: str, documents: Sequence[Document]) -> Operation[WriteResult]:
        """Stores documents, replacing those with the same id; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.
        """
        messages = [convert.from_document(document) for document in documents]
        parts = yield from self._requests.call_parts(
            "documents",
            [message.ByteSize() for message in messages],
            lambda part: pb.UpsertRequest(collection=collection, documents=messages[part]),
            pb.UpsertResponse,
            max_items=lambda limits: limits.max_documents_per_upsert,
        )
        return convert.to_written(parts)

    def upsert_stream(
        self, collection: str, documents: Items[Document], *, batch_size: int = 64, resume_token: str = ""
    ) -> StreamOperation[StreamAck]:
        """Stores any number of documents in bounded memory; a bad one is rejected in its ack.

        Args:
            collection: Name.
            documents: Read a window of batches ahead, by whoever takes the acks.
            batch_size: Documents of one batch; each batch has one ack.
            resume_token: Of an earlier ack, to go on after a broken connection with the documents that were
                not acknowledged.

        Yields:
            One ack for each batch, in order, once the batch is durable.
        """
        limits = yield from self._requests.limits()
        batch_size = min(batch_size, limits.max_documents_per_upsert or batch_size)
        yield Open(UPSERT_STREAM)
        yield Send(convert.stream_open(collection, resume_token))
        opened = (yield from receive()).opened
        window = opened.max_unacked_batches or 1
        sequence = opened.last_acked_sequence
        num_under_way = 0
        cut: deque[list[pb.Document]] = deque()  # of the input, not sent
        more = True
        while more or num_under_way:
            while more and num_under_way < window:
                if cut:
                    sequence += 1
                    yield Send(convert.stream_batch(sequence, cut.popleft()))
                    num_under_way += 1
                    continue
                batch: list[Document] = yield TakeInput(documents, batch_size)
                messages = [convert.from_document(document) for document in batch]
                sizes = [message.ByteSize() for message in messages]
                most = least(limits.max_message_bytes, convert.BATCH_BYTES)
                cut += (messages[part] for part in slices(sizes, max_items=0, max_bytes=most))
                more = bool(batch)
                if not more:
                    yield HalfClose()
            if num_under_way:
                reply = yield from receive()
                num_under_way -= 1
                yield Emit(convert.to_ack(reply.ack, opened.resume_token))

    def get_documents(
        self, collection: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int = 0
    ) -> Operation[FoundDocuments]:
        """Documents by id, in the order of the ids, and the ids that are not there.

        Args:
            collection: Name.
            ids: At least one.
            include_facets: Also fetch the facet embeddings.
            min_revision: Read only this revision or a later one; 0: any.
        """
        revision = unsigned(min_revision, "min_revision", bits=64)
        parts = yield from self._requests.call_parts(
            "ids",
            [text_bytes(document_id) for document_id in ids],
            lambda part: pb.GetDocumentsRequest(
                collection=collection, ids=ids[part], include_facets=include_facets, min_revision=revision
            ),
            pb.GetDocumentsResponse,
            max_items=lambda limits: limits.max_documents_per_upsert,
        )
        return convert.to_found(parts)

    def delete_documents(
        self, collection: str, ids: Sequence[str] = (), *, where: Filter | None = None
    ) -> Operation[WriteResult]:
        """Deletes documents by id, or all that match a filter; ids that are not there are no error.

        Args:
            collection: Name.
            ids: Documents to delete.
            where: Instead, a condition on the payload.
        """
        if where is not None:
            if ids:
                raise ValueError("ids and where exclude each other, got both")
            request = pb.DeleteDocumentsRequest(collection=collection, filter=from_filter(where))
            parts = [(yield from call(request, pb.DeleteDocumentsResponse))]
        else:
            parts = yield from self._requests.call_parts(
                "ids",
                [text_bytes(document_id) for document_id in ids],
                lambda part: pb.DeleteDocumentsRequest(collection=collection, ids=ids[part]),
                pb.DeleteDocumentsResponse,
                max_items=lambda limits: limits.max_documents_per_upsert,
            )
        return WriteResult(sum(part.num_deleted for part in parts), parts[-1].index_revision)

    def count_documents(self, collection: str, *, where: Filter | None = None, min_revision: int = 0) -> Operation[int]:
        """Number of documents, of those that match the filter when there is one."""
        revision = unsigned(min_revision, "min_revision", bits=64)
        request = pb.CountDocumentsRequest(collection=collection, filter=from_filter(where), min_revision=revision)
        reply = yield from call(request, pb.CountDocumentsResponse)
        return int(reply.num_documents)

    def list_documents(
        self,
        collection: str,
        *,
        where: Filter | None = None,
        page_size: int = 0,
        include_facets: bool = False,
        min_revision: int = 0,
    ) -> StreamOperation[Document]:
        """All documents that match, in the order of their ids, fetched page by page.

        Args:
            collection: Name.
            where: Condition on the payload; None: all documents.
            page_size: Documents fetched at a time; 0: the server's choice.
            include_facets: Also fetch the facet embeddings.
            min_revision: Read only this revision or a later one; 0: any.

        Yields:
            One document after the other.
        """
        request = pb.ListDocumentsRequest(
            collection=collection,
            page_size=unsigned(page_size, "page_size"),
            filter=from_filter(where),
            include_facets=include_facets,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
        )
        while True:
            reply = yield from call(request, pb.ListDocumentsResponse)
            for document in reply.documents:
                yield Emit(convert.to_document(document))
            if not reply.next_page_token:
                return
            request.page_token = reply.next_page_token

    def search(
        self,
        collection: str,
        queries: Sequence[str | NDArray[np.floating]],
        *,
        top_k: int = 10,
        mode: SearchMode = "hybrid",
        where: Filter | None = None,
        exact: bool = False,
        min_revision: int = 0,
        evidence: bool = False,
        num_words: int | None = None,
        include_document: bool = True,
        min_confidence: float | None = None,
        diversify: float = 0.0,
        model: str = "",
    ) -> Operation[SearchResults]:
        """The best documents for each query, by its facets and its words.

        Args:
            collection: Name.
            queries: Texts, or facet embeddings ``[facets, dim]`` of the collection's model.
            top_k: Documents for each query.
            mode: ``hybrid``: facets and words (facets alone for facet embeddings), ``facets``, or ``lexical``: words.
            where: Condition on the payload; None: all documents.
            exact: Compare with every document, never an approximate index.
            min_revision: Read only this revision or a later one (read your writes); 0: any.
            evidence: Say which facet met which.
            num_words: Nearest words for each facet of the evidence; None: the server's choice.
            include_document: Also fetch text and payload.
            min_confidence: Only hits of at least this confidence, in [0, 1]: none where nothing answers; None: all.
            diversify: How much the hits shall differ in what they answer, in [0, 1]; 0: ranked by score alone.
            model: The model that embeds the queries, of the collection's space; empty: the collection's.
        """
        wanted = pb.SearchRequest(
            collection=collection,
            top_k=unsigned(top_k, "top_k"),
            mode=convert.from_mode(mode),
            filter=from_filter(where),
            exact=exact,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
            evidence=evidence,
            num_words=unsigned(num_words, "num_words"),
            include_document=include_document,
            min_confidence=min_confidence,
            diversify=diversify,
            model=model,
        )

        def request(part: slice) -> pb.SearchRequest:
            made = pb.SearchRequest(queries=[convert.from_query(query) for query in queries[part]])
            made.MergeFrom(wanted)
            return made

        parts = yield from self._requests.call_parts(
            "queries",
            [text_bytes(query) if isinstance(query, str) else 4 * query.size for query in queries],
            request,
            pb.SearchResponse,
            max_items=lambda limits: least(
                limits.max_queries_per_search, with_evidence(limits, evidence=evidence, top_k=top_k)
            ),
        )
        return convert.to_search_results(parts)


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
