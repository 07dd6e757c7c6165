"""The index of one collection while it is written: FAISS for the bulk, an exact tail for what came last.

New documents go to the tail, which is searched exactly, so a write is visible at once and costs no training.
Maintenance folds the tail into FAISS, and trains FAISS anew when the collection has outgrown its lists.
Shape letters: N documents, Q queries, K facets, D dimensions.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from facets.documents.store import CollectionRecord, DocumentStore, StoreWrite
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex
from facets.index.faiss_index import FaissIndex, build
from facets.index.locks import ReadWriteLock
from facets.index.protocols import Candidates, FacetIndex, select_candidates

__all__ = ["LiveIndex", "Stopped"]

_RETRAIN_GROWTH = 4  # train anew when the collection is this many times larger than at the last training
_FOLD_SHARE = 8  # fold when the tail costs an eighth of the largest exact search
_FOLD_CHUNK = 1024  # documents added to FAISS under one lock: bounds how long a search waits
_TRAIN_CHUNK = 1024  # documents read from the store at a time
_PURGE_SHARE = 8  # purge when an eighth of what FAISS scans is removed documents


class Stopped(Exception):  # noqa: N818 - not an error: the engine closes and maintenance gives up
    """Maintenance was asked to stop; the index is as it was."""


class LiveIndex:
    """A FAISS index and an exact tail behind one lock; thread-safe."""

    def __init__(self, record: CollectionRecord, config: EngineConfig, base: FaissIndex | None = None) -> None:
        self._record = record
        self._config = config
        self._lock = ReadWriteLock()
        self._base = base
        self._tail = ExactIndex(num_facets=record.num_facets, dim=record.dim)
        self._num_unsaved = 0

    @property
    def kind(self) -> str:
        """``exact`` until the collection is large enough for FAISS."""
        base = self._base
        return self._tail.kind if base is None else base.kind

    @property
    def num_unsaved(self) -> int:
        """Documents in FAISS that no snapshot holds."""
        return self._num_unsaved

    def __len__(self) -> int:
        """Documents in the index."""
        with self._lock.read():
            return self._size()

    def _size(self) -> int:
        return len(self._tail) + (0 if self._base is None else len(self._base))

    def catch_up(self, store: DocumentStore) -> int:
        """Makes the index agree with the store; returns the revision reached.

        A row number stands for one unchanging set of facets, so comparing row numbers is enough.
        """
        with store.view() as view, self._lock.write():
            rows = view.rows(self._record)
            held = self._tail.rows() if self._base is None else self._base.rows()
            stale = np.setdiff1d(held, rows)
            if self._base is not None:
                self._base.remove(stale)
            for part, units in view.chunks(self._record, np.setdiff1d(rows, held)):
                self._tail.add(part, units)
            return view.revision()

    def apply(self, write: StoreWrite, units_NKD: NDArray[np.float16] | None = None) -> None:
        """Repeats a write of the store; ``units_NKD`` belongs to ``write.added``."""
        with self._lock.write():
            if len(write.removed):
                self._tail.remove(write.removed)
                if self._base is not None:
                    self._base.remove(write.removed)
            if units_NKD is not None:
                self._tail.add(write.added, units_NKD)

    def search(
        self,
        query_QKD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None,
        exhaustive: bool,
    ) -> tuple[Candidates, str]:
        """Candidates of both parts, and the kind of index that was searched."""
        with self._lock.read():
            parts: list[FacetIndex] = [self._tail] if self._base is None else [self._base, self._tail]
            found = [
                part.search(query_QKD, top_k, allowed_rows=allowed_rows, exhaustive=exhaustive)
                for part in parts
                if len(part)
            ]
            kind, error = parts[0].kind, max(part.score_error for part in parts)
        empty = np.empty((len(query_QKD), 0))
        merged = select_candidates(
            np.concatenate([empty.astype(np.int64), *(part.rows for part in found)], axis=1),
            np.concatenate([empty.astype(np.float32), *(part.scores for part in found)], axis=1),
            top_k,
            margin=2 * error,
            exhaustive=all(part.exhaustive for part in found),
        )
        return merged, kind

    def is_due(self) -> bool:
        """Whether :meth:`maintain` has something to do."""
        with self._lock.read():
            return self._wants_training() or self._wants_fold() or self._wants_purge()

    def maintain(self, store: DocumentStore, stopping: Callable[[], bool]) -> None:
        """Trains, folds or purges when due; only one thread at a time may call it.

        Raises:
            Stopped: ``stopping`` returned True.
            StorageError: The store cannot be read.
        """
        if self._wants_training():
            self._train(store, stopping)
        if self._wants_fold():
            self._fold(stopping)
        if self._wants_purge():
            with self._lock.write():
                self._purge()

    def save(self, write: Callable[[FaissIndex], None]) -> None:
        """Hands the FAISS part to ``write``; no call without one. Only the thread that maintains may call it.

        Needs no lock: only maintenance changes the lists. A document removed meanwhile may or may not be in
        what is written; :meth:`catch_up` removes it.
        """
        if self._base is not None:
            write(self._base)
            self._num_unsaved = 0

    def _wants_training(self) -> bool:
        if self._base is None:
            return len(self._tail) * self._record.num_facets > self._config.exact_max_facets
        return self._size() > _RETRAIN_GROWTH * self._base.trained_documents

    def _wants_fold(self) -> bool:
        smallest = max(1, self._config.exact_max_facets // _FOLD_SHARE)
        return self._base is not None and len(self._tail) * self._record.num_facets >= smallest

    def _wants_purge(self) -> bool:
        return self._base is not None and self._base.num_masked * _PURGE_SHARE > len(self._base)

    def _purge(self) -> None:
        if self._base is not None:
            self._base.purge()
            if not len(self._base):
                self._base = None

    def _train(self, store: DocumentStore, stopping: Callable[[], bool]) -> None:
        with store.view() as view:
            rows = view.rows(self._record)
        if not len(rows):
            return

        def chunks() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float16]]]:
            # A view for each chunk: one long view would keep the store's log from being emptied.
            for start in range(0, len(rows), _TRAIN_CHUNK):
                if stopping():
                    raise Stopped
                with store.view() as view:
                    part = view.existing(rows[start : start + _TRAIN_CHUNK])
                    units = view.units(self._record, part)
                yield part, units

        index = build(
            chunks,
            num_documents=len(rows),
            num_facets=self._record.num_facets,
            code=self._config.code,
            recall_target=self._config.recall_target,
        )
        if index is None:
            return
        with self._lock.write():
            # Writes went on meanwhile. A row that was removed must go from the new index too; rows that came
            # later are in the tail; a row committed but not yet applied here will be applied to the tail.
            live = self._tail.rows()
            if self._base is not None:
                live = np.concatenate([live, self._base.rows()])
            index.remove(np.setdiff1d(rows, live))
            self._tail.remove(rows)
            self._base = index
            self._num_unsaved = len(index)

    def _fold(self, stopping: Callable[[], bool]) -> None:
        base = self._base
        while base is not None and len(self._tail):
            if stopping():
                raise Stopped
            with self._lock.read():
                rows, units = self._tail.read(_FOLD_CHUNK)
            lists = base.assign(units).reshape(len(rows), -1)
            with self._lock.write():
                kept = np.isin(rows, self._tail.rows())
                base.add(rows[kept], units[kept], lists[kept].ravel())
                self._tail.remove(rows)
                self._num_unsaved += int(np.count_nonzero(kept))
