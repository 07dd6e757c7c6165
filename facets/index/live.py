"""The index of one collection while it is being written: an index of the backend and an exact tail of recent documents.

New documents go to the tail, which is searched exactly, so a write is visible at once. Maintenance folds the tail into
the index of the backend, and rebuilds that index when the collection has outgrown it.
Shape letters: N documents, Q queries, J facets of a query, D dimensions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Ints, take_groups
from facets.index.base import FacetIndex, FacetSource, IndexBackend, ReadWriteLock
from facets.index.candidates import Candidates, select_candidates
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex

_RETRAIN_GROWTH = 4  # train again when the collection is this many times larger than at the last training
_FOLD_SHARE = 8  # fold when the tail has an eighth of `exact_max_facets`
_MIN_HOLES = 10_000  # rebuild when more places than this, and more than half of all, are holes
_DOCUMENTS_AT_A_TIME = 1024  # documents read at a time: bounds how long a writer waits
FOLD_FACETS = 4096  # facets added under one lock: bounds how long a search waits
_PURGE_SHARE = 8  # purge when an eighth of the compared documents is removed


class Stopped(Exception):  # noqa: N818 - not an error
    """Maintenance was stopped because the engine closes; the index is unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveResult:
    """The result of a search."""

    candidates: Candidates
    kind: str  # of the index
    revision: int  # of the collection


