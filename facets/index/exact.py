"""Brute-force search in half precision: the reference, the index of small collections, the tail of large ones.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions, C candidates.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, search_in_passes, select_candidates

__all__ = ["ExactIndex", "reference_search"]

_BLOCK_FACETS = 16384  # facets decoded at a time: 16 MB at 256 dimensions; smaller blocks wait more for threads
_MIN_HOLES = 1024  # fewer holes are not worth closing


def reference_search(query_QJD: NDArray[np.float32], facets_NKD: NDArray[np.floating]) -> NDArray[np.float32]:
    """``sum_j w_j max_k cos(q_j, F_k)`` the obvious way, ``[Q, N]``: what every index is tested against.

    Args:
        query_QJD: ``[Q, J, D]``; norms are the weights, which add up to 1.
        facets_NKD: ``[N, K, D]``, norms do not matter; a zero facet is none, and a document without any scores 0.

    Returns:
        ``[Q, N]`` float32 scores in [-1, 1].
    """
    scores = np.zeros((len(query_QJD), len(facets_NKD)))
    for q, query in enumerate(query_QJD.astype(np.float64)):
        for n, document in enumerate(facets_NKD.astype(np.float64)):
            units = [facet / np.linalg.norm(facet) for facet in document if facet.any()]
            for weighted in query:
                scores[q, n] += max([float(weighted @ unit) for unit in units], default=0.0)
    return np.clip(scores, -1.0, 1.0).astype(np.float32)


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
        self._missing: list[NDArray[np.bool_]] = []  # zero facets of each block
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
                self._missing.append(np.zeros(shape[:2], dtype=np.bool_))
            count = min(len(rows) - done, self._block_documents - offset)
            part = facets_NKD[done : done + count]
            self._blocks[block][offset : offset + count] = part
            self._missing[block][offset : offset + count] = ~part.any(axis=2)
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
        query_QJD: NDArray[np.float32],
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
        return search_in_passes(query_QJD, lambda queries: self._select(queries, top_k, allowed))

    def _select(self, query_QJD: NDArray[np.float32], top_k: int, allowed: NDArray[np.bool_]) -> Candidates:
        scores_QN = np.where(allowed, self._scores(query_QJD), np.float32(-np.inf))
        rows_QN = np.broadcast_to(self._rows[: self._num_slots], scores_QN.shape)
        return select_candidates(rows_QN, scores_QN, top_k, margin=2 * self.score_error, exhaustive=True)

    def _scores(self, query_QJD: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of every slot, holes included, ``[Q, slots]``."""
        num_queries, query_facets, dim = query_QJD.shape
        query = torch.from_numpy(np.ascontiguousarray(query_QJD.reshape(-1, dim), dtype=np.float32))
        scores = torch.empty(num_queries, self._num_slots)
        buffer = torch.empty(self._block_documents * self.num_facets, dim)
        for number, block in enumerate(self._blocks):
            start = number * self._block_documents
            count = min(self._block_documents, self._num_slots - start)
            decoded = buffer[: count * self.num_facets]
            decoded.copy_(torch.from_numpy(block[:count].reshape(-1, dim)))
            # [Q * J, n * K] -> [Q, J, n, K] -> best facet for each of the query's, added up [Q, n]
            products = (query @ decoded.T).view(num_queries, query_facets, count, self.num_facets)
            missing = self._missing[number][:count]
            if missing.any():
                products.masked_fill_(torch.from_numpy(missing), -torch.inf)
            best = products.amax(dim=3)
            scores[:, start : start + count] = best.masked_fill_(best == -torch.inf, 0.0).sum(dim=1)
        return scores.numpy()
