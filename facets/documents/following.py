"""The indexes of a server beside its store: in step with its own writes, and with those of other servers.

Every write to a shared store is in a log there with its revision. A server repeats in its own indexes what others
wrote, one state of the store at a time, so that two servers that say one revision say the same of every collection.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch
from facets.documents.index_manager import IndexManager
from facets.documents.records import CollectionRecord, CollectionState, LostRevisions, StoreWrite, check_revision
from facets.documents.store import DocumentStore

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.5  # where no word of a write comes through


class Follower:
    """Keeps indexes at the revision of their store; thread-safe.

    ``revision``: that they have at least reached.

    Attributes:
        revision: That they have reached.
    """

    def __init__(self, store: DocumentStore, indexes: IndexManager, revision: int) -> None:
        self._store = store
        self._indexes = indexes
        self._records: dict[str, CollectionRecord] | None = None  # live ones of a shared store, at the revision
        self._lost: LostRevisions = ()
        self._closing = False
        self._thread: threading.Thread | None = None
        self.revision = revision
        self.catch_up()

    def start(self) -> None:
        """Follows other servers in the background, some milliseconds behind."""
        if self._store.is_shared:
            self._thread = threading.Thread(target=self._run, name="facets-index-following", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Follows no more."""
        self._closing = True
        if self._thread is not None:
            self._thread.join(4 * _LOOK_EVERY_S)

    def num_behind(self) -> int:
        """Writes that the store has seen and the indexes have not."""
        if not self._store.is_shared:
            return 0
        with self._store.view() as view:
            return max(0, view.revision() - self.revision)

    def check(self, min_revision: int | None) -> int:
        """The revision, see :func:`facets.documents.records.check_revision`."""
        return check_revision(self.revision, min_revision, self._lost)

    def record(self, name: str, *, number: int | None, min_revision: int) -> CollectionRecord | None:
        """The live collection of that name in a shared store, as the indexes have it.

        They catch up where they do not have it, or have another one than that of this number, or not this revision.
        """
        if self._records is None:
            return None
        record = self._records.get(name)
        if record is None or self.revision < min_revision or number not in (None, record.number):
            self.catch_up()
            record = self._records.get(name)
        return record if record is None or number in (None, record.number) else None

    def catch_up(self) -> None:
        """Repeats everything that a shared store has seen by now.

        Raises:
            StorageError: The store cannot be read; the indexes stay where they are.
        """
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

    def wrote(
        self,
        record: CollectionRecord,
        write: StoreWrite,
        batch: EncodedBatch | None = None,
        *,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        """Repeats a write of this process, see :meth:`facets.documents.index_manager.IndexManager.apply`."""
        if self._records is not None and write.revision != self.revision + 1:  # others wrote, too
            self.catch_up()
            return
        self._indexes.apply(record, write, batch, kept=kept)
        if self._records is not None and record.state is CollectionState.LIVE:
            known = self._records.get(record.name)
            now = write.after(known if known and known.number == record.number else record)
            self._records = {**self._records, record.name: now}
        self.revision = write.revision

    def changed(self, revision: int) -> None:
        """Takes note of a collection that this process made or deleted, which the indexes have seen."""
        self.catch_up()
        self.revision = max(self.revision, revision)

    @contextmanager
    def held(self, record: CollectionRecord) -> Iterator[None]:
        """Writes to a collection wait until the block ends; the indexes have all earlier ones."""
        with ExitStack() as held:
            held.enter_context(self._indexes.collection_lock(record))
            if self._store.is_shared:
                held.enter_context(self._indexes.write_lock)
                held.enter_context(self._store.hold_writes())
                self.catch_up()
            yield

    def _run(self) -> None:
        for _ in self._store.writes(_LOOK_EVERY_S):
            if self._closing:
                return
            try:
                self.catch_up()
            except Exception as error:  # a mistake of ours too: without this thread the server stays behind for ever
                logger.warning("cannot follow the store, trying again: %s", error)
