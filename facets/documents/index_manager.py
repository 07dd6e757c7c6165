"""The index manager: the index of every collection in memory, in step with the store, and saved on disk.

Shape letters: S places in an index, K facets of a place, D dimensions.
"""

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch
from facets.documents.records import CollectionRecord, CollectionState, StoreWrite
from facets.documents.sources import CollectionSource, Quarantine
from facets.documents.store import DocumentStore
from facets.documents.views import StoreView
from facets.errors import IndexAwayError, IndexFormatError, NotFoundError, NotReadyError, StorageError
from facets.index.backends import make_backend
from facets.index.base import IndexBackend
from facets.index.config import EngineConfig
from facets.index.lexical import LexicalIndex, TermCounts
from facets.index.live import LiveIndex, Stopped
from facets.index.snapshot import SnapshotIdentity, load_snapshot, set_aside, write_snapshot

logger = logging.getLogger(__name__)

_RETIRED_CHUNK = 256  # documents of a replaced collection deleted in one transaction: writers wait no longer
_TERMS_CHUNK = 1024  # documents whose terms are read at a time
RETRY_S = 5.0  # after maintenance failed
# A snapshot is written whole: when so much of the index is not in it, while the server runs and when it ends. The rest
# is read from the store when it is opened.
_SAVED_SHARE, _REREAD_SHARE = 8, 64
CLOSE_TIMEOUT_S = 10.0  # how long closing waits for training to notice


