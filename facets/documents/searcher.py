"""Searching a collection: index and store brought to one answer while writes go on.

Shape letters: Q queries, J facets of a query, D dimensions.
"""

from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import normalize
from facets.documents.filter_cache import FilterCache
from facets.documents.filters import Filter
from facets.documents.index_manager import IndexManager
from facets.documents.ranking import rank
from facets.documents.records import CollectionRecord
from facets.documents.store import DocumentStore
from facets.documents.types import SearchResult
from facets.errors import InvalidInputError

__all__ = ["Searcher", "weighted_queries"]


class Searcher:
    """Searches collections; thread-safe."""

    def __init__(self, store: DocumentStore, indexes: IndexManager) -> None:
        self._store = store
        self._indexes = indexes
        self._filter_cache = FilterCache()

    def search(
        self,
        record: CollectionRecord,
        query_QJD: NDArray[np.float32],
        top_k: int,
        *,
        filter: Filter | None,
        exact: bool,
        hold_writes: bool,
    ) -> SearchResult | None:
        """One try.

        Args:
            record: The collection.
            query_QJD: Weighted facets of the queries, see :func:`weighted_queries`.
            top_k: Documents wanted for each query.
            filter: Checked; None: all documents.
            exact: Compare every document.
            hold_writes: Let writes to this collection wait meanwhile: then the try always succeeds.

        Returns:
            The answer with ``index_revision`` 0; None when a write to the collection came between index and store.
        """
        with self._indexes.collection_lock(record) if hold_writes else nullcontext():
            live = self._indexes.live(record)
            allowed_rows, filter_revision = None, None
            if filter is not None:
                with self._store.view() as view:
                    current = view.collection(record.name)
                    if current.number != record.number:
                        return None
                    filter_revision = current.revision
                    allowed_rows = self._filter_cache.rows(view, current, filter)
            found = live.search(query_QJD, top_k, allowed_rows=allowed_rows, exhaustive=exact)
            if filter_revision is not None and found.revision != filter_revision:
                return None  # a document that was replaced between the two would be missed
            with self._store.view() as view:
                hits = rank(view, record, query_QJD, candidates=found.candidates, top_k=top_k)
        if hits is None:
            return None
        return SearchResult(hits=hits, index_revision=0, exhaustive=found.candidates.exhaustive, index_kind=found.kind)


def weighted_queries(
    query_facets: NDArray[np.float32], dim: int, *, weights: NDArray[np.floating] | None = None
) -> NDArray[np.float32]:
    """Checks queries and gives every facet its weight as norm, ``[Q, J, D]`` float32.

    Args:
        query_facets: ``[Q, J, D]``, finite; norms do not matter.
        dim: D of the collection.
        weights: ``[Q, J]``, not negative, one of every query above 0; scaled so that those of a query add up to 1.
            None: all equal.

    Raises:
        InvalidInputError: Wrong shape, NaN or infinite values, weights against the rules.
    """
    path = ("query_facets",)
    if not isinstance(query_facets, np.ndarray) or not np.issubdtype(query_facets.dtype, np.floating):
        raise InvalidInputError("must be an array of floats", path=path)
    if query_facets.ndim != 3 or query_facets.shape[2] != dim or not query_facets.size:
        raise InvalidInputError(
            f"has shape {list(query_facets.shape)}, expected [queries, facets, {dim}], none of them 0",
            path=path,
        )
    units_QJD, norms = normalize(query_facets.astype(np.float64))
    if not np.isfinite(norms).all():
        where = (*path, int(np.argwhere(~np.isfinite(norms))[0][0]))
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=where)
    weights_QJ = np.ones(query_facets.shape[:2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights_QJ.shape != query_facets.shape[:2]:
        raise InvalidInputError(
            f"has shape {list(weights_QJ.shape)}, expected [queries, facets] = {list(query_facets.shape[:2])}",
            path="weights",
        )
    totals_Q = weights_QJ.sum(axis=1)
    if not (np.isfinite(weights_QJ).all() and (weights_QJ >= 0).all() and (totals_Q > 0).all()):
        raise InvalidInputError("must be finite, none below 0, and one of every query above 0", path="weights")
    return (units_QJD * (weights_QJ / totals_Q[:, None])[:, :, None]).astype(np.float32)
