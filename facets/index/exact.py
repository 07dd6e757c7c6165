"""Brute-force search in half precision: the reference, the index of small collections, the tail of large ones.

Shape letters: N documents, Q queries, K facets, D dimensions, C candidates.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, search_in_passes, select_candidates

__all__ = ["ExactIndex", "reference_search"]

_BLOCK_FACETS = 16384  # facets decoded at a time: 16 MB at 256 dimensions; smaller blocks wait more for threads
_MIN_HOLES = 1024  # fewer holes are not worth closing


def reference_search(query_QKD: NDArray[np.float32], facets_NKD: NDArray[np.floating]) -> NDArray[np.float32]:
    """Max-over-facets cosines the obvious way, ``[Q, N]``: what every index is tested against.

    Args:
        query_QKD: ``[Q, Kq, D]``, norms do not matter.
        facets_NKD: ``[N, K, D]``, norms do not matter; a zero facet scores 0.

    Returns:
        ``[Q, N]`` float32 scores in [-1, 1].
    """
    scores = np.empty((len(query_QKD), len(facets_NKD)), dtype=np.float32)
    for q, query in enumerate(query_QKD.astype(np.float64)):
        for n, document in enumerate(facets_NKD.astype(np.float64)):
            norms = np.outer(np.linalg.norm(query, axis=1), np.linalg.norm(document, axis=1))
            cosines = np.divide(query @ document.T, norms, out=np.zeros_like(norms), where=norms > 0)
            scores[q, n] = np.clip(cosines.max(), -1.0, 1.0)
    return scores


class ExactIndex:
    """Compares every document, block by block; see :class:`facets.index.protocols.FacetIndex`.

    Facets are held once, as float16, in blocks of equal size; a block is decoded to float32 only while it is
    multiplied. Removed documents leave holes, which are closed when they outnumber the documents.
    """

    kind = "exact"
    score_error = HALF_PRECISION_ERROR

    def __init__(self, *, num_facets: int, dim: int) -> None:
        self.num_facets = num_facets
        self.dim = dim
        self._block_documents = max(1, _BLOCK_FACETS // num_facets)
        self._clear()

    def _clear(self) -> None:
        self._blocks: list[NDArray[np.float16]] = []
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # -1 marks a hole
        self._num_slots = 0
        self._num_documents = 0

    def __len__(self) -> int:
        """Documents in the index."""
        return self._num_documents

    @property
    def num_slots(self) -> int:
        """Places in memory, those of removed documents included."""
        return self._num_slots

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of the documents, ``[N]`` int64, in the order of addition."""
        rows = self._rows[: self._num_slots]
        return rows[rows >= 0]

    def add(self, rows: NDArray[np.int64], facets_NKD: NDArray[np.floating]) -> None:
        """Adds documents; see :meth:`facets.index.protocols.FacetIndex.add`."""
        start, end = self._num_slots, self._num_slots + len(rows)
        if end > len(self._rows):
            grown = np.full(max(end, 2 * len(self._rows)), -1, dtype=np.int64)
            grown[:start] = self._rows[:start]
            self._rows = grown
        done = 0
        while done < len(rows):
            block, offset = divmod(start + done, self._block_documents)
            if block == len(self._blocks):
                shape = (self._block_documents, self.num_facets, self.dim)
                self._blocks.append(np.empty(shape, dtype=np.float16))
            count = min(len(rows) - done, self._block_documents - offset)
            self._blocks[block][offset : offset + count] = facets_NKD[done : done + count]
            done += count
        self._rows[start:end] = rows
        self._num_slots = end
        self._num_documents += len(rows)

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Removes documents; see :meth:`facets.index.protocols.FacetIndex.remove`."""
        held = self._rows[: self._num_slots]
        gone = np.isin(held, rows) & (held >= 0)
        held[gone] = -1
        removed = int(np.count_nonzero(gone))
        self._num_documents -= removed
        if self._num_documents == 0:
            self._clear()
        elif self._num_slots > 2 * self._num_documents + _MIN_HOLES:
            self._compact()
        return removed

    def _compact(self) -> None:
        rows, blocks, num_slots = self._rows, self._blocks, self._num_slots
        self._clear()
        for start in range(0, num_slots, self._block_documents):
            kept = rows[start : min(start + self._block_documents, num_slots)]
            block = blocks[start // self._block_documents][: len(kept)]
            self.add(kept[kept >= 0], block[kept >= 0])

    def read(self, limit: int) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """The oldest documents: ``[n]`` rows and ``[n, K, D]`` float16 facets, n <= limit."""
        slots = np.flatnonzero(self._rows[: self._num_slots] >= 0)[:limit]
        facets = np.empty((len(slots), self.num_facets, self.dim), dtype=np.float16)
        numbers = slots // self._block_documents
        for number in np.unique(numbers):
            mine = numbers == number
            facets[mine] = self._blocks[number][slots[mine] % self._block_documents]
        return self._rows[slots], facets

    def search(
        self,
        query_QKD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidates among all documents; see :meth:`facets.index.protocols.FacetIndex.search`."""
        held = self._rows[: self._num_slots]
        allowed = held >= 0
        if allowed_rows is not None:
            allowed &= np.isin(held, allowed_rows)
        return search_in_passes(query_QKD, lambda queries: self._select(queries, top_k, allowed))

    def _select(self, query_QKD: NDArray[np.float32], top_k: int, allowed: NDArray[np.bool_]) -> Candidates:
        scores_QN = np.where(allowed, self._scores(query_QKD), np.float32(-np.inf))
        rows_QN = np.broadcast_to(self._rows[: self._num_slots], scores_QN.shape)
        return select_candidates(rows_QN, scores_QN, top_k, margin=2 * self.score_error, exhaustive=True)

    def _scores(self, query_QKD: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of every slot, holes included, ``[Q, slots]``."""
        num_queries, query_facets, dim = query_QKD.shape
        query = torch.from_numpy(np.ascontiguousarray(query_QKD.reshape(-1, dim), dtype=np.float32))
        scores = torch.empty(num_queries, self._num_slots)
        buffer = torch.empty(self._block_documents * self.num_facets, dim)
        for number, block in enumerate(self._blocks):
            start = number * self._block_documents
            count = min(self._block_documents, self._num_slots - start)
            decoded = buffer[: count * self.num_facets]
            decoded.copy_(torch.from_numpy(block[:count].reshape(-1, dim)))
            # [Q * Kq, n * K] -> [Q, Kq, n, K] -> best pair of facets [Q, n]
            products = (query @ decoded.T).view(num_queries, query_facets, count, self.num_facets)
            scores[:, start : start + count] = products.amax(dim=(1, 3))
        return scores.numpy()
