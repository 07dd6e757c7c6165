"""The indexes of all collections in memory, kept in step with the store, maintained in the background, saved on disk.

Every write to a shared store is logged there with its revision. A server applies the writes of others to its own
indexes, one state of the store at a time, so that two servers at one revision give the same answers.
Shape letters: S places in an index, K facets of a place, D dimensions.
"""

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Ints
from facets.documents.records import (
    NO_ROWS,
    CollectionInfo,
    CollectionRecord,
    CollectionState,
    LostRevisions,
    StoreWrite,
    check_revision,
)
from facets.documents.store import DocumentStore
from facets.documents.view import StoreView
from facets.errors import DamagedDocumentsError, IndexAwayError, NotFoundError, NotReadyError, StorageError
from facets.index.backends import make_backend
from facets.index.base import IndexBackend, paged
from facets.index.config import EngineConfig
from facets.index.lexical import LexicalIndex, TermCounts
from facets.index.live import LiveIndex, Stopped
from facets.index.snapshot import load_snapshot, write_snapshot

logger = logging.getLogger(__name__)

ReadT = TypeVar("ReadT")
_RETIRED_AT_A_TIME = 256  # documents of a replaced collection deleted in one transaction, which blocks writers
_TERMS_AT_A_TIME = 1024
RETRY_S = 5.0  # after maintenance failed
_POLL_S = 0.5  # used when notifications of writes do not arrive
# A new snapshot is written when 1/8 (in the background) or 1/64 (on close) of an index is missing from the old one.
# Missing documents are read from the store when a snapshot is opened.
_BACKGROUND_SAVE_SHARE, _CLOSE_SAVE_SHARE = 8, 64
CLOSE_TIMEOUT_S = 10.0  # time for running training to notice that the engine closes


@dataclass(eq=False, slots=True)
class _Collection:
    record: CollectionRecord  # as the indexes have it
    lock: threading.RLock = field(default_factory=threading.RLock)  # held during writes
    live: LiveIndex | None = None
    lexical: LexicalIndex | None = None
    damaged: dict[int, str] = field(default_factory=dict)  # documents known to be damaged on disk: row -> id

    def unload(self) -> None:
        self.live = self.lexical = None

    def leave_out(self, damaged: Mapping[int, str]) -> None:
        """Remembers damaged documents, and logs new ones."""
        new = {row: id for row, id in damaged.items() if row not in self.damaged}
        self.damaged |= new
        for id in new.values():
            logger.error(
                "document %r of collection %s is damaged on disk and left out of searches: store it again or delete it",
                id, self.record.name,
            )  # fmt: skip


class CollectionSource:
    """Reads one collection from the store for its indexes, leaving out damaged documents.

    Each read opens a separate view unless one is given: one long view would keep SQLite from truncating its log.
    """

    def __init__(self, store: DocumentStore, collection: _Collection, view: StoreView | None = None) -> None:
        self._store, self._collection, self._view = store, collection, view
        self._record = collection.record
        self.num_facets, self.dim = self._record.num_facets, self._record.dim

    @contextmanager
    def one_state(self) -> Iterator[CollectionRecord]:
        """Makes all reads in the block see one state; yields the collection in it."""
        with self._store.view() as self._view:
            try:
                yield self._view.collection_unchanged(self._record)
            finally:
                self._view = None

    def _open_view(self) -> AbstractContextManager[StoreView]:
        return self._store.view() if self._view is None else nullcontext(self._view)

    def revision(self) -> int:
        """Revision of the store."""
        with self._open_view() as view:
            return view.revision()

    def rows(self) -> Ints:
        """Rows of all parts, ascending."""
        with self._open_view() as view:
            return view.document_rows(self._record).parts

    def terms(self, rows: Ints) -> tuple[Ints, Sequence[TermCounts]]:
        """The given rows that exist and are intact, ascending, and their terms."""
        return self._read_intact(rows, lambda view, rows: view.terms(self._record, rows))

    def read(self, rows: Ints) -> tuple[Ints, NDArray[np.float16]]:
        """See :class:`facets.index.base.FacetSource`."""

        def read(view: StoreView, rows: Ints) -> tuple[Ints, NDArray[np.float16]]:
            existing = view.existing(rows)
            stored = view.facets(self._record, existing)
            return paged(existing, stored.units, stored.starts, num_facets=self.num_facets)

        return self._read_intact(rows, read)

    def _read_intact(self, rows: Ints, read: Callable[[StoreView, Ints], ReadT]) -> ReadT:
        try:
            with self._open_view() as view:
                return read(view, rows)
        except DamagedDocumentsError as error:
            self._collection.leave_out(error.damaged)
            return self._read_intact(np.setdiff1d(rows, list(error.damaged)), read)


