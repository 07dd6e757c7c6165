"""What the clients do with collections and their documents (see ``core/operations.py``)."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from facets_proto.codec import from_message, message_of
from facets_proto.v1 import diagnosis_pb2
from facets_proto.v1 import documents_pb2 as pb
from numpy.typing import NDArray

from facets_client.core.commands import (
    Emit,
    HalfClose,
    Items,
    Operation,
    Send,
    StreamOperation,
    TakeInput,
    call,
    call_pages,
    open_stream,
    receive,
)
from facets_client.core.operations import (
    RoomOperations,
    from_fields,
    from_filter,
    join,
    least,
    slices,
    text_bytes,
    warn_of,
    with_evidence,
)
from facets_client.core.types import ModelVersion, TruncatedDocument
from facets_client.core.values import enum_name, unsigned
from facets_client.documents.results import SearchResult, SearchResults, StreamAck, WriteResult
from facets_client.documents.streams import BATCH_BYTES, UPSERT_STREAM, from_document, numbered, opening, to_ack
from facets_client.documents.types import (
    Collection,
    CollectionDiagnosis,
    CollectionMap,
    Combination,
    Document,
    FoundDocuments,
    ReindexProgress,
    RerankedTexts,
    SearchHit,
    SearchMode,
)
from facets_client.filters import Filter


class CollectionOperations(RoomOperations):
    """CollectionService."""

    def create_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None
    ) -> Operation[Collection]:
        """Makes an empty collection; AlreadyExistsError when the name is taken.

        Args:
            name: Of the collection.
            model: Its model, for passages or for sentences; empty: the server's default for collections.
            search_fields: Fields of payloads that are searched with the text, and what their words weigh beside those
                of the text; None: title, subject, headline, heading and name, twice each; empty: none.
        """
        request = pb.CreateCollectionRequest(name=name, model=model, search_fields=from_fields(search_fields))
        reply = yield from call(request, pb.CreateCollectionResponse)
        return from_message(reply.collection, Collection)

    def get_collection(self, name: str) -> Operation[Collection]:
        """One collection; NotFoundError when there is none of that name."""
        reply = yield from call(pb.GetCollectionRequest(name=name), pb.GetCollectionResponse)
        return from_message(reply.collection, Collection)

    def list_collections(self) -> Operation[list[Collection]]:
        """All collections, in the order of their names."""
        found = yield from call_pages(
            lambda token: pb.ListCollectionsRequest(page_token=token),
            pb.ListCollectionsResponse,
            lambda reply: (reply.collections, reply.next_page_token),
        )
        return [from_message(collection, Collection) for collection in found]

    def delete_collection(self, name: str) -> Operation[WriteResult]:
        """Deletes a collection with its documents."""
        reply = yield from call(pb.DeleteCollectionRequest(name=name), pb.DeleteCollectionResponse)
        return WriteResult(reply.num_documents, reply.index_revision)

    def reindex_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None
    ) -> StreamOperation[ReindexProgress]:
        """Moves a collection to another model, or to the served revision of its own, by encoding its texts anew.

        Meanwhile the collection is searched and written as it was. Whoever stops taking the progress leaves it as it
        was; the next call goes on.

        Args:
            name: Of the collection.
            model: Where it moves; empty: the served revision of its own model.
            search_fields: Fields of payloads that are searched from then on; None: those that it has.

        Yields:
            The progress every few seconds; the last one is ``done``.
        """
        done = False
        while not done:
            request = pb.ReindexCollectionRequest(name=name, model=model, search_fields=from_fields(search_fields))
            reply = yield from call(request, pb.ReindexCollectionResponse)
            done = reply.done
            yield Emit(from_message(reply, ReindexProgress))

    def diagnose_collection(self, name: str, queries: Sequence[str] = ()) -> Operation[CollectionDiagnosis]:
        """What is known of a collection as a whole: duplicates and hubs; with queries whether facets pay for them.

        Args:
            name: The collection.
            queries: Questions as people ask them, at most 1,000; sentences of the documents promise too much.
        """
        request = diagnosis_pb2.DiagnoseCollectionRequest(name=name, queries=queries)
        reply = yield from call(request, diagnosis_pb2.DiagnoseCollectionResponse)
        return from_message(reply, CollectionDiagnosis)

    def map_collection(self, name: str, *, max_documents: int = 0) -> Operation[CollectionMap]:
        """A collection as points of a plane, documents that are about the same beside each other, and its themes.

        Args:
            name: The collection.
            max_documents: Of more a random sample is laid out, the same each time; 0, and at most, 100,000.
        """
        request = diagnosis_pb2.MapCollectionRequest(name=name, max_documents=unsigned(max_documents, "max_documents"))
        reply = yield from call(request, diagnosis_pb2.MapCollectionResponse)
        return from_message(reply, CollectionMap)


class DocumentOperations(RoomOperations):
    """DocumentService."""

    def upsert(
        self, collection: str, documents: Sequence[Document], *, encoded_by: ModelVersion | None = None
    ) -> Operation[WriteResult]:
        """Stores documents, replacing those with the same id; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.

        Args:
            collection: Name.
            documents: Any number.
            encoded_by: What made their facet embeddings: FailedPreconditionError where the collection has another
                model; None: nobody checks.
        """
        messages = [from_document(document) for document in documents]
        parts = yield from self._requests.call_parts(
            "documents",
            [message.ByteSize() for message in messages],
            lambda part: message_of(
                pb.UpsertRequest, collection=collection, documents=messages[part], encoded_by=encoded_by
            ),
            pb.UpsertResponse,
            max_items=lambda limits: limits.max_documents_per_upsert,
        )
        return _to_written(parts)

    def upsert_stream(
        self,
        collection: str,
        documents: Items[Document],
        *,
        batch_size: int = 64,
        resume_token: str = "",
        encoded_by: ModelVersion | None = None,
    ) -> StreamOperation[StreamAck]:
        """Stores any number of documents in bounded memory; a bad one is rejected in its ack.

        Args:
            collection: Name.
            documents: Read a window of batches ahead, by whoever takes the acks.
            batch_size: Documents of one batch; each batch has one ack.
            resume_token: Of an earlier ack, to go on after a broken connection with the documents that were
                not acknowledged.
            encoded_by: See ``upsert``.

        Yields:
            One ack for each batch, in order, once the batch is durable.
        """
        limits = yield from self._requests.limits()
        batch_size = min(batch_size, limits.max_documents_per_upsert or batch_size)
        opened = (yield from open_stream(UPSERT_STREAM, opening(collection, resume_token, encoded_by))).opened
        window = opened.max_unacked_batches or 1
        sequence = opened.last_acked_sequence
        num_under_way = 0
        cut: deque[list[pb.Document]] = deque()  # of the input, not sent
        more = True
        while more or num_under_way:
            while more and num_under_way < window:
                if cut:
                    sequence += 1
                    yield Send(numbered(sequence, cut.popleft()))
                    num_under_way += 1
                    continue
                batch: list[Document] = yield TakeInput(documents, batch_size)
                messages = [from_document(document) for document in batch]
                sizes = [message.ByteSize() for message in messages]
                most = least(limits.max_message_bytes, BATCH_BYTES)
                cut += (messages[part] for part in slices(sizes, max_items=0, max_bytes=most))
                more = bool(batch)
                if not more:
                    yield HalfClose()
            if num_under_way:
                reply = yield from receive()
                num_under_way -= 1
                yield Emit(to_ack(reply.ack, opened.resume_token))

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
        return join([from_message(part, FoundDocuments) for part in parts])

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
            request = pb.DeleteDocumentsRequest(collection=collection, where=from_filter(where))
            parts = [(yield from call(request, pb.DeleteDocumentsResponse))]
        else:
            parts = yield from self._requests.call_parts(
                "ids",
                [text_bytes(document_id) for document_id in ids],
                lambda part: pb.DeleteDocumentsRequest(collection=collection, ids=ids[part]),
                pb.DeleteDocumentsResponse,
                max_items=lambda limits: limits.max_documents_per_upsert,
            )
        warn_of(warning for part in parts for warning in part.warnings)
        return WriteResult(sum(part.num_deleted for part in parts), parts[-1].index_revision)

    def count_documents(self, collection: str, *, where: Filter | None = None, min_revision: int = 0) -> Operation[int]:
        """Number of documents, of those that match the filter when there is one."""
        revision = unsigned(min_revision, "min_revision", bits=64)
        request = pb.CountDocumentsRequest(collection=collection, where=from_filter(where), min_revision=revision)
        reply = yield from call(request, pb.CountDocumentsResponse)
        warn_of(reply.warnings)
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
            where=from_filter(where),
            include_facets=include_facets,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
        )
        while True:
            reply = yield from call(request, pb.ListDocumentsResponse)
            warn_of(reply.warnings)
            for document in reply.documents:
                yield Emit(from_message(document, Document))
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
        combine: Combination = "",
        where: Filter | None = None,
        exact: bool = False,
        min_revision: int = 0,
        evidence: bool = False,
        num_words: int | None = None,
        include_document: bool = True,
        min_confidence: float | None = None,
        diversify: float = 0.0,
        group: bool = True,
        model: str = "",
    ) -> Operation[SearchResults]:
        """The best documents for each query, by its facets and its words.

        Args:
            collection: Name.
            queries: Texts, or facet embeddings ``[facets, dim]`` of the collection's model.
            top_k: Hits for each query.
            mode: ``hybrid``: facets and words (facets alone for facet embeddings), ``facets``, or ``lexical``: words.
            combine: What several facets of a query ask for: ``sum``: documents that answer all of them; ``any``: any of
                them; empty: any where a text is several questions, else all.
            where: Condition on the payload; None: all documents.
            exact: Compare with every document, never an approximate index.
            min_revision: Read only this revision or a later one (read your writes); 0: any.
            evidence: Say which facet met which.
            num_words: Nearest words for each facet of the evidence; None: the server's choice.
            include_document: Also fetch text and payload.
            min_confidence: Only hits of at least this confidence, in [0, 1]: none where nothing answers; None: all.
            diversify: How much the hits shall differ in what they answer, in [0, 1]; 0: ranked by score alone.
            group: Whether hits are documents, a long one with the best of its parts; else parts, each a hit.
            model: The model that embeds the queries, of the collection's space; empty: the collection's.
        """
        wanted = pb.SearchRequest(
            collection=collection,
            top_k=unsigned(top_k, "top_k"),
            mode=enum_name("SEARCH_MODE", mode, SearchMode, name="mode"),
            combine=enum_name("FACET_COMBINATION", combine, Combination, name="combine", default=("",)),
            where=from_filter(where),
            exact=exact,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
            evidence=evidence,
            num_words=unsigned(num_words, "num_words"),
            include_document=include_document,
            min_confidence=min_confidence,
            diversify=diversify,
            group=group,
            model=model,
        )
        return (yield from self._search(wanted, queries))

    def _search(
        self, wanted: pb.SearchRequest, queries: Sequence[str | NDArray[np.floating]]
    ) -> Operation[SearchResults]:
        """As many calls as the queries need."""

        def request(part: slice) -> pb.SearchRequest:
            made = message_of(pb.SearchRequest, queries=queries[part])
            made.MergeFrom(wanted)
            return made

        parts = yield from self._requests.call_parts(
            "queries",
            [text_bytes(query) if isinstance(query, str) else 4 * query.size for query in queries],
            request,
            pb.SearchResponse,
            max_items=lambda limits: least(
                limits.max_queries_per_search, with_evidence(limits, evidence=wanted.evidence, top_k=wanted.top_k)
            ),
        )
        return _to_results(parts)

    def rerank(
        self,
        query: str,
        texts: Sequence[str],
        *,
        top_k: int | None = None,
        mode: SearchMode = "hybrid",
        model: str = "",
    ) -> Operation[RerankedTexts]:
        """Texts in the order in which they answer a query, scored as a search of a collection of just these would.

        Args:
            query: What they shall answer.
            texts: At most ``Limits.max_texts_per_request``; they are compared with each other, so one call holds all.
            top_k: How many of the best; None: all.
            mode: ``hybrid``: facets and words, ``facets``, or ``lexical``: words.
            model: The model that embeds query and texts; empty: the server's default for collections.
        """
        request = pb.RerankRequest(
            query=query,
            texts=texts,
            top_k=unsigned(top_k, "top_k"),
            mode=enum_name("SEARCH_MODE", mode, SearchMode, name="mode"),
            model=model,
        )
        reply = yield from call(request, pb.RerankResponse)
        return from_message(reply, RerankedTexts)


def _to_written(parts: Sequence[pb.UpsertResponse]) -> WriteResult:
    """The replies to the parts of a call as one result; places count over all of them."""
    truncated: list[TruncatedDocument] = []
    num_stored = 0
    for part in parts:
        for item in part.truncated_documents:
            truncated.append(from_message(item, TruncatedDocument, position=num_stored + item.position))
        num_stored += part.num_upserted
    return WriteResult(num_stored, parts[-1].index_revision, tuple(truncated))


def _to_results(parts: Sequence[pb.SearchResponse]) -> SearchResults:
    warn_of(parts[0].warnings)
    found = join([from_message(part, SearchResults, results=_to_hits(part)) for part in parts])
    odd = found.warnings[: len(parts[0].warnings)]
    return replace(found, exhaustive=all(part.exhaustive for part in parts), warnings=odd)


def _to_hits(reply: pb.SearchResponse) -> tuple[SearchResult, ...]:
    return tuple(SearchResult(tuple(from_message(hit, SearchHit) for hit in one.hits)) for one in reply.results)
