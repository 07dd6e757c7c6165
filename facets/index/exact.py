"""Brute-force search in half precision: the index of small collections and the tail of large ones.

On a GPU it is the index of all of them: there a product of matrices beats skipping.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions, C candidates.
"""

import logging
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.devices import no_memory_for
from facets.index.base import FacetIndex, first_places
from facets.index.candidates import (
    HALF_PRECISION_ERROR,
    Candidates,
    join_candidates,
    search_in_passes,
    select_candidates,
)

logger = logging.getLogger(__name__)

# Facets decoded at a time: 16 MB at 256 dimensions, where smaller blocks wait more for threads; a GPU wants more work.
BLOCK_FACETS = {"cpu": 16_384, "cuda": 131_072}
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


class ExactIndex(FacetIndex):
    """Compares every document, block by block.

    Facets are held once, as float16, in blocks of equal size; a block is decoded to float32 only while it is
    multiplied. A document of more than K facets takes several slots side by side. Removed documents leave holes, which
    are closed when they outnumber the rest.

    On a GPU the same is done in its memory, and only what may be among the best comes back. Blocks that do not fit
    stay with the processor, and go to the GPU for each search: slower, and the same results.
    """

    score_error = HALF_PRECISION_ERROR

    def __init__(self, *, num_facets: int, dim: int, device: str = "cpu", preselect: bool | None = None) -> None:
        """Makes an empty index.

        Args:
            num_facets: K.
            dim: D.
            device: Whose memory it is in, by torch's name.
            preselect: Whether only what may be among the best leaves the device; None: unless that is the processor.
        """
        super().__init__(num_facets=num_facets, dim=dim)
        self._device = torch.device(device)
        self._preselect = self._device.type != "cpu" if preselect is None else preselect
        self._block_documents = max(1, BLOCK_FACETS[self._device.type] // num_facets)
        self._clear()

    @property
    def kind(self) -> str:
        """``exact``, or ``exact-cuda``."""
        return "exact" if self._device.type == "cpu" else f"exact-{self._device.type}"

    def _clear(self) -> None:
        self._blocks: list[Tensor] = []  # [n, K, D] float16
        self._missing: list[Tensor | None] = []  # zero facets of each block, [n, K]; None: there is none
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # -1 marks a hole
        self._num_slots = 0
        self._num_documents = 0

    @property
    def slots(self) -> NDArray[np.int64]:
        """Row number of every place in memory, -1 marks a hole."""
        return self._rows[: self._num_slots]

    def add(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> None:
        """Adds documents; see :meth:`FacetIndex.add`."""
        start, end = self._num_slots, self._num_slots + len(rows)
        if end > len(self._rows):
            grown = np.full(max(end, 2 * len(self._rows)), -1, dtype=np.int64)
            grown[:start] = self._rows[:start]
            self._rows = grown
        done = 0
        while done < len(rows):
            block, offset = divmod(start + done, self._block_documents)
            if block == len(self._blocks):
                self._blocks.append(self._new_block())
                self._missing.append(None)
            count = min(len(rows) - done, self._block_documents - offset)
            part = facets_SKD[done : done + count]
            self._blocks[block][offset : offset + count] = torch.from_numpy(np.ascontiguousarray(part))
            missing_NK = np.logical_not(part.any(axis=2))
            self._mark_missing(block, offset, missing_NK)
            done += count
        self._rows[start:end] = rows
        self._num_slots = end
        # Compacting may add the places of one document in two calls.
        before = np.concatenate([self._rows[start - 1 : start] if start else [-1], rows[:-1]])
        self._num_documents += int(np.count_nonzero(rows != before[: len(rows)]))

    def _new_block(self) -> Tensor:
        """An empty block, in the memory of the device while there is room."""
        shape = (self._block_documents, self.num_facets, self.dim)
        if self._device.type != "cpu":
            try:
                return torch.empty(shape, dtype=torch.float16, device=self._device)
            except torch.OutOfMemoryError:
                logger.warning("the memory of %s is full: searches are slower from here on", self._device)
        return torch.from_numpy(np.empty(shape, dtype=np.float16))  # NumPy asks for large pages, which are read faster

    def _mark_missing(self, block: int, offset: int, missing_NK: NDArray[np.bool_]) -> None:
        marks = self._missing[block]
        if marks is None:
            if not missing_NK.any():
                return
            marks = torch.zeros(self._block_documents, self.num_facets, dtype=torch.bool, device=self._device)
            self._missing[block] = marks
        marks[offset : offset + len(missing_NK)] = torch.from_numpy(missing_NK)

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Removes documents and closes their holes when there are many; see :meth:`FacetIndex.remove`."""
        removed = super().remove(rows)
        if self._num_documents == 0:
            self._clear()
            return removed
        self._drop_front()
        held = self.slots
        if self._num_slots > 2 * np.count_nonzero(held >= 0) + _MIN_HOLES:
            self._compact()
        return removed

    def _drop_front(self) -> None:
        """Forgets blocks of holes at the front: where the oldest documents go elsewhere, nothing is copied."""
        blocks = int(np.argmax(self.slots >= 0)) // self._block_documents
        if blocks:
            slots = blocks * self._block_documents
            self._blocks, self._missing = self._blocks[blocks:], self._missing[blocks:]
            self._rows = self._rows[slots:].copy()
            self._num_slots -= slots

    def _compact(self) -> None:
        rows, blocks, num_slots = self._rows, self._blocks, self._num_slots
        self._clear()
        for start in range(0, num_slots, self._block_documents):
            kept = rows[start : min(start + self._block_documents, num_slots)]
            block = blocks[start // self._block_documents][: len(kept)].cpu().numpy()
            self.add(kept[kept >= 0], block[kept >= 0])

    def read(self, limit: int) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """The oldest documents, whole: ``[S]`` rows and ``[S, K, D]`` float16 facets of about ``limit`` places."""
        slots = np.flatnonzero(self.slots >= 0)
        if len(slots) > limit:
            limit += int(np.count_nonzero(self._rows[slots[limit:]] == self._rows[slots[limit - 1]]))
        slots = slots[:limit]
        facets = np.empty((len(slots), self.num_facets, self.dim), dtype=np.float16)
        numbers = slots // self._block_documents
        for number in np.unique(numbers):
            mine = numbers == number
            facets[mine] = self._blocks[number][torch.from_numpy(slots[mine] % self._block_documents)].cpu().numpy()
        return self._rows[slots], facets

    def search(
        self,
        query_QJD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidates among all documents; see :meth:`FacetIndex.search`."""
        allowed = self.allowed_slots(allowed_rows)
        return search_in_passes(
            query_QJD, lambda queries: search_in_halves(queries, lambda part: self._select(part, top_k, allowed))
        )

    def _select(self, query_QJD: NDArray[np.float32], top_k: int, allowed: NDArray[np.bool_]) -> Candidates:
        held = self.slots
        firsts_N = np.flatnonzero(first_places(held) == np.arange(len(held)))
        allowed_N = torch.from_numpy(allowed[firsts_N]).to(self._device)
        scores_QN = self._scores(query_QJD, firsts_N).masked_fill_(~allowed_N, -torch.inf)
        margin = 2 * self.score_error
        if self._preselect:
            columns_QC, scores_QC = best_columns(scores_QN, top_k, margin=margin)
            rows_QC = held[firsts_N][columns_QC]
        else:
            scores_QC = scores_QN.numpy()
            rows_QC = np.broadcast_to(held[firsts_N], scores_QC.shape)
        return select_candidates(rows_QC, scores_QC, top_k, margin=margin, exhaustive=True)

    def _scores(self, query_QJD: NDArray[np.float32], firsts_N: NDArray[np.int64]) -> Tensor:
        """Scores of the documents that begin at these slots, holes included, ``[Q, N]``."""
        num_queries, query_facets, dim = query_QJD.shape
        device = self._device
        query = torch.from_numpy(np.ascontiguousarray(query_QJD.reshape(-1, dim), dtype=np.float32)).to(device)
        several = len(firsts_N) < self._num_slots  # slots of a document: sums have to wait for all of them
        scores = torch.empty(num_queries, self._num_slots, device=device)
        best = torch.empty(num_queries, query_facets, self._num_slots if several else 0, device=device)
        buffer = torch.empty(self._block_documents * self.num_facets, dim, device=device)
        for number, block in enumerate(self._blocks):
            start = number * self._block_documents
            count = min(self._block_documents, self._num_slots - start)
            decoded = buffer[: count * self.num_facets]
            decoded.copy_(block[:count].reshape(-1, dim))
            # [Q * J, n * K] -> [Q, J, n, K] -> best facet for each of the query's, added up [Q, n]
            products = (query @ decoded.T).view(num_queries, query_facets, count, self.num_facets)
            missing = self._missing[number]
            if missing is not None:
                products.masked_fill_(missing[:count], -torch.inf)
            if several:
                best[:, :, start : start + count] = products.amax(dim=3)
            else:
                scores[:, start : start + count] = _sums(products.amax(dim=3))
        return _sums(_best_of_documents(best, firsts_N)) if several else scores


def _best_of_documents(best_QJS: Tensor, firsts_N: NDArray[np.int64]) -> Tensor:
    """The best slot of each document, ``[Q, J, N]``."""
    lengths_N = torch.from_numpy(np.diff(firsts_N, append=best_QJS.shape[2])).to(best_QJS.device)
    shape = (*best_QJS.shape[:2], len(firsts_N))
    return torch.segment_reduce(best_QJS, "max", lengths=lengths_N.expand(shape).contiguous(), axis=2, unsafe=True)


def _sums(best_QJN: Tensor) -> Tensor:
    """Over the facets of the queries; a document without any facet has cosine 0."""
    return best_QJN.masked_fill_(best_QJN == -torch.inf, 0.0).sum(dim=1)


def best_columns(scores_QN: Tensor, top_k: int, *, margin: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What may belong to the best ``top_k``, chosen where the scores are.

    Args:
        scores_QN: ``[Q, N]``, ``-inf`` for none.
        top_k: Columns wanted.
        margin: Everything within this distance of the top_k-th score is taken.

    Returns:
        Their columns, ``[Q, C]`` ascending, and their scores; of some queries more than may belong to the best.
    """
    num_documents = scores_QN.shape[1]
    if num_documents > top_k:
        kth_Q = scores_QN.topk(top_k, dim=1).values[:, -1:]
        near_QN = (scores_QN >= kth_Q - margin) & (scores_QN > -torch.inf)
        num_documents = max(top_k, int(near_QN.sum(dim=1).amax()))
    columns_QC = scores_QN.topk(min(num_documents, scores_QN.shape[1]), dim=1).indices.sort(dim=1).values
    return columns_QC.cpu().numpy(), scores_QN.gather(1, columns_QC).cpu().numpy()


def search_in_halves(query_QJD: NDArray[np.float32], search: Callable[[NDArray[np.float32]], Candidates]) -> Candidates:
    """Fewer queries at a time, down to one, where the device has no memory for all of them.

    Raises:
        OverloadedError: Not even for one.
    """
    try:
        return search(query_QJD)
    except torch.OutOfMemoryError as error:
        if len(query_QJD) < 2:
            raise no_memory_for("one query") from error
    half = len(query_QJD) // 2
    return join_candidates([search_in_halves(part, search) for part in (query_QJD[:half], query_QJD[half:])])