class IndexManager:
    """The indexes of a data directory and the threads that maintain and update them; thread-safe."""

    def __init__(self, store: DocumentStore, directory: Path, config: EngineConfig) -> None:
        # Held while a write is made in the store and applied to the indexes, so that indexes see writes in the order of
        # revisions. Reentrant. Take the lock of a collection first if both are needed.
        self.write_lock = threading.RLock()
        self.revision = 0  # that all indexes have reached
        self._store = store
        self._directory = directory
        self._config = config
        self._backend = make_backend(config)
        self._collections: dict[int, _Collection] = {}  # by number
        self._lost: LostRevisions = ()
        self._maintenance_lock = threading.Lock()
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._maintenance: threading.Thread | None = None
        self._following: threading.Thread | None = None

    def open(self, revision: int, records: Iterable[CollectionRecord]) -> None:
        """Loads all indexes and starts maintenance; a search tries a collection again that cannot be read.

        In the background if maintenance runs there; a search or write that needs an index earlier loads it itself.
        ``records``: every collection of the store at ``revision``.
        """
        current = [record for record in records if record.state is not CollectionState.RETIRED]
        for record in current:
            if record.state is CollectionState.BUILDING:
                logger.warning(
                    "a move to model %s was not finished (%s): reindex the collection again, or reindex it with its "
                    "current model to abandon the move", record.model, record.name,
                )  # fmt: skip
        paths = {self._path(record) for record in current}
        for path in self._directory.iterdir():
            if path.suffix in (".part", ".tmp", ".index") and path not in paths and path.is_file():
                _remove(path)
        self.revision = revision
        self._wake.set()
        if not self._config.background:
            for record in current:
                self._load_logged(record)
            self.catch_up()
            return
        self._maintenance = threading.Thread(
            target=self._run, args=(current,), name="facets-index-maintenance", daemon=True
        )
        self._maintenance.start()
        self.catch_up()
        if self._store.is_shared:
            self._following = threading.Thread(target=self._follow, name="facets-index-following", daemon=True)
            self._following.start()

    def _load_logged(self, record: CollectionRecord) -> bool:
        """Loads the index of a collection; False if the collection is gone."""
        try:
            self.live(record)
        except (NotFoundError, NotReadyError):  # another server deleted or moved it
            return False
        except StorageError as error:
            logger.error("collection %s cannot be searched: %s", record.name, error)
        return True

    def _of(self, record: CollectionRecord) -> _Collection:
        return self._collections.get(record.number) or self._collections.setdefault(record.number, _Collection(record))

    def live(self, record: CollectionRecord) -> LiveIndex:
        """The facet index of a collection; loads it if it is not in memory.

        Raises NotFoundError if the collection was deleted, NotReadyError if it moved to another model.
        """
        if (live := self._of(record).live) is None:
            with self.write_lock:
                collection = self._of(record)
                if (live := collection.live) is None:
                    collection.record = self._unchanged(record)
                    collection.live = live = self._load(collection)
                    self._wake.set()
        return live

    def lexical(self, record: CollectionRecord) -> LexicalIndex:
        """The lexical index of a collection, built from the store if it is not in memory; raises as :meth:`live`."""
        if (lexical := self._of(record).lexical) is None:
            with self.write_lock:
                collection = self._of(record)
                if (lexical := collection.lexical) is None:
                    collection.record = self._unchanged(record)
                    collection.lexical = lexical = self._load_lexical(collection)
        return lexical

    def _unchanged(self, record: CollectionRecord) -> CollectionRecord:
        with self._store.view() as view:
            return view.collection_unchanged(record)

    def collection_lock(self, record: CollectionRecord) -> threading.RLock:
        """Held during every write to the collection; a reader that holds it blocks writes. Reentrant."""
        return self._of(record).lock

    def check_revision(self, min_revision: int | None) -> int:
        """The revision; see :func:`facets.documents.records.check_revision`."""
        if min_revision is not None and self.revision < min_revision:
            self.catch_up()
        return check_revision(self.revision, min_revision, self._lost)

    def current(self, record: CollectionRecord) -> CollectionRecord:
        """A collection as the indexes have it, or the store if none is loaded; raises as :meth:`live`."""
        collection = self._collections.get(record.number)
        is_loaded = collection is not None and (collection.live is not None or collection.lexical is not None)
        return collection.record if collection is not None and is_loaded else self._unchanged(record)

    def num_behind(self) -> int:
        """Number of writes in the store that the indexes have not seen."""
        if not self._store.is_shared:
            return 0
        with self._store.view() as view:
            return max(0, view.revision() - self.revision)

    def checks(self) -> dict[str, Callable[[], None]]:
        """Checks of external services of the indexes by name; a check takes about a second, raises StorageError."""
        return {self._backend.dependency: self._backend.check} if self._backend.dependency else {}

    def num_pending(self) -> int:
        """Documents of all collections that are only in exact tails, not in the index of the backend yet."""
        indexes = [collection.live for collection in list(self._collections.values())]
        return sum(live.num_pending for live in indexes if live is not None)

    def describe(self, record: CollectionRecord) -> CollectionInfo:
        """A collection and the state of its index."""
        collection, snapshot_bytes = self._of(record), 0
        live = collection.live
        with suppress(OSError):  # not saved, or being replaced
            snapshot_bytes = self._path(record).stat().st_size
        return CollectionInfo(
            **asdict(record),
            num_damaged=len(set(collection.damaged.values())),
            index_kind="exact" if live is None else live.kind,
            num_vectors=0 if live is None else live.num_vectors,
            snapshot_bytes=snapshot_bytes,
        )

    def wrote(self, record: CollectionRecord, write: StoreWrite) -> None:
        """Applies a write of this process to a collection, given its state before; called under ``write_lock``."""
        if self._store.is_shared and write.revision != self.revision + 1:  # other servers wrote, too
            self.catch_up()
            return
        self._apply(write.after(record), [write])
        self.revision = write.revision

    def changed(self, revision: int) -> None:
        """Records that this process created or deleted a collection in the store and the indexes."""
        self.catch_up()
        self.revision = max(self.revision, revision)

    def catch_up(self) -> None:
        """Applies everything that was written to a shared store."""
        if not self._store.is_shared:
            return
        with self.write_lock, self._store.view() as view:
            revision, self._lost = view.revision(), view.lost()
            if revision == self.revision:
                return
            if revision < self.revision:
                logger.error("the store went back from revision %d to %d: it lost writes", self.revision, revision)
            writes = None if revision < self.revision else view.writes_after(self.revision)
            records = view.all_collections()
            current = {record.number: record for record in records if record.state is not CollectionState.RETIRED}
            for number, collection in list(self._collections.items()):
                if number not in current:
                    self.drop(collection.record)
            for number, record in current.items():
                if writes is None:  # the log does not reach back that far: everything is loaded again
                    self._of(record).unload()
                elif number in writes:
                    self._apply(record, writes[number], view=view)
                if self._load_logged(record):
                    self._of(record).record = record
            self.revision = revision

    @contextmanager
    def writes_blocked(self, record: CollectionRecord) -> Iterator[None]:
        """Blocks writes to a collection until the block ends; the indexes include all earlier ones."""
        with ExitStack() as stack:
            stack.enter_context(self.collection_lock(record))
            if self._store.is_shared:
                stack.enter_context(self.write_lock)
                stack.enter_context(self._store.hold_writes())
                self.catch_up()
            yield

    def _follow(self) -> None:
        for _ in self._store.writes(_POLL_S):
            if self._closing.is_set():
                return
            try:
                self.catch_up()
            except Exception as error:  # even after a bug: without this thread the server would stay behind
                logger.warning("cannot follow the store, trying again: %s", error)

    def _apply(self, record: CollectionRecord, writes: Sequence[StoreWrite], *, view: StoreView | None = None) -> None:
        """Reads from the store what writes changed, up to the revision of ``record``, and changes the indexes alike.

        After an error the indexes may be out of step, so they are unloaded; one of the store is only logged, since the
        writes are durable: the next search loads the indexes again.
        """
        collection = self._of(record)
        collection.record = record
        source = CollectionSource(self._store, collection, view)
        live, lexical = collection.live, collection.lexical
        try:
            if live is not None and live.revision < record.revision:
                added, removed = _net_changes(writes, after=live.revision)
                rows, units = source.read(added) if len(added) else (added, None)
                live.apply(record.revision, added=rows, removed=removed, units_SKD=units)
            if lexical is not None and lexical.revision < record.revision:
                added, removed = _net_changes(writes, after=lexical.revision)
                rows, terms = source.terms(added)
                lexical.apply(record.revision, added=rows, removed=removed, terms=terms)
            for row in np.concatenate([write.removed for write in writes]).tolist() if collection.damaged else ():
                collection.damaged.pop(row, None)
        except StorageError as error:
            collection.unload()
            logger.error("collection %s cannot be searched: %s", record.name, error)
        except BaseException:
            collection.unload()
            raise
        if live is not None and live.is_due():
            self._wake.set()

    def leave_out(self, record: CollectionRecord, damaged: Mapping[int, str]) -> None:
        """Removes documents that are damaged on disk from the indexes."""
        rows = np.array(sorted(damaged), dtype=np.int64)
        with self.write_lock:
            collection = self._of(record)
            for index in (collection.live, collection.lexical):
                if index is not None:
                    index.apply(index.revision, added=rows[:0], removed=rows)
            collection.leave_out(damaged)

    def drop(self, record: CollectionRecord) -> None:
        """Forgets a deleted or retired collection; the maintenance thread deletes the documents of the latter."""
        self._wake.set()
        self._collections.pop(record.number, None)
        _remove(self._path(record))
        try:
            self._backend_of(record).drop()
        except StorageError as error:
            logger.warning("index of %s not deleted: %s", record.name, error)

    def maintain(self) -> None:
        """Builds, folds and purges what is due, saves snapshots, deletes retired collections.

        Raises the error of the first collection that failed, after all others were maintained.
        """
        errors: list[Exception] = []
        with self._maintenance_lock:
            while not self._closing.is_set() and self._store.delete_retired(_RETIRED_AT_A_TIME):
                pass
            for collection in list(self._collections.values()):
                if collection.live is None or self._closing.is_set():
                    continue
                try:
                    self._maintain(collection.record, collection.live)
                except Stopped:
                    raise
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def _maintain(self, record: CollectionRecord, live: LiveIndex) -> None:
        with suppress(NotFoundError, NotReadyError):  # deleted or moved in between
            self.lexical(record)  # loads it before the first search needs it
        if live.is_due():
            live.maintain(self._closing.is_set)
            _return_free_memory()
        if live.num_unsaved >= max(self._config.snapshot_every_writes, len(live) // _BACKGROUND_SAVE_SHARE):
            self._save(record, live)

    def close(self) -> None:
        """Stops the threads and saves changed indexes; a failure to save is logged, since the store has everything."""
        self._closing.set()
        self._wake.set()
        if self._following is not None:
            self._following.join(4 * _POLL_S)
        if self._maintenance is not None:
            self._maintenance.join(CLOSE_TIMEOUT_S)
            if self._maintenance.is_alive():  # training cannot be interrupted; the next start builds from the store
                logger.warning("index maintenance still runs after %.0f s: indexes not saved", CLOSE_TIMEOUT_S)
                return
        with self._maintenance_lock:
            for collection in list(self._collections.values()) if self._config.snapshot_on_close else ():
                live = collection.live
                if live is not None and live.num_unsaved > len(live) // _CLOSE_SAVE_SHARE:
                    try:
                        self._save(collection.record, live)
                    except StorageError as error:
                        logger.warning("index of %s not saved: %s", collection.record.name, error)

    def _backend_of(self, record: CollectionRecord) -> IndexBackend:
        return self._backend.of(f"facets-{self._store.store_id}-{record.number}")

    def _path(self, record: CollectionRecord) -> Path:
        return self._directory / f"{record.number}.index"

    def _load(self, collection: _Collection) -> LiveIndex:
        record = collection.record
        source, backend = CollectionSource(self._store, collection), self._backend_of(record)
        base = backend.open(source)
        if base is None:
            expected = {"store_id": self._store.store_id, "collection": record.number}
            expected |= {"num_facets": record.num_facets, "dim": record.dim}
            base = load_snapshot(self._path(record), expected, backend, revision=source.revision())
        with source.one_state() as record:
            live = LiveIndex(source, backend, self._config, base=base, revision=record.revision)
            live.catch_up()
        logger.info("collection %s loaded: %d documents, %s index", record.name, len(live), live.kind)
        return live

    def _load_lexical(self, collection: _Collection) -> LexicalIndex:
        source = CollectionSource(self._store, collection)
        with source.one_state() as record:
            lexical, rows = LexicalIndex(record.revision), source.rows()
            for start in range(0, len(rows), _TERMS_AT_A_TIME):
                existing, terms = source.terms(rows[start : start + _TERMS_AT_A_TIME])
                lexical.apply(record.revision, added=existing, removed=NO_ROWS, terms=terms)
        return lexical

    def _save(self, record: CollectionRecord, live: LiveIndex) -> None:
        self._store.check_place()  # if the directory was moved, another server may use this path
        with self._store.view() as view:
            revision = view.revision()
        path, store_id = self._path(record), self._store.store_id
        live.save(
            lambda index: write_snapshot(path, index, store_id=store_id, collection=record.number, revision=revision)
        )

    def _run(self, records: Sequence[CollectionRecord]) -> None:
        for record in records:
            if not self._closing.is_set():
                self._load_logged(record)
        has_failed = False
        while True:
            self._wake.wait(RETRY_S if has_failed else None)
            self._wake.clear()
            if self._closing.is_set():
                return
            try:
                self.maintain()
                has_failed = False
            except Stopped:
                return
            except Exception as error:  # even after a bug: without this thread no write would be folded in
                has_failed = True
                is_away = isinstance(error, IndexAwayError)
                logger.error("index maintenance failed, trying again: %s", error, exc_info=not is_away)


def _net_changes(writes: Sequence[StoreWrite], *, after: int) -> tuple[Ints, Ints]:
    """Rows that the writes after a revision added and did not remove again, and rows that they removed."""
    new = [write for write in writes if write.revision > after]
    removed = np.concatenate([NO_ROWS, *(write.removed for write in new)])
    return np.setdiff1d(np.concatenate([NO_ROWS, *(write.added for write in new)]), removed), removed


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("index file %s not deleted, the next start tries again: %s", path, error.strerror)


def _return_free_memory() -> None:
    """Gives memory freed by training back to the system; glibc would keep 580 MB after 60,000 documents."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
