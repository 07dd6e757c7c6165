"""Methods of the clients about collections and their documents."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from facets_proto.codec import from_message
from facets_proto.v1 import diagnosis_pb2
from facets_proto.v1 import documents_pb2 as pb
from numpy.typing import NDArray

from facets_client.core.asynchronous import AnyIterable, batched, in_thread
from facets_client.core.calls import AsyncCalls
from facets_client.core.drawing import progress_bar
from facets_client.core.requests import (
    check_iterable,
    join,
    least,
    max_with_evidence,
    request_from,
    request_of,
    slices,
    warn_of,
    wire_bytes,
)
from facets_client.core.rows import Results
from facets_client.documents.adding import DEFAULT_COLLECTION, documents_of, rejection_error
from facets_client.documents.bulk import AsyncIndexTask, AsyncUpsertSession
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.documents.messages import BATCH_BYTES, DocumentMessage, from_document
from facets_client.documents.results import AddedFiles, StreamAck, WriteResult
from facets_client.errors import AlreadyExistsError, NotFoundError
from facets_client.filters import Filter, filter_message
from facets_client.generated.types import (
    Collection,
    CollectionDiagnosis,
    CollectionMap,
    Combination,
    Document,
    FoundDocuments,
    ModelVersion,
    ReindexProgress,
    RerankedTexts,
    SearchMode,
    SearchResult,
    SearchResults,
)
from facets_client.load.formats import find_files
from facets_client.load.rows import ReadOptions, Rejection
from facets_client.load.runner import BulkSettings
from facets_client.load.running import AsyncBulkRunner

_BAR_DOCUMENTS = 256  # from which a progress bar is worth its line
_PATIENCE_S = 30.0  # for a server that is away or full
_MAX_REJECTED = 1_000  # that are listed
_NOT_GIVEN: Any = ...  # None is a mistake: it must not turn the name of a collection into a query


class SearchOptions(TypedDict, total=False):
    """Options of ``search``."""

    top_k: int | None
    mode: SearchMode | None
    combine: Combination
    where: Filter | None
    exact: bool
    min_revision: int
    evidence: bool
    num_words: int | None
    include_document: bool | None
    min_confidence: float | None
    diversify: float | None
    group: bool | None
    use_reader: bool | None
    model: str


class AsyncCollectionCalls(AsyncCalls):
    """Methods of CollectionService."""

    async def create_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None, language: str = ""
    ) -> Collection:
        """Creates an empty collection; AlreadyExistsError when the name is taken."""
        fields = None if search_fields is None else list(search_fields.items())
        request = request_from(pb.CreateCollectionRequest, locals(), search_fields=fields)
        return from_message((await self._call(request)).collection, Collection)

    async def get_collection(self, name: str) -> Collection:
        """One collection; NotFoundError when it does not exist."""
        reply = await self._call(request_of(pb.GetCollectionRequest, name=name))
        return from_message(reply.collection, Collection)

    async def ensure_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None, language: str = ""
    ) -> Collection:
        """The collection, created with these options if it does not exist."""
        with suppress(NotFoundError):
            return await self.get_collection(name)
        with suppress(AlreadyExistsError):  # created by another program since
            return await self.create_collection(name, model=model, search_fields=search_fields, language=language)
        return await self.get_collection(name)

    async def list_collections(self) -> Results[Collection]:
        """All collections, ordered by name."""
        pages = self._pages(pb.ListCollectionsRequest())
        return Results([from_message(found, Collection) async for page in pages for found in page.collections])

    async def delete_collection(self, name: str) -> WriteResult:
        """Deletes a collection with its documents."""
        reply = await self._call(request_of(pb.DeleteCollectionRequest, name=name))
        return WriteResult(reply.num_documents, reply.index_revision)

    async def reindex_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None
    ) -> AsyncIterator[ReindexProgress]:
        """Moves a collection to another model or the served revision of its current one, by encoding all texts again.

        The collection can be searched and written during the move. If the caller stops iterating, the collection is
        left unchanged; the next call continues. Yields the progress every few seconds; the last one is ``done``.
        """
        fields = None if search_fields is None else list(search_fields.items())
        request = request_from(pb.ReindexCollectionRequest, locals(), search_fields=fields)
        done = False
        while not done:
            reply = await self._call(request)
            done = reply.done
            yield from_message(reply, ReindexProgress)

    async def diagnose_collection(self, name: str, queries: Sequence[str] = ()) -> CollectionDiagnosis:
        """Examines a whole collection for duplicates and hubs and, given queries, measures the recall of its index."""
        request = request_of(diagnosis_pb2.DiagnoseCollectionRequest, name=name, queries=queries)
        return from_message(await self._call(request), CollectionDiagnosis)

    async def map_collection(self, name: str, *, max_documents: int = 0) -> CollectionMap:
        """A two-dimensional layout of a collection, with similar documents close together, and its themes."""
        request = request_of(diagnosis_pb2.MapCollectionRequest, name=name, max_documents=max_documents)
        return from_message(await self._call(request), CollectionMap)


class AsyncDocumentCalls(AsyncCollectionCalls):
    """Methods of DocumentService."""

    async def open_upsert_session(
        self, collection: str, *, resume_token: str = "", encoded_by: ModelVersion | None = None
    ) -> AsyncUpsertSession:
        """Opens an upsert stream whose batches and acks the caller handles one by one; not retried."""
        first = request_from(pb.UpsertStreamOpen, locals())
        stream = self._channel.open(pb.UpsertStreamRequest)
        try:
            stream.send(pb.UpsertStreamRequest(open=first))
            return AsyncUpsertSession(stream, (await in_thread(stream.receive)).opened)
        except BaseException:
            stream.close()
            raise

    async def upsert_stream(
        self,
        collection: str,
        documents: AnyIterable[Document],
        *,
        batch_size: int = 64,
        resume_token: str = "",
        encoded_by: ModelVersion | None = None,
    ) -> AsyncIterator[StreamAck]:
        """Stores any number of documents in bounded memory; the ack of a batch lists its rejected documents.

        Yields one ack for each batch, in order, once the batch is durable; a window of batches is read ahead. With the
        ``resume_token`` of an earlier ack, it continues after a broken connection with the unacknowledged documents.
        """
        check_iterable("documents", documents)
        limits = await self._limits()
        session = await self._retry(
            lambda: self.open_upsert_session(collection, resume_token=resume_token, encoded_by=encoded_by)
        )
        batch_size = least(batch_size, limits.max_documents_per_upsert)
        num_unacked = 0
        try:
            async for batch in self._batches(documents, batch_size, least(limits.max_message_bytes, BATCH_BYTES)):
                await session.send(batch)
                num_unacked += 1
                if num_unacked == session.max_unacked_batches:
                    yield await session.receive_ack()
                    num_unacked -= 1
            for _ in range(num_unacked):
                yield await session.receive_ack()
            await session.finish()
        finally:
            await session.close()

    async def _batches(
        self, documents: AnyIterable[Document], batch_size: int, max_bytes: int
    ) -> AsyncIterator[list[DocumentMessage]]:
        async for batch in batched(documents, batch_size):
            messages = [from_document(document) for document in batch]
            for part in slices(list(map(wire_bytes, messages)), max_items=0, max_bytes=max_bytes):
                yield messages[part]

    async def add(
        self,
        documents: str | Document | Iterable[str | Document | Mapping[str, object]] | Mapping[str, Iterable[object]],
        *,
        collection: str = DEFAULT_COLLECTION,
        text: str | Sequence[str] = (),
        progress: bool = True,
    ) -> WriteResult:
        """Stores texts or other documents of any number; durable on return. Creates the collection when it is absent.

        ``documents``: a text, texts, documents, dictionaries (``text``, ``id``, ``title``; everything else is payload),
        or a table: a DataFrame or a mapping of columns. A document without an id gets one from its content, so that
        adding it again changes nothing. ``text``: the columns that hold the text; by default one with a usual name.
        ``progress``: show a bar while more than a few batches are stored.

        Raises ValueError or TypeError for what is no document, InvalidArgumentError for what the server rejects; all
        documents before it are stored.
        """
        positions: dict[str, int] = {}
        source, total = documents_of(documents, text, positions)
        revision = (await self.ensure_collection(collection)).index_revision
        acks: list[StreamAck] = []
        with progress_bar("documents", quiet=not progress or (total or _BAR_DOCUMENTS) < _BAR_DOCUMENTS) as bar:
            task = bar.add_task("", total=total)
            async for ack in self.upsert_stream(collection, source):
                acks.append(ack)
                bar.advance(task, ack.num_upserted)
        if rejected := [item for ack in acks for item in ack.rejected]:
            raise rejection_error(rejected, positions)
        counts = {
            name: sum(getattr(ack, name) for ack in acks) for name in ("num_added", "num_changed", "num_unchanged")
        }
        return WriteResult(
            sum(ack.num_upserted for ack in acks),
            acks[-1].index_revision if acks else revision,
            tuple(replace(item, position=positions[item.id]) for ack in acks for item in ack.truncated),
            **counts,
        )

    async def add_files(
        self,
        paths: str | PathLike[str] | Sequence[str | PathLike[str]] | DocumentFiles,
        *,
        collection: str = DEFAULT_COLLECTION,
        text: str | Sequence[str] = (),
        keep: bool = False,
        on_progress: Callable[[int], object] | None = None,
    ) -> AddedFiles:
        """Stores the documents of files and folders; durable on return. Creates the collection when it is absent.

        A file owns its documents: those that it no longer contains are deleted, unless the file is damaged; equal ones
        are left as they are. So the same call on changed files updates the collection.

        ``paths``: files, folders and patterns, or an open ``DocumentFiles``. ``text``: the columns that hold the text
        of tables; by default one with a usual name. ``keep``: delete nothing. ``on_progress``: called with the number
        of documents stored so far.

        Raises InputError for what cannot be read at all.
        """
        notes, rejected = list[str](), list[Rejection]()
        if not isinstance(paths, DocumentFiles):
            names = [paths] if isinstance(paths, str | PathLike) else paths
            options = ReadOptions(note=notes.append)
            asked = Columns(text=(text,) if isinstance(text, str) and text else tuple(text))
            paths = DocumentFiles(find_files([fspath(name) for name in names], options), asked, options)
        settings = BulkSettings(max_wait_s=_PATIENCE_S)
        with paths as files:
            await in_thread(files.check)
            task = AsyncIndexTask(
                self,
                files.read,
                collection,
                settings=settings,
                prepare=lambda: self.ensure_collection(collection),
                keep=keep,
            )
            runner = AsyncBulkRunner(
                task,
                files,
                settings,
                on_rejected=lambda more: rejected.extend(more[: _MAX_REJECTED - len(rejected)]),
                on_progress=lambda report, waiting: on_progress and on_progress(report.num_done),
            )
            report = await runner.run()
        return AddedFiles(
            **{name: report.totals[name] for name in ("num_added", "num_changed", "num_unchanged")},
            num_removed=task.num_removed,
            num_rejected=report.num_rejected,
            rejected=tuple(rejected),
            notes=(*notes, *task.notes),
            index_revision=task.index_revision,
        )

    async def get_documents(
        self, collection: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int = 0
    ) -> FoundDocuments:
        """Documents by id, in the order of the ids, and the ids that do not exist."""
        request = request_from(pb.GetDocumentsRequest, locals())
        parts = await self._call_parts(request, "ids", "max_documents_per_upsert")
        return join([from_message(part, FoundDocuments) for part in parts])

    async def delete_documents(
        self, collection: str, ids: Sequence[str] = (), *, where: Filter | None = None, source: str = ""
    ) -> WriteResult:
        """Deletes documents by id, or all that match a filter, a source or both; unknown ids are not an error."""
        request = request_from(pb.DeleteDocumentsRequest, locals(), where=filter_message(where))
        if where is not None or source:
            parts = [await self._call(request)]
        else:
            parts = await self._call_parts(request, "ids", "max_documents_per_upsert")
        warn_of(warning for part in parts for warning in part.warnings)
        return WriteResult(sum(part.num_deleted for part in parts), parts[-1].index_revision)

    async def count_documents(self, collection: str, *, where: Filter | None = None, min_revision: int = 0) -> int:
        """Number of documents, or of those that match a filter."""
        request = request_from(pb.CountDocumentsRequest, locals(), where=filter_message(where))
        reply = await self._call(request)
        warn_of(reply.warnings)
        return int(reply.num_documents)

    async def list_documents(
        self,
        collection: str,
        *,
        where: Filter | None = None,
        source: str = "",
        page_size: int = 0,
        include_facets: bool = False,
        include_document: bool | None = None,
        min_revision: int = 0,
    ) -> AsyncIterator[Document]:
        """All documents that match, ordered by id, fetched page by page."""
        request = request_from(pb.ListDocumentsRequest, locals(), where=filter_message(where))
        async for page in self._pages(request):
            warn_of(page.warnings)
            for document in page.documents:
                yield from_message(document, Document)

    async def list_sources(self, collection: str) -> dict[str, int]:
        """The files that documents came from, ordered by name -> number of their documents."""
        pages = self._pages(pb.ListSourcesRequest(collection=collection, page_size=1000))
        return {found.source: found.num_documents async for page in pages for found in page.sources}

    @overload
    async def search(
        self, collection: str, /, queries: Sequence[str | NDArray[np.floating]], **options: Unpack[SearchOptions]
    ) -> SearchResults: ...
    @overload
    async def search(
        self, query: str, /, *, collection: str = DEFAULT_COLLECTION, **options: Unpack[SearchOptions]
    ) -> SearchResult: ...
    async def search(
        self,
        query_or_collection: str = "",
        queries: Sequence[str | NDArray[np.floating]] = _NOT_GIVEN,
        *,
        collection: str = DEFAULT_COLLECTION,
        top_k: int | None = None,
        mode: SearchMode | None = None,
        combine: Combination = "",
        where: Filter | None = None,
        exact: bool = False,
        min_revision: int = 0,
        evidence: bool = False,
        num_words: int | None = None,
        include_document: bool | None = None,
        min_confidence: float | None = None,
        diversify: float | None = None,
        group: bool | None = None,
        use_reader: bool | None = None,
        model: str = "",
    ) -> SearchResult | SearchResults:
        """The best documents for a query, by facets and words: ``search("when is it open")``.

        With two arguments, a collection and queries, the result has an entry for each query. With ``combine="sum"``, a
        document must answer all facets of a query, with ``any`` any of them. Without it, a text with several questions
        is answered by ``any``, another one by ``sum``.
        """
        if not isinstance(query_or_collection, str) or isinstance(queries, str):
            given = [query_or_collection] if queries is _NOT_GIVEN else [query_or_collection, queries]
            got = ", ".join(type(argument).__name__ for argument in given)
            raise TypeError(f"write search(query, collection=name) or search(collection, [query, ...]), got ({got})")
        is_one = queries is _NOT_GIVEN
        if is_one:
            queries = [query_or_collection]
        elif query_or_collection:
            collection = query_or_collection
        check_iterable("queries", queries)
        request = request_from(pb.SearchRequest, locals(), where=filter_message(where))
        parts = await self._call_parts(
            request, "queries", "max_queries_per_search", lambda limits: max_with_evidence(limits, request)
        )
        warn_of(parts[0].warnings)
        results = [from_message(part, SearchResults) for part in parts]
        if is_one:
            return results[0][0]
        return replace(join(results), exhaustive=all(part.exhaustive for part in parts), warnings=results[0].warnings)

    async def rerank(
        self,
        query: str,
        texts: Sequence[str],
        *,
        top_k: int | None = None,
        mode: SearchMode | None = None,
        use_reader: bool | None = None,
        model: str = "",
    ) -> RerankedTexts:
        """Texts ordered by how well they answer a query, scored as in a search of a collection of these texts."""
        request = request_from(pb.RerankRequest, locals())
        return from_message(await self._call(request), RerankedTexts)