class IndexManager:
    """The live indexes of a data directory and the thread that maintains them; thread-safe.

    Attributes:
        write_lock: Held over a write of the store and its repetition in the index, so that indexes see writes in
            the order of revisions. Reentrant. Whoever also needs the lock of a collection takes that one first.
        quarantine: Documents that no index holds because they are damaged on disk.
    """

    def __init__(self, store: DocumentStore, directory: Path, config: EngineConfig) -> None:
        self.write_lock = threading.RLock()
        self.quarantine = Quarantine()
        self._store = store
        self._directory = directory
        self._config = config
        self._backend = make_backend(config)
        self._live: dict[int, LiveIndex] = {}
        self._lexical: dict[int, LexicalIndex] = {}
        self._records: dict[int, CollectionRecord] = {}
        self._collection_locks: dict[int, threading.RLock] = {}
        self._maintenance_lock = threading.Lock()
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, records: Iterable[CollectionRecord]) -> None:
        """Loads every index and starts the maintenance thread.

        A collection that cannot be read is logged and tried again when it is searched; the others work.
        """
        known = set()
        for record in records:
            if record.state is CollectionState.RETIRED:
                self._wake.set()
                continue
            known.add(self._path(record))
            self._wake.set()
            if record.state is CollectionState.BUILDING:
                logger.warning(
                    "a move to model %s was begun and is not done (%s): reindex the collection again, or give the "
                    "model that it has to end the move", record.model, record.name,
                )  # fmt: skip
            try:
                self.live(record)
            except (NotFoundError, NotReadyError):  # another server deleted or moved it just now
                continue
            except StorageError as error:
                logger.error("collection %s cannot be searched: %s", record.name, error)
        for path in self._directory.iterdir():
            left_over = path.suffix in (".part", ".tmp", ".index") and path not in known
            if left_over and path.is_file():
                _remove(path)
        if self._config.background:
            self._thread = threading.Thread(target=self._run, name="facets-index-maintenance", daemon=True)
            self._thread.start()

    def live(self, record: CollectionRecord) -> LiveIndex:
        """The index of a collection, loaded when it is not in memory.

        Raises:
            NotFoundError: The collection has been deleted.
            NotReadyError: It has moved to another model.
            StorageError: The store cannot be read.
        """
        found = self._live.get(record.number)
        if found is not None:
            return found
        with self.write_lock:
            found = self._live.get(record.number)
            if found is None:
                found = self._load(self._current(record))
                self._records[record.number] = record
                self._live[record.number] = found
                if found.is_due():
                    self._wake.set()
            return found

    def lexical(self, record: CollectionRecord) -> LexicalIndex:
        """The lexical index of a collection, made from the store when it is not in memory.

        Raises:
            NotFoundError, NotReadyError, StorageError: As :meth:`live`.
        """
        found = self._lexical.get(record.number)
        if found is not None:
            return found
        with self.write_lock:
            found = self._lexical.get(record.number)
            if found is None:
                found = self._lexical[record.number] = self._load_lexical(self._current(record))
            return found

    def collection_lock(self, record: CollectionRecord) -> threading.RLock:
        """Held over every write to the collection; held by a reader, it keeps the collection as it is. Reentrant."""
        return self._collection_locks.setdefault(record.number, threading.RLock())

    def checks(self) -> dict[str, Callable[[], None]]:
        """Who else must answer for indexes to be searched: name -> a check of a second or so; raises StorageError."""
        return {self._backend.dependency: self._backend.check} if self._backend.dependency else {}

    def num_pending(self) -> int:
        """Documents of all collections that wait in exact tails to be folded into the indexes of the backend."""
        return sum(live.num_pending for live in list(self._live.values()))

    def peek(self, record: CollectionRecord) -> LiveIndex | None:
        """The index of a collection if it is in memory."""
        return self._live.get(record.number)

    def snapshot_bytes(self, record: CollectionRecord) -> int:
        """Size of the saved index of a collection; 0: there is none."""
        try:
            return self._path(record).stat().st_size
        except OSError:  # not saved, or just being replaced
            return 0

    def apply(
        self,
        record: CollectionRecord,
        write: StoreWrite,
        batch: EncodedBatch | None = None,
        *,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        """Repeats a write of the store; the caller holds ``write_lock`` since before that write.

        ``batch``: the documents that were added; None: none. ``kept``: which documents of the batch these are, ``[N]``;
        None: all.
        """
        self._records[record.number] = record
        live, lexical = self._live.get(record.number), self._lexical.get(record.number)
        added, units, terms = write.added, None, list[TermCounts]()
        if batch is not None:
            rows = np.full(batch.first_parts[-1], -1, dtype=np.int64)
            rows[slice(None) if kept is None else np.repeat(kept, batch.num_parts)] = write.added
            added, units = batch.paged(rows, record.num_facets)
            terms = [counted for counted, row in zip(batch.terms, rows.tolist(), strict=True) if row >= 0]
        self.quarantine.forget(record, write.removed.tolist())
        try:
            if live is not None:
                live.apply(write.revision, added=added, removed=write.removed, units_SKD=units)
            if lexical is not None:
                lexical.apply(write.revision, added=write.added, removed=write.removed, terms=terms)
        except BaseException:
            # Out of step with the store (out of memory, interrupted): load it anew when it is needed.
            self._live.pop(record.number, None)
            self._lexical.pop(record.number, None)
            raise
        if live is not None and live.is_due():
            self._wake.set()

    def follow(
        self, view: StoreView, records: Sequence[CollectionRecord], writes: Mapping[int, Sequence[StoreWrite]] | None
    ) -> None:
        """Brings the indexes to a state of the store that others wrote; the caller holds ``write_lock``.

        ``view``: that state. ``records``: all of its collections. ``writes``: what changed since an earlier one, by
        number of the collection; None: nobody knows, and every index is made anew.
        """
        there = {record.number: record for record in records if record.state is not CollectionState.RETIRED}
        for number, record in list(self._records.items()):
            if number not in there:
                self.drop_retired(record)
        for number, record in there.items():
            try:
                if writes is None:
                    self._live.pop(number, None)
                    self._lexical.pop(number, None)
                elif number in self._live:
                    self._repeat(view, record, writes.get(number, ()))
                self.live(record)
            except (NotFoundError, NotReadyError):  # gone since
                continue
            except StorageError as error:
                logger.error("collection %s cannot be searched: %s", record.name, error)
            self._records[number] = record

    def _repeat(self, view: StoreView, record: CollectionRecord, writes: Sequence[StoreWrite]) -> None:
        """Repeats in the indexes of one collection those of the writes that they have not seen."""
        source = CollectionSource(self._store, record, self.quarantine, state=view)
        live, lexical = self._live[record.number], self._lexical.get(record.number)
        try:
            if live.revision < record.revision:
                added, removed = _net(writes, after=live.revision)
                rows, units = source.read(added) if len(added) else (added, None)
                live.apply(record.revision, added=rows, removed=removed, units_SKD=units)
                self.quarantine.forget(record, removed.tolist())
            if lexical is not None and lexical.revision < record.revision:
                added, removed = _net(writes, after=lexical.revision)
                rows, terms = source.terms(added)
                lexical.apply(record.revision, added=rows, removed=removed, terms=terms)
        except BaseException:
            self._live.pop(record.number, None)
            self._lexical.pop(record.number, None)
            raise
        if live.is_due():
            self._wake.set()

    def distrust(self, record: CollectionRecord, live: LiveIndex, error: IndexFormatError) -> None:
        """Sets a snapshot aside that turned out to be damaged when it was wanted; its index is made anew."""
        with self.write_lock:
            if self._live.get(record.number) is live:  # another thread may have met it, too
                set_aside(self._path(record), error)
                del self._live[record.number]

    def leave_out(self, record: CollectionRecord, damaged: Mapping[int, str]) -> None:
        """Takes documents that are damaged on disk out of the indexes."""
        rows = np.array(sorted(damaged), dtype=np.int64)
        with self.write_lock:
            for index in (self._live.get(record.number), self._lexical.get(record.number)):
                if index is not None:
                    index.discard(rows)
            self.quarantine.add(record, damaged)

    def drop(self, record: CollectionRecord) -> None:
        """Forgets a deleted collection."""
        self.quarantine.forget(record)
        self._live.pop(record.number, None)
        self._lexical.pop(record.number, None)
        self._records.pop(record.number, None)
        self._collection_locks.pop(record.number, None)
        _remove(self._path(record))
        try:
            self._backend_of(record).drop()
        except StorageError as error:
            logger.warning("index of %s not deleted: %s", record.name, error)

    def drop_retired(self, record: CollectionRecord) -> None:
        """Forgets a collection whose documents are deleted by and by."""
        self.drop(record)
        self._wake.set()

    def maintain(self) -> None:
        """Folds, trains and purges what is due, saves what has changed enough, deletes what was replaced.

        Raises:
            Exception: What the first collection raised that failed, after all others have had their turn. StorageError:
                the store cannot be read, or a snapshot not written; the old one stays.
        """
        with self._maintenance_lock:
            while not self._closing.is_set() and self._store.delete_retired(_RETIRED_CHUNK):
                pass
            failed: Exception | None = None
            for number, live in list(self._live.items()):
                record = self._records.get(number)
                if record is None or self._closing.is_set():
                    continue
                try:
                    self._maintain(record, live)
                except Stopped:
                    raise
                except Exception as error:
                    failed = failed or error
            if failed is not None:
                raise failed

    def _maintain(self, record: CollectionRecord, live: LiveIndex) -> None:
        with suppress(NotFoundError, NotReadyError):  # it was deleted or moved meanwhile
            self.lexical(record)  # before the first search wants it
        if live.is_due():
            try:
                live.maintain(self._closing.is_set)
            except IndexFormatError as error:
                self.distrust(record, live, error)
                return
            _return_free_memory()
        if live.num_unsaved >= max(self._config.snapshot_every_writes, len(live) // _SAVED_SHARE):
            self._save(record, live)

    def close(self) -> None:
        """Stops maintenance and saves every changed index; a failure to save is logged, the store has it all."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)
            if self._thread.is_alive():
                # Training cannot be interrupted; the next start rebuilds from the store
                logger.warning("index maintenance still runs after %.0f s: indexes not saved", CLOSE_TIMEOUT_S)
                return
        with self._maintenance_lock:
            for number, live in list(self._live.items()):
                record = self._records.get(number)  # None: deleted meanwhile
                if (
                    record is not None
                    and self._config.snapshot_on_close
                    and live.num_unsaved > len(live) // _REREAD_SHARE
                ):
                    try:
                        self._save(record, live)
                    except StorageError as error:
                        logger.warning("index of %s not saved: %s", record.name, error)
            self._backend.close()

    def _current(self, record: CollectionRecord) -> CollectionRecord:
        """The collection as it is now; an index of one that is gone would stay in memory, for nobody drops it."""
        with self._store.view() as view:
            return view.collection_unchanged(record)

    def _backend_of(self, record: CollectionRecord) -> IndexBackend:
        return self._backend.of(f"facets-{self._store.store_id}-{record.number}", self._directory)

    def _path(self, record: CollectionRecord) -> Path:
        return self._directory / f"{record.number}.index"

    def _identity(self, record: CollectionRecord) -> SnapshotIdentity:
        with self._store.view() as view:
            revision = view.revision()
        return SnapshotIdentity(
            store_id=self._store.store_id,
            collection=record.number,
            num_facets=record.num_facets,
            dim=record.dim,
            revision=revision,
        )

    def _load(self, record: CollectionRecord) -> LiveIndex:
        source, backend = CollectionSource(self._store, record, self.quarantine), self._backend_of(record)
        kept = backend.open(source)
        base = load_snapshot(self._path(record), self._identity(record), backend) if kept is None else kept
        with source.one_state() as record:
            live = LiveIndex(source, backend, self._config, base=base, revision=record.revision)
            live.catch_up()
        logger.info("collection %s loaded: %d documents, %s index", record.name, len(live), live.kind)
        return live

    def _load_lexical(self, record: CollectionRecord) -> LexicalIndex:
        source, none = CollectionSource(self._store, record, self.quarantine), np.empty(0, dtype=np.int64)
        with source.one_state() as record:
            lexical, rows = LexicalIndex(record.revision), source.rows()
            for start in range(0, len(rows), _TERMS_CHUNK):
                existing, terms = source.terms(rows[start : start + _TERMS_CHUNK])
                lexical.apply(record.revision, added=existing, removed=none, terms=terms)
        return lexical

    def _save(self, record: CollectionRecord, live: LiveIndex) -> None:
        self._store.check_place()  # a directory that was moved: another server may have its own under this name
        path, identity = self._path(record), self._identity(record)
        live.save(lambda index: write_snapshot(path, index, identity))

    def _run(self) -> None:
        self._backend.enter_background()
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
            except Exception as error:  # a mistake of ours too: no later write would be folded in without this thread
                # The index stays as it was and searches stay right; what was to be sent stays in the tail.
                has_failed = True
                away = isinstance(error, IndexAwayError)
                logger.error("index maintenance failed, tries again: %s", error, exc_info=not away)


def _net(writes: Sequence[StoreWrite], *, after: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that the writes beyond a revision added and that are still there, ascending, and rows that they removed."""
    new, none = [write for write in writes if write.revision > after], np.empty(0, dtype=np.int64)
    removed = np.concatenate([none, *(write.removed for write in new)])
    return np.setdiff1d(np.concatenate([none, *(write.added for write in new)]), removed), removed


def _remove(path: Path) -> None:  # one that stays does no harm
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("index file %s not deleted, the next start tries again: %s", path, error.strerror)


def _return_free_memory() -> None:
    """Gives what training freed back to the system; glibc would keep it: 580 MB after 60,000 documents."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