class LiveIndex:
    """An index of the backend and an exact tail behind one lock; thread-safe."""

    def __init__(
        self,
        source: FacetSource,
        backend: IndexBackend,
        config: EngineConfig,
        *,
        base: FacetIndex | None = None,
        revision: int = 0,
    ) -> None:
        self._source = source
        self._backend = backend
        self._config = config
        self._lock = ReadWriteLock()
        self._base = base
        self._tail = ExactIndex(num_facets=source.num_facets, dim=source.dim)
        self.num_unsaved = 0  # documents in the index of the backend that are in no snapshot
        self.revision = revision  # of the collection

    @property
    def _parts(self) -> list[FacetIndex]:
        base = self._base
        return [self._tail] if base is None else [base, self._tail]

    @property
    def kind(self) -> str:
        """Kind of the index of the backend; ``exact`` if there is none yet."""
        return self._parts[0].kind

    @property
    def num_vectors(self) -> int:
        """Facets in memory, including those of removed documents."""
        return sum(part.num_vectors for part in self._parts)

    @property
    def num_pending(self) -> int:
        """Documents that will move from the tail to the index of the backend."""
        return len(self._tail) if self._base is not None or self._wants_building() else 0

    def __len__(self) -> int:
        with self._lock.read():
            return sum(map(len, self._parts))

    def rows(self) -> Ints:
        """Rows of all documents, ascending."""
        with self._lock.read():
            return np.sort(self._held())

    def _held(self) -> Ints:
        return np.concatenate([part.rows() for part in self._parts])

    def catch_up(self) -> None:
        """Makes the index equal to its source, which must not change during the call.

        A row identifies one unchanging set of facets, so comparing rows is enough.
        """
        rows = self._source.rows()
        with self._lock.write():
            known = self._parts[0].rows()
            if self._base is not None:
                self._base.remove(np.setdiff1d(known, rows, assume_unique=True))
            missing = np.setdiff1d(rows, known, assume_unique=True)
            for start in range(0, len(missing), _DOCUMENTS_AT_A_TIME):
                self._tail.add(*self._source.read(missing[start : start + _DOCUMENTS_AT_A_TIME]))

    def apply(self, revision: int, *, added: Ints, removed: Ints, units_SKD: NDArray[np.float16] | None = None) -> None:
        """Applies a write of the store that led to ``revision``.

        ``added``: rows added, one for each place. ``units_SKD``: their unit-norm facets; None: nothing was added.
        """
        with self._lock.write():
            for part in self._parts if len(removed) else ():
                part.remove(removed)
            if units_SKD is not None:
                self._tail.add(added, units_SKD)
            self.revision = revision

    def search(
        self, query_QJD: Floats, num_candidates: int, *, allowed_rows: Ints | None, exhaustive: bool
    ) -> LiveResult:
        """Finds candidates in the index and the tail."""
        with self._lock.read():
            revision = self.revision
            parts = [part for part in self._parts if len(part)] or [self._tail]
            results = [
                part.search(query_QJD, num_candidates, allowed_rows=allowed_rows, exhaustive=exhaustive)
                for part in parts
            ]
            kind, error = self.kind, max(part.score_error for part in parts)
        merged = results[0]
        if len(results) > 1:
            merged = select_candidates(
                np.concatenate([part.rows for part in results], axis=1),
                np.concatenate([part.scores for part in results], axis=1),
                num_candidates,
                margin=2 * error,
                exhaustive=all(part.exhaustive for part in results),
            )
        return LiveResult(candidates=merged, kind=kind, revision=revision)

    def codes_of(self, rows_C: Ints) -> tuple[NDArray[np.int8], Ints] | None:
        """Codes ``[T, D]`` of documents, and the offset of each document's codes, ``[C + 1]``.

        ``rows_C``: ascending. None if they must be read from the store.
        """
        with self._lock.read():
            held = [part.codes_of(rows_C) for part in self._parts if len(part)]
            known = [own for own in held if own is not None and len(own[0])]
            if known and sum(len(rows) for rows, _, _ in known) == len(rows_C):
                if len(known) == 1:
                    return known[0][1], np.append(0, np.cumsum(known[0][2]))
                rows, codes, counts = (np.concatenate(own) for own in zip(*known, strict=True))
                taken, starts = take_groups(np.append(0, np.cumsum(counts)), np.argsort(rows))
                return codes[taken], starts
        return None

    def is_due(self) -> bool:
        """Whether :meth:`maintain` has something to do."""
        with self._lock.read():
            return self._wants_building() or self._wants_fold() or self._wants_purge()

    def maintain(self, stopping: Callable[[], bool]) -> None:
        """Builds, folds or purges if due; for one thread at a time. Raises Stopped if ``stopping`` returns True."""
        if self._wants_building():
            self._build(stopping)
        if self._wants_fold():
            self._fold(stopping)
        if self._wants_purge():
            with self._lock.write():
                if self._base is not None:
                    self._base.purge()
                    self._base = self._base if len(self._base) else None

    def save(self, write: Callable[[FacetIndex], None]) -> None:
        """Calls ``write`` with the index of the backend if it can be saved; only for the maintenance thread.

        No lock is needed: only maintenance changes the lists. A document removed during the call may be in the
        snapshot; :meth:`catch_up` removes it.
        """
        if self._base is not None and self._base.describe() is not None:
            write(self._base)
        self.num_unsaved = 0

    def _wants_building(self) -> bool:
        base = self._base  # another thread may replace it
        if base is None:
            return len(self._tail) * self._source.num_facets > self._config.exact_max_facets
        trained, holes = base.trained_documents, base.num_holes
        outgrown = trained is not None and len(base) + len(self._tail) > _RETRAIN_GROWTH * trained
        return outgrown or 2 * holes > len(base.slots) + _MIN_HOLES

    def _wants_fold(self) -> bool:
        smallest = max(1, self._config.exact_max_facets // _FOLD_SHARE)
        return self._base is not None and len(self._tail) * self._source.num_facets >= smallest

    def _wants_purge(self) -> bool:
        return self._base is not None and self._base.num_masked * _PURGE_SHARE > len(self._base)

    def _build(self, stopping: Callable[[], bool]) -> None:
        rows = self._source.rows()
        if not len(rows):
            return

        def chunks() -> Iterator[tuple[Ints, NDArray[np.float16]]]:
            for start in range(0, len(rows), _DOCUMENTS_AT_A_TIME):
                if stopping():
                    raise Stopped
                yield self._source.read(rows[start : start + _DOCUMENTS_AT_A_TIME])

        index = self._backend.build(chunks, num_documents=len(rows), num_facets=self._source.num_facets)
        if index is None:
            return
        with self._lock.write():
            # Writes went on during the build. Rows removed since must be removed from the new index; rows added since
            # are in the tail, or will be applied to it.
            index.remove(np.setdiff1d(rows, self._held()))
            self._tail.remove(rows)
            self._base = index
            self.num_unsaved = len(index)

    def _fold(self, stopping: Callable[[], bool]) -> None:
        base, limit = self._base, max(1, FOLD_FACETS // self._source.num_facets)
        while base is not None and len(self._tail):
            if stopping():
                raise Stopped
            with self._lock.read():
                oldest = self._tail.oldest(limit)
            rows, units = self._source.read(oldest)
            prepared = base.prepare(rows, units)
            with self._lock.write():
                kept = np.isin(rows, self._tail.rows())
                base.add_prepared(rows[kept], units[kept], prepared[kept])
                self._tail.remove(oldest)
                self.num_unsaved += int(np.count_nonzero(kept))
