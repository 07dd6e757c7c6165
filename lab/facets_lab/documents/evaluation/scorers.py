"""Exact scores of every document for blocks of queries: BM25, one vector, several vectors.

Shape letters: N documents, Q queries, B queries of a block, F facets of all documents, D dimensions.
"""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bm25Scorer", "FacetScorer", "Scorer", "SummedScorer", "VectorScorer", "best_rows"]

_K1, _B = 0.9, 0.4


class Scorer(Protocol):
    """Scores documents.

    Attributes:
        num_vectors: Vectors a document that it keeps, on average; 0 without any.
    """

    num_vectors: float

    def scores(self, block: slice) -> NDArray[np.float32]:
        """``[B, N]`` for these queries; higher is better."""
        ...


class Bm25Scorer:
    """BM25 with k1 0.9, b 0.4, English stemming and stop words (bm25s); 0 where no term is shared."""

    num_vectors = 0.0

    def __init__(self, documents: Sequence[str], queries: Sequence[str]) -> None:
        """Indexes the documents.

        Raises:
            ImportError: bm25s or PyStemmer is not installed.
        """
        import bm25s
        from Stemmer import Stemmer

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for everything when it is imported
        options: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer("english"), "show_progress": False}
        self._num_documents = len(documents)
        self._queries: list[list[str]] = bm25s.tokenize(list(queries), return_ids=False, **options)
        terms = bm25s.tokenize(list(documents), **options)
        self._index: Any = None
        if any(terms.ids):  # bm25s fails on documents without a single term
            self._index = bm25s.BM25(k1=_K1, b=_B)
            self._index.index(terms, show_progress=False)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        scores_BN = np.zeros((len(self._queries[block]), self._num_documents), dtype=np.float32)
        for row, terms in enumerate(self._queries[block]):
            if terms and self._index is not None:
                scores_BN[row] = self._index.get_scores(terms)
        return scores_BN


class VectorScorer:
    """Cosines of one vector a document."""

    num_vectors = 1.0

    def __init__(self, units_ND: NDArray[np.float32], query_units_QD: NDArray[np.float32]) -> None:
        self._units_ND = units_ND
        self._query_units_QD = query_units_QD

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        return self._query_units_QD[block] @ self._units_ND.T


class FacetScorer:
    """The cosine of the document's best facet."""

    num_vectors: float

    def __init__(self, facets: Sequence[NDArray[np.float32]], query_units_QD: NDArray[np.float32]) -> None:
        """Takes the facets of each document, one or more unit vectors ``[., D]``."""
        self._query_units_QD = query_units_QD
        self._facets_FD = np.concatenate(facets)
        self._starts_N = np.cumsum([0, *(len(of_document) for of_document in facets[:-1])])
        self.num_vectors = len(self._facets_FD) / len(facets)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        cosines_BF = self._query_units_QD[block] @ self._facets_FD.T
        return np.asarray(np.maximum.reduceat(cosines_BF, self._starts_N, axis=1))


class SummedScorer:
    """The sum of several scorers: of a document's own vector and its best facet."""

    def __init__(self, *scorers: Scorer) -> None:
        self._scorers = scorers
        self.num_vectors = sum(scorer.num_vectors for scorer in scorers)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        return np.sum([scorer.scores(block) for scorer in self._scorers], axis=0, dtype=np.float32)


def best_rows(scores_N: NDArray[np.floating], num_rows: int) -> NDArray[np.int64]:
    """Rows of the greatest scores, best first, ties by row.

    Example:
        >>> best_rows(np.array([0.1, 0.7, 0.3, 0.7]), 3).tolist()
        [1, 3, 2]
    """
    if num_rows < len(scores_N):
        threshold = np.partition(scores_N, -num_rows)[-num_rows]
        rows = np.flatnonzero(scores_N >= threshold)
    else:
        rows = np.arange(len(scores_N))
    return rows[np.argsort(-scores_N[rows], kind="stable")][:num_rows]
