"""What an index must be able to do: searching, training and snapshots are separate contracts.

A backend needs the first one only. An index that is placed by training, or that can be saved, says so by having the
members of :class:`TrainedIndex` or :class:`SavedIndex`. Shape letters: N documents, Q queries, J facets of a query,
K facets of a place, S places, D dimensions. A document of more than K facets takes several places side by side, which
have the same row number (:mod:`facets.index.pages`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from facets.index.candidates import Candidates

__all__ = ["Chunks", "FacetIndex", "FacetSource", "IndexBackend", "SavedIndex", "TrainedIndex"]

Chunks: TypeAlias = Callable[[], Iterable[tuple[NDArray[np.int64], NDArray[np.float16]]]]


class FacetSource(Protocol):
    """The documents of one collection, where the truth about them is kept."""

    @property
    def num_facets(self) -> int:
        """K."""
        ...

    @property
    def dim(self) -> int:
        """D."""
        ...

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of all documents, ascending; a row number stands for one unchanging set of facets."""
        ...

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Those of the rows that still exist, ascending, one a place, and unit-norm facets ``[S, K, D]``."""
        ...


class FacetIndex(Protocol):
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

    Implementations are not thread-safe: one writer or many readers at a time.
    """

    @property
    def num_facets(self) -> int:
        """K, facets of a place: of each document but long ones."""
        ...

    @property
    def dim(self) -> int:
        """D, dimensions of each facet."""
        ...

    @property
    def kind(self) -> str:
        """Short name for replies and logs, e.g. ``exact``."""
        ...

    @property
    def num_vectors(self) -> int:
        """Facets in memory, those of removed documents included."""
        ...

    @property
    def score_error(self) -> float:
        """Upper bound of the difference between a candidate's score and its true score."""
        ...

    def __len__(self) -> int:
        """Documents in the index."""
        ...

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of the documents in the index, ``[N]`` int64, in no particular order."""
        ...

    def add(self, rows: NDArray[np.int64], facets_NKD: NDArray[np.floating]) -> None:
        """Adds documents.

        Args:
            rows: ``[S]`` int64, >= 0, not yet in the index.
            facets_NKD: Unit-norm facets, ``[S, K, D]`` float32 or float16; places of one document side by side.
        """
        ...

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Removes documents; rows that are not in the index are ignored.

        Args:
            rows: ``[N]`` int64.

        Returns:
            How many were removed.
        """
        ...

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
        ...


@runtime_checkable
class TrainedIndex(Protocol):
    """An index whose parts are placed by training, so that it wears out as documents come and go."""

    @property
    def trained_documents(self) -> int:
        """Documents at the last training; the collection outgrows it."""
        ...

    @property
    def num_masked(self) -> int:
        """Removed documents whose facets are still compared and skipped."""
        ...

    def prepare(self, facets_NKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """The slow part of adding these documents, safe beside searches; hand the result to :meth:`add_prepared`."""
        ...

    def make_room(self, prepared: NDArray[np.int64]) -> bool:
        """Makes some of the room for these documents, so little that searches can wait for it.

        Returns:
            Whether there is room for all of them; else let searches through and call again.
        """
        ...

    def add_prepared(
        self, rows: NDArray[np.int64], facets_NKD: NDArray[np.floating], prepared: NDArray[np.int64]
    ) -> None:
        """Adds documents; row i of ``prepared`` belongs to place i."""
        ...

    def purge(self) -> None:
        """Takes the facets of removed documents out."""
        ...


@runtime_checkable
class SavedIndex(Protocol):
    """An index that can be written to a snapshot."""

    @property
    def slots(self) -> NDArray[np.int64]:
        """Row number of every place in the index, -1 where the document was removed."""
        ...

    def describe(self) -> dict[str, int | float | str]:
        """The small numbers that the backend needs to read it again; ``num_facets`` and ``dim`` among them."""
        ...

    def write(self, sink: Callable[[bytes], object]) -> None:
        """Streams the rest to ``sink``."""
        ...


class IndexBackend(Protocol):
    """Makes the indexes of large collections; one line in ``facets.index.backends``."""

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> FacetIndex | None:
        """Makes and fills an index; None when the chunks turn out to be empty.

        Args:
            chunks: Gives the documents from the beginning each time it is called: ``[S]`` rows, ``[S, K, D]`` facets.
            num_documents: How many there are, about; at least 1.
            num_facets: K.
        """
        ...

    def read(
        self,
        source: Callable[[int], bytes],
        slots: NDArray[np.int64],
        description: Mapping[str, int | float | str],
        facets: FacetSource,
    ) -> FacetIndex:
        """Restores an index from what a :class:`SavedIndex` gave.

        Args:
            source: Gives the next bytes of what it wrote.
            slots: Its slots.
            description: Its description.
            facets: The documents, for an index that does not write their facets. Not all may be there any more.

        Raises:
            IndexFormatError: It cannot be restored; the index is built anew.
        """
        ...

    def enter_background(self) -> None:
        """The calling thread will train and fill beside requests: it must leave them room."""
        ...
