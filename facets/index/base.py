"""The contract of every vector index: facets in, candidate documents out.

Shape letters: N documents, Q queries, K facets, D dimensions, C candidates.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Candidates", "FacetIndex"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Documents found for every query, best first.

    Attributes:
        rows: ``[Q, C]`` int64 row numbers, C >= top_k; -1 where fewer documents were found (always at the end
            of a line).
        scores: ``[Q, C]`` float32 max-over-facets cosines, ``-inf`` where ``rows`` is -1. Each differs from the
            true score by at most ``score_error`` of the index.
        exhaustive: True when every allowed document was compared: then every document that may belong to
            the top_k is among the candidates, ties at the cut included, given ``score_error``.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    exhaustive: bool


class FacetIndex(Protocol):
    """Finds the documents whose best facet is closest to a facet of the query.

    The score of a document is the maximum, over every pair of a query facet i and a document facet j, of their
    cosine. Facets have unit norm (a zero facet is allowed and scores 0).

    An engine that ranks single facets is asked, for every query facet, for the best ``top_k * K`` of them. By
    the pigeonhole principle these belong to at least top_k documents, since one document owns at most K. And
    they suffice: if document d of the true top_k, whose score is reached at (i, j), were missing from the list
    of facet i, then all ``top_k * K`` facets in that list would score at least as high, and at least top_k
    documents other than d would be at least as good. So grouping loses nothing but ties.

    Implementations are not thread-safe: one writer or many readers at a time.
    """

    @property
    def num_facets(self) -> int:
        """K, facets of each document."""
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
    def score_error(self) -> float:
        """Upper bound of the difference between a candidate's score and its true score."""
        ...

    def __len__(self) -> int:
        """Documents in the index."""
        ...

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of the documents in the index, ``[N]`` int64, in no particular order."""
        ...

    def add(self, rows: NDArray[np.int64], facets_NKD: NDArray[np.float32]) -> None:
        """Adds documents.

        Args:
            rows: ``[N]`` int64, >= 0, not yet in the index.
            facets_NKD: Unit-norm facets, ``[N, K, D]`` float32 or float16.
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
        query_QKD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidate documents.

        Args:
            query_QKD: Unit-norm facets of the queries, ``[Q, Kq, D]`` float32; Kq need not be K.
            top_k: Documents wanted for each query, >= 1.
            allowed_rows: Sorted ``[M]`` int64: only these documents may be found. None allows all.
            exhaustive: Compare every document even where the index could skip some.

        Returns:
            At least ``min(top_k, documents allowed)`` candidates for every query.
        """
        ...
