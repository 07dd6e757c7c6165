"""The document engine: collections, documents and search over one data directory.

The document store is the source of truth; indexes are derived from it. A search continues in ``queries`` (checks),
``search`` (candidates), ``ranking`` (scores, order, reasons), with ``facets.index.live`` and ``view``.
Shape letters: Q queries, K facets, D dimensions.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from facets.arrays import Ints
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoders import OpenReader
from facets.documents.encoding import check_collection_name, check_ids, check_source, check_unicode, encode_documents
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, check_search_fields
from facets.documents.filters import Filter, validate
from facets.documents.index_manager import IndexManager
from facets.documents.queries import SearchRequest, prepare_search
from facets.documents.records import (
    CollectionInfo,
    CollectionModel,
    CollectionRecord,
    CollectionState,
    DocumentRows,
    StoreWrite,
)
from facets.documents.reindexing import Reindexer, ReindexStep, TargetModel
from facets.documents.search import Searcher
from facets.documents.store import DocumentStore, open_store
from facets.documents.types import (
    MAX_NUM_FACETS,
    CountResult,
    DeleteResult,
    Document,
    DocumentPage,
    DocumentSource,
    GetResult,
    SearchResult,
    SourcePage,
    StoredDocument,
)
from facets.documents.view import StoreView
from facets.errors import (
    DamagedDocumentsError,
    IndexAwayError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    StorageError,
)
from facets.index.config import MAX_PAGE_BYTES, MAX_PAGE_SIZE, MAX_READ_BYTES, MAX_TEXT_BYTES, EngineConfig
from facets.language.languages import language_of
from facets.storage.directory import DirectoryLock
from facets.storage.files import clear_errors, make_private_directory
from facets.storage.sql import SqlDatabase

MAX_DIM = 4096  # D of a collection
_MAC_CHARS = 24  # of a page token
_SEARCH_ATTEMPTS = 3  # the last one blocks writers, so it always sees one state


class CollectionEngine:
    """Stores documents durably and searches them; every method is thread-safe.

    Writes are durable and visible to searches when the method returns. Reads run beside writes. Revisions count the
    writes of the data directory. Every result carries the revision that it saw as ``index_revision``; a read with
    ``min_revision`` sees the writes up to this revision. For ``seen``, see :meth:`record`.

    Raises (every method): StorageError if the store cannot be read or written; the call stored nothing. NotReadyError
    if ``min_revision`` lies in the future. NotFoundError (``resource_type="collection"``) if there is no such
    collection. InvalidInputError if an argument is invalid; nothing was stored.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with CollectionEngine.open(tempfile.mkdtemp()) as engine:
        ...     _ = engine.create_collection("news", model="m", model_revision="1", num_facets=1, dim=2)
        ...     _ = engine.upsert("news", [Document(id="a", text="A", facet_embeddings=np.array([[1.0, 0.0]]))])
        ...     query = SearchRequest(facets=np.array([[[2.0, 0.0]]], dtype=np.float32), top_k=3)
        ...     result = engine.search("news", query)
        >>> [(hit.id, hit.score) for hit in result.hits[0]]
        [('a', 1.0)]
    """

    @classmethod
    def open(cls, data_dir: str | Path, config: EngineConfig | None = None) -> "CollectionEngine":
        """Opens a data directory, creating it if missing, and loads every index. One engine at a time may use it.

        Raises StorageError if the directory is in use, cannot be written, or has lost its store or its last writes.
        """
        config = config or EngineConfig()
        directory = Path(data_dir)
        snapshots = directory / "indexes"
        for folder in (directory, snapshots):
            with clear_errors(f"data directory {folder} cannot be created"):
                make_private_directory(folder)
        with ExitStack() as undo:
            lock = DirectoryLock(directory)
            undo.callback(lock.close)
            store = open_store(directory, config)
            undo.callback(store.close)
            indexes = IndexManager(store, snapshots, config)
            with store.view() as view:
                revision, records = view.revision(), view.all_collections()
            indexes.open(revision, records)
            engine = cls(lock, store, indexes)
            undo.pop_all()
        return engine

    def __init__(self, lock: DirectoryLock, store: DocumentStore, indexes: IndexManager) -> None:
        """Use :meth:`open`."""
        self._lock = lock
        self._store = store
        self._indexes = indexes
        self.num_writes_behind, self.num_pending = indexes.num_behind, indexes.num_pending
        self._searcher = Searcher(store, indexes)
        self._reindexer = Reindexer(store, indexes)
        self._closed = False

    def close(self) -> None:
        """Saves the indexes and releases the data directory. Idempotent."""
        with self._indexes.write_lock:
            if self._closed:
                return
            self._closed = True
        self._indexes.close()
        try:
            self._store.close()
        finally:
            self._lock.close()

    def __enter__(self) -> "CollectionEngine":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def revision(self) -> int:
        """The newest revision that is visible to every read."""
        return self._indexes.revision

    @property
    def shared_database(self) -> SqlDatabase | None:
        """The database that several servers share; None if the store is a file in the data directory."""
        return self._store.database if self._store.is_shared else None

    def create_collection(
        self,
        name: str,
        *,
        model: str,
        model_revision: str,
        num_facets: int,
        dim: int,
        space: str = "",
        search_fields: Mapping[str, float] | None = None,
        language: str = "",
    ) -> CollectionInfo:
        """Creates an empty collection; raises ConflictError if it exists.

        ``name``: ``[a-z0-9][a-z0-9_-]{0,63}``. ``model_revision``: of the model that encodes its documents.
        ``num_facets``: K, 1 to 256. ``dim``: D, 1 to 4096; a multiple of 32 is several times faster. ``space``: models
        of one space search each other's collections; empty: the model has its own space. ``search_fields``: payload
        fields that are searched with the text, and the weights of their words; None: ``DEFAULT_SEARCH_FIELDS``.
        ``language``: ISO 639-1 code, whose stems and stop words searches use; empty: that of the first documents.
        """
        check_collection_name(name)
        for argument, text in (("model", model), ("model_revision", model_revision), ("space", space)):
            check_unicode(text, path=(argument,), max_bytes=MAX_TEXT_BYTES)
        for argument, number, limit in (("num_facets", num_facets, MAX_NUM_FACETS), ("dim", dim, MAX_DIM)):
            if not 1 <= number <= limit:
                instead = ": choose another model, or set truncate_dim of an encoder" * (argument == "dim")
                raise InvalidInputError(f"must be 1 to {limit}, got {number}{instead}", path=argument)
        collection_model = CollectionModel(
            model=model,
            model_revision=model_revision,
            space=space,
            num_facets=num_facets,
            dim=dim,
            search_fields=check_search_fields(DEFAULT_SEARCH_FIELDS if search_fields is None else search_fields),
            language=language and language_of(language).code,
        )
        with self._indexes.write_lock:
            record = self._store.create_collection(name, collection_model)
            # The collection exists even if its index cannot be created now, or another server has deleted it already.
            with suppress(IndexAwayError, NotFoundError, NotReadyError):
                self._indexes.live(record)
            self._indexes.changed(record.revision)
        return self._indexes.describe(record)

    def list_collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, ordered by name."""
        with self._store.view() as view:
            records = view.all_collections()
        return tuple(self._indexes.describe(one) for one in records if one.state is CollectionState.LIVE)

    def get_collection(self, name: str) -> CollectionInfo:
        """The properties of a collection."""
        return self._indexes.describe(self.record(name))

    def delete_collection(self, name: str) -> DeleteResult:
        """Deletes a collection with its documents."""
        record = self.record(name)
        with self._indexes.collection_lock(record), self._indexes.write_lock:
            record = self.record(name, record)
            revision, deleted = self._store.delete_collection(record)
            for one in deleted:
                self._indexes.drop(one)
            self._indexes.changed(revision)
            return DeleteResult(revision=revision, num_deleted=record.num_documents)

    def upsert(
        self,
        name: str,
        documents: Sequence[Document],
        *,
        seen: CollectionRecord | None = None,
        check: Callable[[], None] | None = None,
    ) -> StoreWrite:
        """Stores at most ``MAX_BATCH_DOCUMENTS`` of different ids, replacing those with the same ids; all or none.

        ``check``: called in the write transaction before anything is written; may raise.
        """
        record = self.record(name, seen)
        batch = encode_documents(documents, record)
        # No other server may give a new collection its language between the check and the write.
        others = nullcontext() if record.language else self._store.hold_writes()
        with self._indexes.collection_lock(record), self._indexes.write_lock, others:
            record, language = self.record(name, record), record.language
            if not documents:
                if check is not None:
                    check()
                return StoreWrite(revision=self.revision)
            if record.language != language:
                batch = encode_documents(documents, record)
            write = self._store.upsert(record, batch, check=check)
            self._indexes.wrote(record, write)
        return write

    def delete(
        self, name: str, *, ids: Sequence[str] | None = None, where: Filter | None = None, source: str = ""
    ) -> DeleteResult:
        """Deletes documents by id, or by filter, source or both; all or none; unknown ids are ignored."""
        if (ids is None) == (where is None and not source):
            raise InvalidInputError("or where or source must be given, and not ids with one of these", path="ids")
        if ids is not None:
            check_ids(ids, path=("ids",))
        validate(where, allow_empty=False)
        with self.view(name) as (view, record):
            warnings = view.filter_warnings(record, where)
        with self._indexes.collection_lock(record), self._indexes.write_lock:
            record = self.record(name, record)

            def find(view: StoreView) -> DocumentRows:
                return view.document_rows(record, where, source) if ids is None else view.documents_by_id(record, ids)

            write = self._store.delete(record, find)
            self._indexes.wrote(record, write)
        return DeleteResult(revision=write.revision, warnings=warnings, num_deleted=write.num_removed)

    def get(
        self, name: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int | None = None
    ) -> GetResult:
        """Documents by id, at most ``MAX_BATCH_DOCUMENTS`` of ``MAX_READ_BYTES``; repeated ids are answered once."""
        check_ids(ids, path=("ids",))
        with self.view(name) as (view, record):
            revision = view.check_revision(min_revision)
            rows = view.documents_by_id(record, ids).firsts
            num_bytes = view.num_bytes(rows, facets=include_facets, dim=record.dim).sum()
            if len(rows) > 1 and num_bytes > MAX_READ_BYTES:
                rule = f"are documents of {num_bytes} bytes, the limit is {MAX_READ_BYTES}: ask for fewer at a time"
                raise InvalidInputError(rule, path="ids")
            documents = {document.id: document for document in _read_documents(view, record, rows, include_facets)}
        unique_ids = dict.fromkeys(ids)
        return GetResult(
            documents=tuple(documents[id] for id in unique_ids if id in documents),
            missing_ids=tuple(id for id in unique_ids if id not in documents),
            index_revision=revision,
        )

    def list_documents(
        self,
        name: str,
        *,
        page_size: int = 100,
        page_token: str = "",
        where: Filter | None = None,
        source: str = "",
        include_facets: bool = False,
        include_document: bool = True,
        min_revision: int | None = None,
    ) -> DocumentPage:
        """One page of the documents, of one ``source`` if given, ordered by id; it ends after ``MAX_PAGE_BYTES``.

        Pages stay consistent under writes: a document that exists throughout is listed exactly once. ``page_size``: at
        most ``MAX_PAGE_SIZE``. ``page_token``: ``next_page_token`` of the page before, with the same filter and source.
        ``include_document`` False: only ids, sources and revisions.
        """
        if not include_document and include_facets:
            raise InvalidInputError("must be false without include_document", path="include_facets")
        validate(where)
        check_source(source, ("source",))
        with self.view(name) as (view, record):
            revision = view.check_revision(min_revision)
            after, token_after = self._page(record, page_size, page_token, where, source)
            rows = view.page(record, after=after, limit=page_size + 1, where=where, source=source)
            warnings = () if page_token else view.filter_warnings(record, where, rows)
            if include_document:
                ends = np.cumsum(view.num_bytes(rows[:page_size], facets=include_facets, dim=record.dim))
                num_documents = max(1, int(np.searchsorted(ends, MAX_PAGE_BYTES, side="right")))
                documents = _read_documents(view, record, rows[:num_documents], include_facets)
            else:
                documents = view.document_names(rows[:page_size])
        token = token_after(documents[-1].id) if len(rows) > len(documents) else ""
        return DocumentPage(documents=documents, next_page_token=token, index_revision=revision, warnings=warnings)

    def list_sources(self, name: str, *, page_size: int = 100, page_token: str = "") -> SourcePage:
        """One page of the sources of the documents, ordered by name; paged as :meth:`list_documents`."""
        with self.view(name) as (view, record):
            revision = view.revision()
            after, token_after = self._page(record, page_size, page_token, "sources")
            found = view.sources(record, after=after, limit=page_size + 1)
        sources = tuple(DocumentSource(source=source, num_documents=number) for source, number in found[:page_size])
        token = token_after(sources[-1].source) if len(found) > page_size else ""
        return SourcePage(sources=sources, next_page_token=token, index_revision=revision)

    def _page(
        self, record: CollectionRecord, size: int, token: str, *listing: object
    ) -> tuple[str, Callable[[str], str]]:
        """The id or other key after which a page starts, and what makes the token of the page after a key.

        A token is bound to its store, collection and listing. Raises InvalidInputError if this one belongs to another.
        """
        if not 1 <= size <= MAX_PAGE_SIZE:
            raise InvalidInputError(f"must be 1 to {MAX_PAGE_SIZE}, got {size}", path="page_size")

        def token_after(last: str) -> str:
            # The creation time identifies the collection: unlike its number, it stays when it moves to another model.
            bound = json.dumps([record.created_us, *listing, last], default=repr).encode()
            key = self._store.store_id.encode()
            return hashlib.blake2b(bound, key=key, digest_size=_MAC_CHARS // 2).hexdigest() + last

        last = token[_MAC_CHARS:]
        if token and token != token_after(last):
            rule = f"must be next_page_token of the same listing and filter, got {token[:40]!r}"
            raise InvalidInputError(rule, path="page_token")
        return last, token_after

    def count(self, name: str, *, where: Filter | None = None, min_revision: int | None = None) -> CountResult:
        """Number of documents, or of those that match a filter."""
        validate(where)
        with self.view(name) as (view, record):
            revision = view.check_revision(min_revision)
            num_documents = record.num_documents if where is None else view.count(record, where)
            warnings = view.filter_warnings(record, where)
        return CountResult(num_documents=num_documents, index_revision=revision, warnings=warnings)

    def search(
        self,
        name: str,
        request: SearchRequest,
        *,
        curve: RelevanceCurve | None = None,
        reader: OpenReader | None = None,
        seen: CollectionRecord | None = None,
    ) -> SearchResult:
        """Finds the documents that answer the facets and the words of the queries best.

        Documents that are damaged on disk are left out and logged; see ``CollectionInfo.num_damaged``. ``curve``: gives
        hits their confidence, and says what the scores of the model mean; None: they have no confidence, and scores are
        read as those of all-MiniLM-L6-v2. ``reader``: see ``Encoder.reader``.
        """
        validate(request.where)
        found = seen or self.record(name)
        self._indexes.check_revision(request.min_revision)
        record = self._indexes.current(found)
        search = prepare_search(request, dim=record.dim, curve=curve, language=record.language, reader=reader)
        attempt, left_out = 0, set[int]()
        while attempt < _SEARCH_ATTEMPTS:
            revision = self._indexes.check_revision(request.min_revision)
            is_last = attempt == _SEARCH_ATTEMPTS - 1
            try:
                with self._indexes.writes_blocked(record) if is_last else nullcontext():
                    result = self._searcher.search(record, search)
            except DamagedDocumentsError as error:
                if left_out.issuperset(error.damaged):
                    raise
                left_out.update(error.damaged)
                self._indexes.leave_out(record, error.damaged)
                continue
            if result is not None:
                # The collection may have been written after `revision` was read.
                return replace(result, index_revision=max(revision, result.index_revision))
            attempt += 1
            self._indexes.catch_up()
            record = self._indexes.current(record)  # raises if the collection was deleted or moved
        raise StorageError(f"collection {name!r} differs from its index: restart the server to rebuild it")

    def has_all(self, rows: Ints) -> bool:
        """Whether none of the documents at these rows was deleted or replaced; rows are never used again."""
        with self._store.view() as view:
            return len(view.existing(rows)) == len(rows)

    def reindex(self, name: str, target: TargetModel, *, budget_s: float | None = None) -> ReindexStep:
        """Moves a collection to another model by encoding its texts again; see :mod:`facets.documents.reindexing`.

        Documents keep their ids, payloads and revisions; facets given by a caller are replaced by those of the text.
        If ``target`` is not the last call's, the move starts over; the current model of the collection abandons it.
        ``budget_s``: return after about this many seconds even if the move is not complete; None: only when it is.
        Raises what ``target.encode`` raised; the next call continues.
        """
        return self._reindexer.step(name, target, budget_s=budget_s)

    def check_directory(self) -> None:
        """Raises StorageError unless data directory and store are still in place; for health checks."""
        self._lock.check()
        self._store.check_place()

    def checks(self) -> dict[str, Callable[[], None]]:
        """Checks of external services by name; a check takes about a second and raises StorageError."""
        store = {"postgres": self._store.check_place} if self._store.is_shared else {}
        return {**store, **self._indexes.checks()}

    def maintain(self) -> None:
        """Folds new documents into indexes and saves snapshots that are due; the background thread calls it."""
        self._indexes.maintain()

    def record(self, name: str, seen: CollectionRecord | None = None) -> CollectionRecord:
        """The record of the collection of that name; fast at any size.

        ``seen``: the record from an earlier call, for whose model facets were made; None: any.

        Raises NotFoundError if it was deleted since ``seen``, NotReadyError if it moved to another model.
        """
        with self.view(name, seen) as (_, record):
            return record

    @contextmanager
    def view(self, name: str, seen: CollectionRecord | None = None) -> Iterator[tuple[StoreView, CollectionRecord]]:
        """One state of the documents during a ``with`` block, and the record of a collection in it; see ``record``."""
        with self._store.view() as view:
            yield view, view.collection(name) if seen is None else view.collection_unchanged(seen)


def _read_documents(
    view: StoreView, record: CollectionRecord, rows: Ints, include_facets: bool
) -> tuple[StoredDocument, ...]:
    documents_by_row = view.documents(rows)
    documents = [documents_by_row[row] for row in rows.tolist()]
    if not include_facets:
        return tuple(documents)
    searched = [record.searched(document.text, document.payload, document.parts) for document in documents]
    counts = np.array([len(parts) for parts in searched], dtype=np.int64)
    stored = view.facets(record, DocumentRows(rows, counts).parts)
    embeddings, ends, with_facets = stored.units.astype(np.float32) * stored.norms[:, None], np.cumsum(counts), []
    for document, parts, end in zip(documents, searched, ends.tolist(), strict=True):
        starts, known = stored.starts[end - len(parts) : end + 1], stored.spans[end - len(parts) : end]
        spans = [part.in_document(own) for part, own in zip(parts, known, strict=True) if own is not None]
        with_facets.append(
            replace(
                document,
                facet_embeddings=embeddings[starts[0] : starts[-1]],
                facet_spans=np.concatenate(spans) if len(spans) == len(parts) else None,
                part_facets=tuple(np.diff(starts).tolist()) if len(parts) > 1 else (),
            )
        )
    return tuple(with_facets)
