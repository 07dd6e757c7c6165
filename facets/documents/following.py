"""Keeps the indexes of a server in step with its store, for its own writes and those of other servers.

Every write to a shared store is logged there with its revision. A server applies the writes of others to its own
indexes, one state of the store at a time, so that two servers at one revision give the same answers.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from facets.documents.index_manager import IndexManager
from facets.documents.records import CollectionRecord, CollectionState, LostRevisions, StoreWrite, check_revision
from facets.documents.store import DocumentStore

logger = logging.getLogger(__name__)

_POLL_S = 0.5  # used when notifications of writes do not arrive


class Follower:
    """Keeps indexes at the revision of their store; thread-safe."""

    def __init__(self, store: DocumentStore, indexes: IndexManager, revision: int) -> None:
        self._store = store
        self._indexes = indexes
        self._records: dict[str, CollectionRecord] | None = None  # live collections of a shared store at `revision`
        self._lost: LostRevisions = ()
        self._closing = False
        self._thread: threading.Thread | None = None
        self.revision = revision  # that all indexes have reached
        self.catch_up()

    def start(self) -> None:
        """Starts to follow other servers in the background, a few milliseconds behind."""
        if self._store.is_shared:
            self._thread = threading.Thread(target=self._run, name="facets-index-following", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stops following."""
        self._closing = True
        if self._thread is not None:
            self._thread.join(4 * _POLL_S)

    def num_behind(self) -> int:
        """Number of writes in the store that the indexes have not seen."""
        if not self._store.is_shared:
            return 0
        with self._store.view() as view:
            return max(0, view.revision() - self.revision)

    def check(self, min_revision: int | None) -> int:
        """The revision; see :func:`facets.documents.records.check_revision`."""
        return check_revision(self.revision, min_revision, self._lost)

    def record(self, name: str, seen: CollectionRecord | None, *, min_revision: int) -> CollectionRecord | None:
        """The live collection of a shared store as the indexes have it, the same as ``seen``; None if there is none."""
        if self._records is None:
            return None
        record = self._records.get(name)
        if record is None or self.revision < min_revision or (seen is not None and seen.number != record.number):
            self.catch_up()
            record = self._records.get(name)
        return record if record is None or seen is None or seen.number == record.number else None

    def catch_up(self) -> None:
        """Applies everything that was written to a shared store."""
        if not self._store.is_shared:
            return
        with self._indexes.write_lock, self._store.view() as view:
            revision = view.revision()
            if revision == self.revision and self._records is not None:
                return
            if revision < self.revision:
                logger.error("the store went back from revision %d to %d: it lost writes", self.revision, revision)
            self._lost, records = view.lost(), view.all_collections()
            writes = None if revision < self.revision else view.writes_after(self.revision)
            self._indexes.follow(view, records, writes)
            self._records = {record.name: record for record in records if record.state is CollectionState.LIVE}
            self.revision = revision

    def wrote(self, record: CollectionRecord, write: StoreWrite) -> None:
        """Applies a write of this process to a collection, given its state before."""
        if self._records is not None and write.revision != self.revision + 1:  # other servers wrote, too
            self.catch_up()
            return
        written = write.after(record)
        self._indexes.apply(written, [write])
        if self._records is not None and record.state is CollectionState.LIVE:
            self._records = {**self._records, record.name: written}
        self.revision = write.revision

    def changed(self, revision: int) -> None:
        """Records that this process created or deleted a collection in the store and the indexes."""
        self.catch_up()
        self.revision = max(self.revision, revision)

    @contextmanager
    def writes_blocked(self, record: CollectionRecord) -> Iterator[None]:
        """Blocks writes to a collection until the block ends; the indexes include all earlier ones."""
        with ExitStack() as stack:
            stack.enter_context(self._indexes.collection_lock(record))
            if self._store.is_shared:
                stack.enter_context(self._indexes.write_lock)
                stack.enter_context(self._store.hold_writes())
                self.catch_up()
            yield

    def _run(self) -> None:
        for _ in self._store.writes(_POLL_S):
            if self._closing:
                return
            try:
                self.catch_up()
            except Exception as error:  # even after a bug: without this thread the server would stay behind
                logger.warning("cannot follow the store, trying again: %s", error)
