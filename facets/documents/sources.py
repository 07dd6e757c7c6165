"""The documents of a collection as its indexes read them: whole ones, and a list of those that are not.

Shape letters: S places in an index, K facets of a place, D dimensions.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.documents.records import CollectionRecord
from facets.documents.store import DocumentStore
from facets.documents.views import StoreView
from facets.errors import DamagedDocumentsError
from facets.index.base import paged
from facets.index.lexical import TermCounts

logger = logging.getLogger(__name__)

FoundT = TypeVar("FoundT")


class Quarantine:
    """The damaged documents of a data directory that are known by now; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: dict[int, dict[int, str]] = {}  # of each collection: row -> id

    def add(self, record: CollectionRecord, damaged: Mapping[int, str]) -> None:
        """Takes documents of a collection in, row -> id, each logged once."""
        with self._lock:
            known = self._ids.setdefault(record.number, {})
            new = {row: id for row, id in damaged.items() if row not in known}
            known.update(new)
        for id in new.values():
            logger.error(
                "document %r of collection %s is damaged on disk and left out of searches: store it again or delete it",
                id, record.name,
            )  # fmt: skip

    def forget(self, record: CollectionRecord, rows: Iterable[int] | None = None) -> None:
        """Lets documents go that were stored again or deleted; None: the whole collection."""
        with self._lock:
            known = self._ids.get(record.number)
            if known and rows is not None:
                for row in rows:
                    known.pop(row, None)
            elif known is not None:
                del self._ids[record.number]

    def count(self, record: CollectionRecord) -> int:
        """How many documents of a collection are in it."""
        with self._lock:
            return len(set(self._ids.get(record.number, {}).values()))


class CollectionSource:
    """The facets of one collection for its index; see :class:`facets.index.base.FacetSource`.

    Each read has a view of its own: one long view would keep the log of SQLite from being emptied.
    """

    def __init__(
        self, store: DocumentStore, record: CollectionRecord, quarantine: Quarantine, *, state: StoreView | None = None
    ) -> None:
        """Names the collection; ``quarantine`` takes damaged documents, ``state`` is one that every read sees."""
        self._state = state
        self._store = store
        self._record = record
        self._quarantine = quarantine
        self.num_facets = record.num_facets
        self.dim = record.dim

    @contextmanager
    def one_state(self) -> Iterator[CollectionRecord]:
        """Reads see one state until the block ends, whose collection this gives; where nobody else writes, they do."""
        if not self._store.is_shared:
            yield self._record
            return
        with self._store.view() as self._state:
            try:
                yield self._state.collection_unchanged(self._record)
            finally:
                self._state = None

    def _view(self) -> AbstractContextManager[StoreView]:
        return self._store.view() if self._state is None else nullcontext(self._state)

    def revision(self) -> int:
        """Of the store."""
        with self._view() as view:
            return view.revision()

    def rows(self) -> NDArray[np.int64]:
        """Rows of all documents, ascending."""
        with self._view() as view:
            return view.rows(self._record)

    def terms(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Sequence[TermCounts]]:
        """Those of the rows that still exist whole, ascending, and the terms of each."""
        return self._whole(rows, lambda view, rows: view.terms(self._record, rows))

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Those of the rows that still exist whole, ascending, one a place, and their facets ``[S, K, D]``."""

        def read(view: StoreView, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
            existing = view.existing(rows)
            found = view.facets(self._record, existing)
            return paged(existing, found.units, found.starts, num_facets=self.num_facets)

        return self._whole(rows, read)

    def _whole(self, rows: NDArray[np.int64], read: Callable[[StoreView, NDArray[np.int64]], FoundT]) -> FoundT:
        try:
            with self._view() as view:
                return read(view, rows)
        except DamagedDocumentsError as error:
            self._quarantine.add(self._record, error.damaged)
            return self._whole(np.setdiff1d(rows, list(error.damaged)), read)
