"""What indexes share: the contracts of indexes and backends, places for facets, and a lock.

An index has places for K facets each. A document of more than K facets takes several consecutive places with the same
row, so that short documents cost nothing extra.
Shape letters: N documents, T facets of all documents, Q queries, J facets of a query, K facets of a place, S places,
D dimensions.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Bools, Floats, Ints, Vectors
from facets.errors import IndexFormatError
from facets.index.candidates import Candidates

Chunks: TypeAlias = Callable[[], Iterable[tuple[Ints, NDArray[np.float16]]]]


class FacetSource(Protocol):
    """The documents of one collection in the store; they have K facets of D dimensions."""

    num_facets: int
    dim: int

    def revision(self) -> int:
        """Revision of the store; it decreases only if the store was restored from a backup."""

    def rows(self) -> Ints:
        """Rows of all documents, ascending; a row identifies one unchanging set of facets."""

    def read(self, rows: Ints) -> tuple[Ints, NDArray[np.float16]]:
        """The given rows that still exist, ascending, one for each place, and unit-norm facets ``[S, K, D]``."""


class FacetIndex(ABC):
    """Finds the documents whose facets answer the facets of a query best.

    The score of a document x is ``sum_j w_j max_k cos(q_j, F_k(x))``. Facets of documents have unit norm; zero facets
    are ignored, and a document without facets has cosine 0. The norm of a query's facet is its weight; weights sum to
    1. Not thread-safe: one writer or many readers at a time.
    """

    kind: str  # for results and logs, e.g. `exact`
    trained_documents: int | None = None  # documents at the last training; None: the index is not trained
    num_masked = 0  # removed documents whose facets are still compared, until `purge`
    num_holes = 0  # places of removed documents

    def __init__(self, *, num_facets: int, dim: int) -> None:
        self.num_facets = num_facets
        self.dim = dim
        self._num_documents = 0

    @property
    @abstractmethod
    def score_error(self) -> float:
        """Upper bound of the difference between a candidate's score and its exact score."""

    @property
    @abstractmethod
    def slots(self) -> Ints:
        """Row of every place, ``[S]`` in the order of addition, -1 for removed documents; a view."""

    @property
    def num_vectors(self) -> int:
        """Facets in memory, including those of removed documents."""
        return len(self.slots) * self.num_facets

    def __len__(self) -> int:
        return self._num_documents

    def rows(self) -> Ints:
        """Rows of the documents, ``[N]``, in the order of addition."""
        slots = self.slots
        return slots[(slots >= 0) & (first_places(slots) == np.arange(len(slots)))]

    def add(self, rows: Ints, facets_SKD: Vectors) -> None:
        """Adds documents with unit-norm facets.

        ``rows``: row of each place, ``[S]``, not yet in the index; places of one document are consecutive.
        """
        if len(rows):
            self.add_prepared(rows, facets_SKD, self.prepare(rows, facets_SKD))

    def remove(self, rows: Ints) -> int:
        """Removes documents, leaving holes; unknown rows are ignored. Returns the number of removed documents."""
        slots = self.slots
        is_removed = np.isin(slots, rows) & (slots >= 0)
        num_removed = len(np.unique(slots[is_removed]))
        slots[is_removed] = -1
        self.num_holes += int(np.count_nonzero(is_removed))
        self._num_documents -= num_removed
        return num_removed

    @abstractmethod
    def search(
        self, query_QJD: Floats, num_candidates: int, *, allowed_rows: Ints | None = None, exhaustive: bool = False
    ) -> Candidates:
        """Finds at least ``min(num_candidates, allowed documents)`` candidates for each query.

        ``query_QJD``: weighted facets; J need not be K. ``allowed_rows``: sorted rows that may be found; None: all.
        ``exhaustive``: compare every allowed document.
        """

    def codes_of(self, rows_C: Ints) -> tuple[Ints, NDArray[np.int8], Ints] | None:
        """Codes of documents as the store has them; None: the index does not keep them.

        ``rows_C``: ascending. Returns those that the index has, the codes of one document after another, ``[T, D]``,
        and the number of codes of each; the last ones of a document may be zero.
        """
        return None

    def allowed_slots(self, allowed_rows: Ints | None) -> Bools:
        """Places whose document may be found, ``[S]``."""
        slots = self.slots
        return slots >= 0 if allowed_rows is None else (slots >= 0) & np.isin(slots, allowed_rows)

    def prepare(self, rows: Ints, facets_SKD: Vectors) -> Ints:
        """The slow part of an addition, safe during searches; returns a row for each place for :meth:`add_prepared`."""
        return np.empty((len(facets_SKD), 0), dtype=np.int64)

    @abstractmethod
    def add_prepared(self, rows: Ints, facets_SKD: Vectors, prepared: NDArray[np.integer]) -> None:
        """Adds documents; row i of ``prepared`` belongs to place i."""

    def purge(self) -> None:  # noqa: B027 - optional
        """Removes the facets of removed documents."""

    def describe(self) -> dict[str, int | float | str] | None:
        """Numbers for the header of a snapshot, with ``num_facets`` and ``dim``; None: the index cannot be saved."""
        return None

    def write(self, sink: Callable[[bytes | memoryview], object]) -> None:
        """Writes the content of a snapshot except :attr:`slots` and :meth:`describe`."""
        raise NotImplementedError(f"{self.kind} is not saved")


