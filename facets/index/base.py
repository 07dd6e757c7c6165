"""What indexes share: the contract of searching and training, places for the facets of documents, and a lock.

An index has places for K facets each, and a document of more than K takes several side by side, which have the same
row number: short documents pay nothing for long ones. Shape letters: N documents, T facets of all documents,
Q queries, J facets of a query, K facets of a place, S places, D dimensions.
"""

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.candidates import Candidates

Chunks: TypeAlias = Callable[[], Iterable[tuple[NDArray[np.int64], NDArray[np.float16]]]]


class FacetSource(Protocol):
    """The documents of one collection, where the truth about them is kept; they have K facets of D dimensions."""

    num_facets: int
    dim: int

    def revision(self) -> int:
        """Of the store; it goes back only where the store was restored from a backup."""

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of all documents, ascending; a row number stands for one unchanging set of facets."""

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Those of the rows that still exist, ascending, one a place, and unit-norm facets ``[S, K, D]``."""


class FacetIndex(ABC):
    """Finds the documents whose facets answer the facets of the query best.

    The score of a document x is ``sum_j w_j max_k cos(q_j, F_k(x))``: every facet of the query takes the document's
    best facet. Facets of documents have unit norm; a zero facet is none, and a document without any has cosine 0. The
    norm of a query's facet is its weight, 0 for none, and the weights add up to 1. With one facet this is the best
    facet's cosine.

    An engine that ranks single facets is asked, for every query facet, for the best ``top_k * K`` of them (more where
    documents have more). By the pigeonhole principle these belong to at least top_k documents if each owns at most K;
    where long ones fill the list, every facet in reach is looked at. A query of one facet loses nothing but ties by
    this: were document d of the true top_k missing, all ``top_k * K`` facets in the list would score at least as high,
    and at least top_k documents other than d would be at least as good. Over several facets the union of these
    documents is an approximation, measured by recall of the score above.

    Not thread-safe: one writer or many readers at a time. An index must add and search; what else it has to say is
    for one that is placed by training, so that it wears out as documents come and go, or that a snapshot can hold.

    Attributes:
        kind: Short name for replies and logs, e.g. ``exact``.
        num_facets: K, facets of a place: of each document but long ones.
        dim: D, dimensions of each facet.
        trained_documents: Documents at the last training, which the collection outgrows; None: nothing is trained.
        num_masked: Removed documents whose facets are still compared and skipped, until :meth:`purge`.
        num_holes: Places of removed documents.
    """

    kind: str
    trained_documents: int | None = None
    num_masked = 0
    num_holes = 0

    def __init__(self, *, num_facets: int, dim: int) -> None:
        """Makes an index without documents."""
        self.num_facets = num_facets
        self.dim = dim
        self._num_documents = 0

    @property
    @abstractmethod
    def score_error(self) -> float:
        """Upper bound of the difference between a candidate's score and its true score."""

    @property
    @abstractmethod
    def slots(self) -> NDArray[np.int64]:
        """Row number of every place, ``[S]`` in the order of addition, -1 where the document was removed; a view."""

    @property
    def num_vectors(self) -> int:
        """Facets in memory, those of removed documents included."""
        return len(self.slots) * self.num_facets

    def __len__(self) -> int:
        """Documents in the index."""
        return self._num_documents

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of the documents in the index, ``[N]`` int64, in the order of addition."""
        held = self.slots
        return held[(held >= 0) & (first_places(held) == np.arange(len(held)))]

    def add(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> None:
        """Adds documents.

        Args:
            rows: ``[S]`` int64, >= 0, not yet in the index.
            facets_SKD: Unit-norm facets, ``[S, K, D]`` float32 or float16; places of one document side by side.
        """
        if len(rows):
            self.add_prepared(rows, facets_SKD, self.prepare(rows, facets_SKD))

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Removes documents: their places become holes. Rows that are not in the index are ignored.

        ``rows``: ``[N]`` int64. Returns how many were removed.
        """
        held = self.slots
        gone = np.isin(held, rows) & (held >= 0)
        removed = len(np.unique(held[gone]))
        held[gone] = -1
        self.num_holes += int(np.count_nonzero(gone))
        self._num_documents -= removed
        return removed

    @abstractmethod
    def search(
        self,
        query_QJD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidate documents.

        Args:
            query_QJD: Weighted facets of the queries, ``[Q, J, D]`` float32; J need not be K.
            top_k: Documents wanted for each query, >= 1.
            allowed_rows: Sorted ``[M]`` int64: only these documents may be found. None allows all.
            exhaustive: Compare every document even where the index could skip some.

        Returns:
            At least ``min(top_k, documents allowed)`` candidates for every query.
        """

    def allowed_slots(self, allowed_rows: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        """Places whose document may be found, ``[S]``; see :meth:`search`."""
        held = self.slots
        return held >= 0 if allowed_rows is None else (held >= 0) & np.isin(held, allowed_rows)

    def prepare(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """The slow part of adding these documents, safe beside searches: a line a place, for :meth:`add_prepared`."""
        return np.empty((len(facets_SKD), 0), dtype=np.int64)

    def make_room(self, prepared: NDArray[np.int64]) -> bool:
        """Makes some of the room for these documents, so little that searches can wait for it.

        Returns:
            Whether there is room for all of them; else let searches through and call again.
        """
        return True

    def add_prepared(
        self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating], prepared: NDArray[np.integer]
    ) -> None:
        """Adds documents; row i of ``prepared`` belongs to place i."""
        self.add(rows, facets_SKD)

    def purge(self) -> None:  # noqa: B027 - nothing to do where nothing is masked
        """Takes the facets of removed documents out."""

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Comes after some were added, beside searches: what makes the next ones faster."""

    def describe(self) -> dict[str, int | float | str] | None:
        """For a snapshot: the small numbers that the backend needs to read it; None: it is not saved.

        ``num_facets`` and ``dim`` are among them. :attr:`slots` and what :meth:`write` gives are the rest.
        """
        return None

    def write(self, sink: Callable[[bytes | memoryview], object]) -> None:
        """Streams to ``sink`` what a snapshot holds beside places and description."""
        raise NotImplementedError(f"{self.kind} is not saved")


class IndexBackend(ABC):
    """Makes the indexes of large collections; one line in ``facets.index.backends``."""

    dependency = ""  # who else must answer for it to be searched, as health names it; empty: nobody

    def check(self) -> None:  # noqa: B027 - most depend on nobody
        """Asks whoever it depends on whether they answer, within a second or so; for health.

        Raises:
            StorageError: They do not.
        """

    @abstractmethod
    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> FacetIndex | None:
        """Makes and fills an index; None when the chunks turn out to be empty.

        ``chunks``: gives the documents from the beginning each time it is called: ``[S]`` rows, ``[S, K, D]`` facets.
        ``num_documents``: how many there are, about; at least 1.
        """

    def of(self, name: str, folder: Path) -> "IndexBackend":
        """The backend of one collection.

        ``name``: of the collection, different in every store. ``folder``: where indexes may keep files.
        """
        return self

    def open(self, source: FacetSource) -> FacetIndex | None:
        """What it keeps of the collection by itself; None: nothing, or a snapshot has it.

        Raises:
            StorageError: It cannot be read.
        """
        return None

    def drop(self) -> None:  # noqa: B027 - most keep nothing
        """Deletes what it keeps of the collection by itself."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of what it holds of all collections."""

    def read(
        self, file: "MappedFile", slots: NDArray[np.int64], description: Mapping[str, int | float | str]
    ) -> FacetIndex:
        """Restores an index from what a snapshot holds.

        Raises:
            IndexFormatError: It cannot be restored, as by a backend that saves none; the index is built anew.
        """
        raise IndexFormatError(f"{type(self).__name__} keeps no snapshot; this one is of another backend")

    def enter_background(self) -> None:  # noqa: B027 - most have nothing to do
        """The calling thread will train and fill beside requests: it must leave them room."""


class MappedFile:
    """The first bytes of a file, mapped; what is wanted of them is compared with its checksums the first time.

    A file that was replaced stays as it was for who has it mapped. Thread-safe.

    Attributes:
        path: Of the file.
        num_bytes: How many.
    """

    BLOCK_BYTES = 65_536

    def __init__(self, path: Path, num_bytes: int, checksums_B: NDArray[np.uint32]) -> None:
        """Maps it; ``checksums_B`` are the CRC-32 of each block."""
        self.path = path
        self.num_bytes = num_bytes
        self._bytes: NDArray[np.uint8] = np.memmap(path, np.uint8, "r", shape=(num_bytes,))
        self._checksums = checksums_B
        self._is_unseen = np.ones(len(checksums_B), dtype=np.bool_)

    def up_to(self, num_bytes: int) -> "MappedFile":
        """The same with fewer bytes."""
        fewer = copy(self)
        fewer.num_bytes = num_bytes
        return fewer

    def view(self, start: int, num_bytes: int) -> NDArray[np.uint8]:
        """Bytes that :meth:`check` must have seen before they are looked at."""
        return np.asarray(self._bytes[start : start + num_bytes])

    def read(self, start: int, num_bytes: int) -> NDArray[np.uint8]:
        """Bytes, compared and copied."""
        self.check(np.array([start]), num_bytes)
        return self.view(start, num_bytes).copy()

    def check(self, starts_R: NDArray[np.int64], sizes_R: NDArray[np.int64] | int) -> None:
        """Compares the blocks that ranges of bytes touch, unless they were compared before.

        Raises:
            IndexFormatError: One of them is damaged.
        """
        if not self._is_unseen.any():
            return
        ends_R = np.minimum(starts_R + np.maximum(sizes_R, 1), self.num_bytes)
        wanted = np.zeros(len(self._is_unseen) + 1, dtype=np.int64)
        np.add.at(wanted, starts_R // self.BLOCK_BYTES, 1)
        np.add.at(wanted, (ends_R - 1) // self.BLOCK_BYTES + 1, -1)
        for block in np.flatnonzero((np.cumsum(wanted)[:-1] > 0) & self._is_unseen).tolist():
            start = block * self.BLOCK_BYTES
            if zlib.crc32(self._bytes[start : start + self.BLOCK_BYTES].data) != self._checksums[block]:
                raise IndexFormatError(f"snapshot is damaged: the checksum of its bytes from {start} on differs")
            self._is_unseen[block] = False


def paged(
    rows_N: NDArray[np.int64], facets_TD: NDArray[np.floating], starts_N1: NDArray[np.int64], *, num_facets: int
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Cuts the facets of each document into places of K.

    ``facets_TD``: facets of all documents, one document after another. ``starts_N1``: where the facets of each document
    begin, and T; each has at least one. Returns the row number of every place, ``[S]``, places of a document side by
    side; and their facets ``[S, K, D]``, zero where the last place of a document is not full.

    Example:
        >>> facets = np.array([[1.0], [2.0], [3.0], [4.0]])
        >>> rows, places = paged(np.array([7, 9]), facets, np.array([0, 3, 4]), num_facets=2)
        >>> rows.tolist(), places[:, :, 0].tolist()
        ([7, 7, 9], [[1.0, 2.0], [3.0, 0.0], [4.0, 0.0]])
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


def first_places(rows_S: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first place of the document of every place, ``[S]``; negative rows are places without a document.

    Example:
        >>> first_places(np.array([7, 7, -1, -1, 9])).tolist()
        [0, 0, 2, 3, 4]
    """
    begins_S = np.ones(len(rows_S), dtype=np.bool_)
    begins_S[1:] = (rows_S[1:] != rows_S[:-1]) | (rows_S[1:] < 0)
    firsts: NDArray[np.int64] = np.maximum.accumulate(np.where(begins_S, np.arange(len(rows_S)), 0))
    return firsts


class ReadWriteLock:
    """Many readers or one writer. Not reentrant.

    A waiting writer goes before new readers, and readers that waited for a writer go before the next one: a thread
    that writes again and again stops nobody for longer than one of its writes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_readers = 0
        self.num_waiting_readers = 0
        self._num_waiting_writers = 0
        self._writing = False
        self._readers_first = False  # those that waited for the last writer

    @contextmanager
    def read(self) -> Iterator[None]:
        """Holds the lock beside other readers."""
        with self._changed:
            self.num_waiting_readers += 1
            try:
                self._changed.wait_for(
                    lambda: not self._writing and (self._readers_first or not self._num_waiting_writers)
                )
            finally:
                self.num_waiting_readers -= 1
                if self._readers_first and not self.num_waiting_readers:
                    self._readers_first = False
                    self._changed.notify_all()
            self._num_readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_readers -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Holds the lock alone."""
        with self._changed:
            self._num_waiting_writers += 1
            try:
                self._changed.wait_for(lambda: not (self._writing or self._num_readers or self._readers_first))
            finally:
                self._num_waiting_writers -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._readers_first = self.num_waiting_readers > 0
                self._changed.notify_all()
