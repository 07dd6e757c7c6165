"""The document engine: collections, documents and search over one data directory.

The document store is the truth and the vector index is derived from it. Shape letters: Q queries, K facets,
D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.documents.confidence import RelevanceCurve
from facets.documents.diagnosis import (
    CollectionDiagnosis,
    CollectionMap,
    diagnose_collection,
    map_collection,
)
from facets.documents.encoding import check_collection_name, check_ids, check_text, encode_documents, encode_json
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, check_search_fields
from facets.documents.filters import Filter, validate
from facets.documents.following import Follower
from facets.documents.index_manager import IndexManager
from facets.documents.opening import open_store
from facets.documents.ranking import SearchRequest
from facets.documents.reading import Reader, info_of
from facets.documents.records import CollectionModel, CollectionRecord
from facets.documents.reindexing import Reindexer, ReindexStep, TargetModel
from facets.documents.search import Searcher, check_search
from facets.documents.store import DocumentStore
from facets.documents.types import (
    MAX_CONFIG_BYTES,
    MAX_NUM_FACETS,
    CollectionInfo,
    CountResult,
    DeleteResult,
    Document,
    DocumentPage,
    GetResult,
    JsonValue,
    SearchResult,
    UpsertResult,
)
from facets.errors import (
    DamagedDocumentsError,
    IndexAwayError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    StorageError,
)
from facets.index.config import MAX_PAGE_SIZE, MAX_TEXT_BYTES, EngineConfig
from facets.storage import DirectoryLock, SqlDatabase, clear_errors, make_private_directory

MAX_DIM = 4096  # D of a collection
_Check = Callable[[], None] | None
_SEARCH_ATTEMPTS = 3  # the last one holds off writers, so it always sees one state


class CollectionEngine:
    """Stores documents durably and searches them by their facets; every method is thread-safe.

    Writes are durable and visible to searches when the method returns. Reads run beside writes. Every read takes
    ``min_revision`` and every result carries the revision that it saw (``index_revision``); revisions count the
    writes of the data directory.

    Raises (every method): StorageError when the store cannot be read or written (disk full, damaged page,
    engine closed): nothing of the call was stored. Reads raise NotReadyError when ``min_revision`` lies in
    the future. Methods that take a collection's name raise NotFoundError (``resource_type="collection"``) when
    there is none.

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
        """Opens a data directory, creating it when absent, and loads every collection's index.

        Args:
            data_dir: The directory; only one engine at a time may have it open.
            config: Settings; the defaults when None.

        Raises:
            StorageError: The directory is in use by another process (its pid is named), cannot be written, holds no
                database of ours, or has lost the one or the last writes that it had.
        """
        config = config or EngineConfig()
        directory = Path(data_dir)
        snapshots = directory / "indexes"
        with clear_errors(f"data directory {directory} cannot be created"):
            make_private_directory(directory)
            make_private_directory(snapshots)
        with ExitStack() as undo:
            lock = DirectoryLock(directory)
            undo.callback(lock.close)
            store = open_store(directory, config)
            undo.callback(store.close)
            indexes = IndexManager(store, snapshots, config)
            with store.view() as view:
                revision, records = view.revision(), view.all_collections()
            indexes.open(records)
            engine = cls(lock, store, indexes, revision)
            if config.background:
                engine._follower.start()
            undo.pop_all()
        return engine

    def __init__(self, lock: DirectoryLock, store: DocumentStore, indexes: IndexManager, revision: int) -> None:
        """Use :meth:`open`."""
        self._lock = lock
        self._store = store
        self._indexes = indexes
        self._follower = Follower(store, indexes, revision)
        self._reader = Reader(store)
        self._searcher = Searcher(store, indexes)
        self._reindexer = Reindexer(store, indexes, self._follower)
        self._closed = False

    def close(self) -> None:
        """Saves the indexes and lets go of the data directory. Idempotent."""
        with self._indexes.write_lock:
            if self._closed:
                return
            self._closed = True
        self._follower.close()
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
        """The newest revision that every read sees."""
        return self._follower.revision

    @property
    def shared_database(self) -> SqlDatabase | None:
        """What several servers keep their state in; None: this process has the data directory to itself."""
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
        config: Mapping[str, JsonValue] | None = None,
        search_fields: Mapping[str, float] | None = None,
    ) -> CollectionInfo:
        """Creates an empty collection.

        Args:
            name: ``[a-z0-9][a-z0-9_-]{0,63}``.
            model: Name of the model that encodes its documents.
            model_revision: Revision of that model.
            num_facets: K, 1 to 256.
            dim: D, 1 to 4096; a multiple of 32 is several times faster.
            space: What models must share to search each other's collections; empty: this model's own.
            config: Free JSON object kept with the collection.
            search_fields: Fields of payloads that are searched with the text, and what their words weigh, see
                :mod:`facets.documents.fields`; None: those of ``DEFAULT_SEARCH_FIELDS``.

        Raises:
            InvalidInputError: A name, number or config outside these rules.
            ConflictError: A collection of that name exists.
        """
        check_collection_name(name)
        for argument, text in (("model", model), ("model_revision", model_revision), ("space", space)):
            check_text(text, path=(argument,), max_bytes=MAX_TEXT_BYTES)
        for argument, number, limit in (("num_facets", num_facets, MAX_NUM_FACETS), ("dim", dim, MAX_DIM)):
            if not 1 <= number <= limit:
                raise InvalidInputError(f"must be 1 to {limit}, got {number}", path=argument)
        encoded = encode_json(config or {}, path=("config",), max_bytes=MAX_CONFIG_BYTES)
        fields = check_search_fields(DEFAULT_SEARCH_FIELDS if search_fields is None else search_fields)
        with self._indexes.write_lock:
            by = CollectionModel(model, model_revision, space, num_facets, dim, fields)
            record = self._store.create_collection(name, by, config=encoded)
            # It is there, and searched once the index is, unless another server has deleted it since.
            with suppress(IndexAwayError, NotFoundError, NotReadyError):
                self._indexes.live(record)
            self._follower.changed(record.revision)
        return info_of(record, self._indexes)

    def list_collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, in the order of names."""
        with self._store.view() as view:
            return tuple(info_of(record, self._indexes) for record in view.collections())

    def get_collection(self, name: str) -> CollectionInfo:
        """What anybody may want to know of the collection of that name."""
        return info_of(self.record(name), self._indexes)

    def delete_collection(self, name: str) -> DeleteResult:
        """Deletes a collection with its documents; no read from the revision on sees it."""
        record = self.record(name)
        with self._indexes.collection_lock(record), self._indexes.write_lock:
            record = self.record(name, record)
            with self._store.view() as view:
                copy = view.copy_of(record)
            revision = self._store.delete_collection(record)
            self._indexes.drop(record)
            if copy is not None:
                self._indexes.drop(copy)
            self._follower.changed(revision)
            return DeleteResult(revision=revision, num_deleted=record.num_documents)

    def upsert(
        self, name: str, documents: Sequence[Document], *, seen: CollectionRecord | None = None, check: _Check = None
    ) -> UpsertResult:
        """Stores documents, replacing those of the same id; all of them or none.

        Args:
            name: The collection.
            documents: At most ``MAX_BATCH_DOCUMENTS``; ids differ.
            seen: The collection for whose model the facets were made, as :meth:`record` gave it: another one of the
                same name counts as not there. None: whichever there is.
            check: Called when no other write of any server can come before this one; what it raises ends the call.

        Raises:
            InvalidInputError: An id twice, NaN or infinite facets, the wrong K or D, or too much; nothing was stored.
        """
        record = self.record(name, seen)
        batch = encode_documents(documents, record)
        with self._indexes.collection_lock(record), self._indexes.write_lock:
            self.record(name, record)
            if not batch.ids:
                return UpsertResult(revision=self.revision, num_inserted=0, num_updated=0)
            write = self._store.upsert(record, batch, check=check)
            self._follower.wrote(record, write, batch)
        num_updated = write.num_removed
        return UpsertResult(revision=write.revision, num_inserted=len(batch.ids) - num_updated, num_updated=num_updated)

    def get(
        self, name: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int | None = None
    ) -> GetResult:
        """Documents by id.

        Args:
            name: The collection.
            ids: At most ``MAX_BATCH_DOCUMENTS``; repeated ids are answered once.
            include_facets: Whether to read the facet embeddings too.
            min_revision: The read must see the writes up to this revision.

        Raises:
            InvalidInputError: Several documents have more than ``MAX_READ_BYTES`` together.
        """
        check_ids(ids, path=("ids",))
        return self._reader.get(name, ids, include_facets=include_facets, min_revision=min_revision)

    def delete(self, name: str, *, ids: Sequence[str] | None = None, where: Filter | None = None) -> DeleteResult:
        """Deletes documents by id or by filter, all of them or none; ids without a document are ignored.

        Raises:
            InvalidInputError: Not exactly one of ``ids`` and ``where`` is given.
        """
        if (ids is None) == (where is None):
            raise InvalidInputError("or where must be given, got both or neither", path="ids")
        if ids is not None:
            check_ids(ids, path=("ids",))
        if where is not None:
            validate(where)
        record = self.record(name)
        with self._indexes.collection_lock(record), self._indexes.write_lock:
            self.record(name, record)
            warnings = self._reader.warnings(name, where)
            write = self._store.delete(record, ids=ids, where=where)
            self._follower.wrote(record, write)
        return DeleteResult(revision=write.revision, warnings=warnings, num_deleted=write.num_removed)

    def list_documents(
        self,
        name: str,
        *,
        page_size: int = 100,
        page_token: str = "",
        where: Filter | None = None,
        include_facets: bool = False,
        min_revision: int | None = None,
    ) -> DocumentPage:
        """One page of the documents, in the order of ids (by code point).

        Pages stay consistent under writes: a document that exists throughout is listed exactly once.

        Args:
            name: The collection.
            page_size: 1 to ``MAX_PAGE_SIZE``.
            page_token: ``next_page_token`` of the page before, with the same filter; empty for the first page.
            where: Only documents whose payload matches.
            include_facets: Whether to read the facet embeddings too.
            min_revision: The read must see the writes up to this revision.

        Raises:
            InvalidInputError: A page size out of range, a token of another listing.
        """
        if not 1 <= page_size <= MAX_PAGE_SIZE:
            raise InvalidInputError(f"must be 1 to {MAX_PAGE_SIZE}, got {page_size}", path="page_size")
        if where is not None:
            validate(where)
        return self._reader.page(
            name,
            page_size=page_size,
            page_token=page_token,
            where=where,
            include_facets=include_facets,
            min_revision=min_revision,
        )

    def count(self, name: str, *, where: Filter | None = None, min_revision: int | None = None) -> CountResult:
        """Number of documents, of those that match the filter when there is one."""
        if where is not None:
            validate(where)
        return self._reader.count(name, where=where, min_revision=min_revision)

    def search(
        self,
        name: str,
        request: SearchRequest,
        *,
        curve: RelevanceCurve | None = None,
        seen: CollectionRecord | None = None,
    ) -> SearchResult:
        """Finds the documents that answer the facets and the words of the queries best.

        Documents that are damaged on disk are left out and named in the log; see ``CollectionInfo.num_damaged``.

        The score of the facets is ``sum_j w_j max_k cos(q_j, F_k)``: each of the query counts with the closest of the
        document.

        Args:
            name: The collection.
            request: What to look for, and which hits of it.
            curve: Gives hits their confidence; None: they have none.
            seen: As for :meth:`upsert`.

        Raises:
            InvalidInputError: Wrong shape or values, or a mode or ``min_confidence`` without what it needs.
        """
        if request.where is not None:
            validate(request.where)
        record = self.record(name, seen, indexed=request.min_revision)
        search = check_search(request, dim=record.dim, curve=curve)
        attempt, left_out = 0, set[int]()
        while attempt < _SEARCH_ATTEMPTS:
            revision = self._follower.check(request.min_revision)
            last = attempt == _SEARCH_ATTEMPTS - 1
            try:
                with self._follower.held(record) if last else nullcontext():
                    found = self._searcher.search(record, search)
            except DamagedDocumentsError as error:
                if left_out.issuperset(error.damaged):
                    raise
                left_out.update(error.damaged)
                self._indexes.leave_out(record, error.damaged)
                continue
            if found is not None:
                warnings = self._reader.warnings(name, request.where)
                # The state is that of the last write to the collection, which may have come since.
                return replace(found, index_revision=max(revision, found.index_revision), warnings=warnings)
            attempt += 1
            self._follower.catch_up()
            record = self.record(name, seen or record, indexed=0)  # the collection itself may be gone, or another one
        raise StorageError(f"collection {name!r} disagrees with its index: restart the server to rebuild it")

    def diagnose(
        self,
        name: str,
        queries: NDArray[np.floating],
        *,
        seed: int = 1,
        seen: CollectionRecord | None = None,
    ) -> CollectionDiagnosis:
        """Looks at a collection as a whole: its vectors, whether facets pay, what its index misses.

        Args:
            name: The collection.
            queries: ``[Q, D]``, a vector each of questions, in its space; ``[0, D]``: only vectors are described.
            seed: Of the samples of a large collection.
            seen: As for :meth:`upsert`.

        Raises:
            InvalidInputError: The collection is empty, or the queries are not of its space.
        """
        record = self.record(name, seen)
        with self._store.view() as view:
            return diagnose_collection(
                view,
                view.collection_unchanged(record),
                queries,
                search=lambda request: self.search(name, request, seen=record),
                seed=seed,
            )

    def map(
        self, name: str, *, max_documents: int = 0, seed: int = 1, seen: CollectionRecord | None = None
    ) -> CollectionMap:
        """A collection as points of a plane; see ``map_collection``, and for ``seen`` :meth:`upsert`."""
        record = self.record(name, seen)
        with self._store.view() as view:
            record = view.collection_unchanged(record)
            return map_collection(view, record, max_documents=max_documents, seed=seed)

    def reindex(self, name: str, target: TargetModel, *, budget_s: float | None = None) -> ReindexStep:
        """Moves a collection to another model, or another revision of its own, by encoding its texts anew.

        Meanwhile the collection answers and takes writes as it was; then it moves at once, with every write made until
        then. Documents keep their ids, payloads and revisions; facets that a caller had given are replaced by those
        of the text. Interrupted by an error or a crash, the collection stays as it was, and the next call goes on
        where the last one ended. A collection that is there already has moved.

        Args:
            name: The collection.
            target: The model. Another one than in the last call starts over; the one that the collection has gives
                up a move that was begun.
            budget_s: Return after about so many seconds even when it is not done; None: when it is done.

        Raises:
            Exception: What ``target.encode`` raised.
        """
        return self._reindexer.step(name, target, budget_s=budget_s)

    def check_directory(self) -> None:
        """Looks whether the data directory is still there, and PostgreSQL where that is the store; for health checks.

        Raises:
            StorageError: It was deleted, moved or replaced, or does not answer; so writes are refused.
        """
        self._lock.check()
        self._store.check_place()

    def checks(self) -> dict[str, Callable[[], None]]:
        """Who else must answer, by name; a check takes a second or so and raises StorageError."""
        store = {"postgres": self._store.check_place} if self._store.is_shared else {}
        return {**store, **self._indexes.checks()}

    def num_writes_behind(self) -> int:
        """Writes that the store has seen and the indexes of this process have not; without other processes 0."""
        return self._follower.num_behind()

    def num_pending(self) -> int:
        """Documents that are stored and found, and wait to be folded into an index or sent to Qdrant."""
        return self._indexes.num_pending()

    def maintain(self) -> None:
        """Folds new documents into indexes and saves those that are due; the background thread calls it."""
        self._indexes.maintain()

    def record(
        self, name: str, seen: CollectionRecord | None = None, *, indexed: int | None = None
    ) -> CollectionRecord:
        """The collection of that name as a call needs it: cheap at any size, and what ``seen`` takes.

        With ``indexed`` as indexes have it that have at least this revision.
        """
        if indexed is not None:
            number = None if seen is None else seen.number
            found = self._follower.record(name, number=number, min_revision=indexed)
            if found is not None:
                return found
        with self._store.view() as view:
            record = view.collection(name)
        if seen is None or seen.number == record.number:
            return record
        if seen.created_us == record.created_us:
            raise NotReadyError(
                f"collection {name!r} moved to revision {record.model_revision} of model {record.model} meanwhile: "
                "send the call again"
            )
        raise NotFoundError(
            f"collection {name!r} was deleted and another one of that name made meanwhile",
            resource_type="collection",
            resource_name=name,
        )