class IndexBackend(ABC):
    """Creates the indexes of large collections."""

    dependency = ""  # name of an external service for health checks; empty: none

    def check(self) -> None:  # noqa: B027 - optional
        """Checks the external service within about a second; raises StorageError if it does not answer."""

    @abstractmethod
    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> FacetIndex | None:
        """Builds an index; None if there are no documents.

        ``chunks``: returns all documents from the beginning: rows ``[S]`` and facets ``[S, K, D]``.
        ``num_documents``: their approximate number, at least 1.
        """

    def of(self, name: str) -> "IndexBackend":
        """The backend of one collection; ``name`` is unique among all stores."""
        return self

    def open(self, source: FacetSource) -> FacetIndex | None:
        """The index that the backend itself stores, None if there is none; raises StorageError."""
        return None

    def drop(self) -> None:  # noqa: B027 - optional
        """Deletes the index that the backend itself stores."""

    def read(
        self, path: Path, content: NDArray[np.uint8], slots: Ints, description: Mapping[str, int | float | str]
    ) -> FacetIndex:
        """Restores an index from a snapshot; raises IndexFormatError if it must be built again.

        ``content``: what the index wrote to the beginning of the file at ``path``, mapped into memory.
        """
        raise IndexFormatError(f"{type(self).__name__} cannot read snapshots; this one is from another backend")


def paged(rows_N: Ints, facets_TD: Vectors, starts_N1: Ints, *, num_facets: int) -> tuple[Ints, Vectors]:
    """Divides the facets of each document into places of K; the last place is filled with zeros.

    ``starts_N1``: offset of each document's facets; each has at least one. Returns the row of each place, ``[S]``, and
    its facets, ``[S, K, D]``.
    """
    counts_N = np.diff(starts_N1)
    if (counts_N == num_facets).all():
        return rows_N, facets_TD.reshape(len(rows_N), num_facets, facets_TD.shape[1])
    places_N = -(-counts_N // num_facets)
    firsts_N = np.cumsum(places_N) - places_N
    within_T = np.arange(len(facets_TD)) - np.repeat(starts_N1[:-1], counts_N)
    facets_SKD = np.zeros((int(places_N.sum()), num_facets, facets_TD.shape[1]), dtype=facets_TD.dtype)
    facets_SKD[np.repeat(firsts_N, counts_N) + within_T // num_facets, within_T % num_facets] = facets_TD
    return np.repeat(rows_N, places_N), facets_SKD


def first_places(rows_S: Ints) -> Ints:
    """For every place, the first place of its document, ``[S]``; places with negative rows have no document."""
    is_first_S = np.ones(len(rows_S), dtype=np.bool_)
    is_first_S[1:] = (rows_S[1:] != rows_S[:-1]) | (rows_S[1:] < 0)
    firsts: Ints = np.maximum.accumulate(np.where(is_first_S, np.arange(len(rows_S)), 0))
    return firsts


class ReadWriteLock:
    """Many readers or one writer; not reentrant.

    A waiting writer precedes new readers, and readers that waited precede the next writer, so a reader waits for at
    most one write.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._one_writer = threading.Lock()
        self._has_writer = False  # waiting or writing
        self._readers, self.waiting = set[object](), set[object]()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Holds the lock together with other readers."""
        me = object()
        try:
            with self._changed:
                (self.waiting if self._has_writer else self._readers).add(me)
                self._changed.wait_for(lambda: me in self._readers)
            yield
        finally:
            with self._changed:
                self._readers.discard(me)
                self.waiting.discard(me)
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Holds the lock exclusively."""
        with self._one_writer:
            try:
                with self._changed:
                    self._has_writer = True
                    self._changed.wait_for(lambda: not self._readers)
                yield
            finally:
                with self._changed:
                    self._has_writer = False
                    self._readers |= self.waiting
                    self.waiting.clear()
                    self._changed.notify_all()
