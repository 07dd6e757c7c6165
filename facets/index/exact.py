"""Brute-force search over codes: the index of small collections and the tail of large ones.

A facet is kept as int8 codes, the largest being 127, and the inverse of their norm. On the CPU, a query is coded, too,
and compared with all documents by integer products; those that may be among the best are compared again with a finer
code of the query. On a GPU, codes are multiplied as floats at once; there it is the index of collections of any size.
Shape letters: N documents, S places, Q queries, J facets of a query, K facets of a place, D dimensions, C candidates.
"""

import logging
import warnings
from bisect import bisect_right
from collections.abc import Callable
from functools import reduce

import numkong
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.arrays import Bools, Floats, Ints, Vectors
from facets.devices import no_memory_for
from facets.index.base import FacetIndex, first_places
from facets.index.candidates import Candidates, padded, select_candidates

logger = logging.getLogger(__name__)

# Facets of the largest block (each block is twice as large as the one before), and facets compared at a time.
BLOCK_FACETS = {"cpu": 1 << 20, "cuda": 1 << 17}
_FIRST_BLOCK_FACETS = 1024
_PASS_FACETS = {"cpu": 1 << 14, "cuda": 1 << 17}
_PASS_QUERY_FACETS = 1024
_MIN_HOLES = 1024  # fewer holes are not worth compacting
_MAX_CODE = 127


def document_codes(facets_SKD: Vectors) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Codes ``[S, K, D]``, inverse norms of the codes (0 for zero facets) and errors of the facets, both ``[S, K]``.

    Facets that the store decoded from such codes yield the same codes again.
    """
    facets = facets_SKD.astype(np.float32)
    largest = np.maximum(facets.max(axis=2), -facets.min(axis=2))
    codes = facets * (_MAX_CODE / np.where(largest > 0, largest, 1))[:, :, None]
    np.rint(codes, out=codes)
    norms = np.sqrt(np.einsum("skd,skd->sk", codes, codes))
    inverse = (1 / np.where(norms > 0, norms, np.inf)).astype(np.float32)
    facets -= codes * inverse[:, :, None]
    return codes.astype(np.int8), inverse, np.sqrt(np.einsum("skd,skd->sk", facets, facets))


class PackedCodes:
    """Codes that others are multiplied with."""

    def __init__(self, codes_JD: Floats) -> None:
        self._codes_JD = codes_JD.astype(np.int8)
        # Four take less time than two or three.
        padded = np.pad(self._codes_JD, ((0, -len(codes_JD) % 4), (0, 0)))
        self._packed = numkong.dots_pack(padded, dtype="int8") if len(codes_JD) > 1 else None

    def times(self, codes_TD: NDArray[np.int8]) -> NDArray[np.float32 | np.int32]:
        """Products ``[T, J]``."""
        if self._packed is None:  # half as long as packed
            return np.asarray(numkong.cdist(codes_TD, self._codes_JD, "dot"), dtype=np.float32)
        return np.asarray(numkong.dots_packed(codes_TD, self._packed))[:, : len(self._codes_JD)]


class CodedQuery:
    """Facets of queries as int8 codes."""

    def __init__(self, query_QJD: Floats) -> None:
        facets_FD = query_QJD.reshape(-1, query_QJD.shape[2]).astype(np.float32)
        codes, scales = coded(facets_FD)
        errors = np.linalg.norm(facets_FD - codes * scales, axis=1)
        # Largest error of a score for each query, `[Q, 1]`.
        self.error = errors.reshape(query_QJD.shape[:2]).sum(axis=1, keepdims=True)
        self._codes = PackedCodes(codes)
        self._scales = torch.from_numpy(scales[:, 0])  # of the products, [Q J]

    def times(self, codes_TD: NDArray[np.int8]) -> Tensor:
        """Products ``[T, Q J]``."""
        return torch.from_numpy(self._codes.times(codes_TD)) * self._scales


def coded(vectors_FD: Floats) -> tuple[Floats, Floats]:
    """Codes ``[F, D]`` in [-127, 127], whole numbers as floats, and the scales to multiply them by, ``[F, 1]``."""
    largest = np.abs(vectors_FD).max(axis=1, keepdims=True)
    scales = (np.where(largest > 0, largest, 1) / _MAX_CODE).astype(np.float32)
    return np.rint(vectors_FD / scales), scales


def _fine_products(codes_TD: NDArray[np.int8], query_JD: Floats) -> Floats:
    """Products ``[T, J]`` with a query that is coded twice: the second time, what the first code leaves."""
    codes, scales = coded(query_JD)
    rest, scales_of_rest = coded(query_JD - codes * scales)
    products = torch.from_numpy(PackedCodes(np.concatenate([codes, rest])).times(codes_TD))
    scaled = products * torch.from_numpy(np.concatenate([scales, scales_of_rest])[:, 0])
    return (scaled[:, : len(codes)] + scaled[:, len(codes) :]).numpy()


class ExactIndex(FacetIndex):
    """Compares every document, block by block.

    Removed documents leave holes, which are compacted when they outnumber the rest. On a GPU, only scores of candidates
    are copied back; blocks that do not fit in its memory stay in main memory and are copied there for each search.
    """

    def __init__(
        self, *, num_facets: int, dim: int, device: str = "cpu", preselect: bool | None = None, room: int = 0
    ) -> None:
        """Makes an empty index.

        ``preselect``: whether to work as on a GPU; None: if the device is one. ``room``: places to allocate at once.
        """
        super().__init__(num_facets=num_facets, dim=dim)
        self._device = torch.device(device)
        self.kind = "exact" if self._device.type == "cpu" else f"exact-{self._device.type}"
        self._preselect = self._device.type != "cpu" if preselect is None else preselect
        self._room = room
        self.code_error = 0.0  # largest error of a facet
        self._clear()

    @property
    def score_error(self) -> float:
        """Largest error of codes of documents, of fine codes of queries, and of float sums."""
        return self.code_error + self.dim**0.5 / (2 * _MAX_CODE) ** 2 + 1e-5

    def _clear(self) -> None:
        self._blocks: list[tuple[Tensor, Tensor]] = []  # codes [n, K, D], inverse norms [n, K]
        self._starts: list[int] = []  # first slot of each block
        self._rows: Ints = np.empty(0, dtype=np.int64)  # -1: hole
        self._num_slots = self._num_documents = self.num_holes = 0
        self._has_long = False  # whether there are documents of several places
        self._ascending: Ints | None = None  # rows of all places, those of holes replaced by the row before; None: new

    def write(self, sink: Callable[[bytes | memoryview], object]) -> None:
        """Streams codes ``[S, K, D]``, then inverse norms ``[S, K]``, to ``sink``; see :meth:`_map`."""
        for part in (0, 1):
            for start, block in zip(self._starts, self._blocks, strict=True):
                if start < self._num_slots:
                    sink(block[part][: self._num_slots - start].numpy().data)

    def _map(self, content: NDArray[np.uint8], rows_S: Ints, *, code_error: float) -> None:
        """Opens what :meth:`write` wrote; codes stay in the mapped file.

        ``rows_S``: row of each place, -1: hole.
        """
        places, num_codes = len(rows_S), len(rows_S) * self.num_facets * self.dim
        codes, inverse = content[:num_codes].view(np.int8), content[num_codes:].copy().view("<f4")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the array is read-only
            block = torch.from_numpy(codes.reshape(places, self.num_facets, self.dim))
        self._blocks, self._starts = [(block, torch.from_numpy(inverse.reshape(places, -1).astype(np.float32)))], [0]
        self._rows, self._num_slots, self._ascending, self.code_error = rows_S, places, None, code_error
        is_first = (first_places(rows_S) == np.arange(places)) & (rows_S >= 0)
        self._num_documents = int(np.count_nonzero(is_first))
        self.num_holes = int(np.count_nonzero(rows_S < 0))
        self._has_long = self._num_documents + self.num_holes < places

    @property
    def slots(self) -> Ints:
        """Row of every place, -1: hole."""
        return self._rows[: self._num_slots]

    def add_prepared(self, rows: Ints, facets_SKD: Vectors, prepared: NDArray[np.integer]) -> None:
        """Adds documents."""
        codes, inverse, errors = document_codes(facets_SKD)
        self.code_error = float(errors.max(initial=self.code_error))
        self._add(rows, torch.from_numpy(codes), torch.from_numpy(inverse))

    def _add(self, rows: Ints, codes_SKD: Tensor, inverse_SK: Tensor) -> None:
        start, end = self._num_slots, self._num_slots + len(rows)
        if end > len(self._rows):
            grown = np.full(max(end, 2 * len(self._rows)), -1, dtype=np.int64)
            grown[:start] = self._rows[:start]
            self._rows = grown
        done = start
        while done < end:
            if not self._blocks or done == self._starts[-1] + len(self._blocks[-1][0]):
                self._new_block()
            offset, (codes, inverse) = done - self._starts[-1], self._blocks[-1]
            count = min(end - done, len(codes) - offset)
            codes[offset : offset + count] = codes_SKD[done - start : done - start + count]
            inverse[offset : offset + count] = inverse_SK[done - start : done - start + count]
            done += count
        self._rows[start:end] = rows
        self._num_slots, self._ascending = end, None
        # Compaction may add the places of one document in two calls.
        before = np.concatenate([self._rows[start - 1 : start] if start else [-1], rows[:-1]])[: len(rows)]
        added = int(np.count_nonzero(rows != before))
        self._num_documents += added
        self._has_long |= added < len(rows)

    def _new_block(self) -> None:
        """Appends an empty block, in the memory of the device if there is space."""
        before = len(self._blocks[-1][0]) if self._blocks else 0
        facets = min(2 * before * self.num_facets or _FIRST_BLOCK_FACETS, BLOCK_FACETS[self._device.type])
        places = max(1, self._room - self._num_slots, facets // self.num_facets)
        self._starts.append(self._starts[-1] + before if before else self._num_slots)
        # NumPy requests large pages, which are faster; unused parts take no memory.
        codes = torch.from_numpy(np.empty((places, self.num_facets, self.dim), dtype=np.int8))
        inverse = torch.from_numpy(np.empty((places, self.num_facets), dtype=np.float32))
        if self._device.type != "cpu":
            try:
                codes, inverse = (torch.empty_like(part, device=self._device) for part in (codes, inverse))
            except torch.OutOfMemoryError:
                logger.warning("the memory of %s is full: searches are slower from here on", self._device)
        self._blocks.append((codes, inverse))

    def remove(self, rows: Ints) -> int:
        """Removes documents and compacts when there are many holes."""
        removed = super().remove(rows)
        if self._num_documents == 0:
            self._clear()
        elif removed:
            self._drop_front()
            if 2 * self.num_holes > self._num_slots + _MIN_HOLES:
                self._compact()
        return removed

    def _drop_front(self) -> None:
        """Drops leading blocks of holes, so that nothing is copied when the oldest documents move to another index."""
        block = bisect_right(self._starts, int(np.argmax(self.slots >= 0))) - 1
        if block:
            slots = self._starts[block]
            self._blocks, self._starts = self._blocks[block:], [start - slots for start in self._starts[block:]]
            self._rows = self._rows[slots:].copy()
            self._num_slots, self._ascending = self._num_slots - slots, None
            self.num_holes -= slots

    def _compact(self) -> None:
        held, blocks, starts = self.slots, self._blocks, self._starts
        self._clear()
        for start, (codes, inverse) in zip(starts, blocks, strict=True):
            mine = held[start : start + len(codes)]
            kept = torch.from_numpy(np.flatnonzero(mine >= 0)).to(codes.device)
            self._add(mine[mine >= 0], codes.index_select(0, kept), inverse.index_select(0, kept))

    def oldest(self, limit: int) -> Ints:
        """Rows of the oldest documents with about ``limit`` places, ascending."""
        slots = np.flatnonzero(self.slots >= 0)[:limit]
        return np.unique(self._rows[slots])

    def search(
        self, query_QJD: Floats, num_candidates: int, *, allowed_rows: Ints | None = None, exhaustive: bool = False
    ) -> Candidates:
        """Finds candidates among all documents."""
        allowed = self.allowed_slots(allowed_rows)
        largest = max(1, _PASS_QUERY_FACETS // query_QJD.shape[1])
        return search_in_parts(query_QJD, lambda part: self._select(part, num_candidates, allowed), largest=largest)

    def _select(self, query_QJD: Floats, num_candidates: int, allowed: Bools) -> Candidates:
        held = self.slots
        firsts_N = np.flatnonzero(first_places(held) == np.arange(len(held)))
        query = None if self._preselect else CodedQuery(query_QJD)
        scores_QN = self._scores(query, query_QJD, firsts_N)
        scores_QN.masked_fill_(~torch.from_numpy(allowed[firsts_N]).to(self._device), -torch.inf)
        if query is None:
            columns_QC, scores_QC = best_columns(scores_QN, num_candidates, margin=2 * self.score_error)
            return select_candidates(
                held[firsts_N][columns_QC], scores_QC, num_candidates, margin=2 * self.score_error, exhaustive=True
            )
        scores = scores_QN.numpy()
        if (cut := scores.shape[1] - num_candidates) > 0:
            kth = np.partition(scores, cut, axis=1)[:, cut, None]
            scores[scores < kth - 2 * (self.score_error + query.error)] = -np.inf
        candidate_firsts = [firsts_N[np.isfinite(of_query)] for of_query in scores]
        return self.compared(query_QJD, candidate_firsts, num_candidates, exhaustive=True)

    def compared(
        self, query_QJD: Floats, candidate_firsts: list[Ints], num_candidates: int, *, exhaustive: bool
    ) -> Candidates:
        """Candidates for each query among given documents: ``candidate_firsts`` are their first places, ascending."""
        found = [
            (self._rows[firsts], self._scores_of(query_JD, firsts))
            for query_JD, firsts in zip(query_QJD, candidate_firsts, strict=True)
        ]
        return select_candidates(*padded(found), num_candidates, margin=2 * self.score_error, exhaustive=exhaustive)

    def _scores_of(self, query_JD: Floats, firsts_C: Ints) -> Floats:
        """Scores ``[C]`` of the documents that start at these places, ascending."""
        if not len(firsts_C):
            return np.empty(0, dtype=np.float32)
        slots, starts = self._places_of(firsts_C)
        codes, inverse = (part.cpu().numpy() for part in self._taken(slots))
        products = _fine_products(codes.reshape(-1, self.dim), query_JD) * inverse.reshape(-1, 1)
        products[inverse.ravel() == 0] = -np.inf
        best = np.maximum.reduceat(products, self.num_facets * starts, axis=0)
        best[best == -np.inf] = 0.0  # of a document without facets
        scores: Floats = best.sum(axis=1)
        return scores

    def codes_of(self, rows_C: Ints) -> tuple[Ints, NDArray[np.int8], Ints]:
        """As the base class: a copy of what :meth:`search` compares."""
        if self._ascending is None:
            self._ascending = np.maximum.accumulate(self.slots)
        places = np.searchsorted(self._ascending, rows_C)
        is_held_C = self.slots.take(places, mode="clip") == rows_C
        slots, starts = self._places_of(places[is_held_C])
        codes = self._taken(slots)[0].cpu().numpy()
        return rows_C[is_held_C], codes.reshape(-1, self.dim), self.num_facets * np.diff(starts, append=len(slots))

    def _taken(self, slots_S: Ints) -> tuple[Tensor, Tensor]:
        """Codes ``[S, K, D]`` and inverse norms ``[S, K]`` of these places, ascending."""
        bounds = np.searchsorted(slots_S, [*self._starts, self._num_slots]).tolist()
        taken = list[tuple[Tensor, ...]]()
        for start, first, last, block in zip(self._starts, bounds, bounds[1:], self._blocks, strict=False):
            if first < last or not len(slots_S):
                places = torch.from_numpy(slots_S[first:last] - start).to(block[0].device)
                # ten times as fast as indexing by []
                taken.append(tuple(part.index_select(0, places).to(self._device) for part in block))
        codes, inverse = taken[0] if len(taken) == 1 else map(torch.cat, zip(*taken, strict=True))
        return codes, inverse

    def _places_of(self, firsts_C: Ints) -> tuple[Ints, Ints]:
        """All places of the documents that start at these places, and the offset of each document."""
        if not self._has_long:
            return firsts_C, np.arange(len(firsts_C))
        held, counts_C = self.slots, np.ones(len(firsts_C), dtype=np.int64)
        growing = np.arange(len(firsts_C))
        while len(growing):
            following = firsts_C[growing] + counts_C[growing]
            inside = following < len(held)
            growing, following = growing[inside], following[inside]
            growing = growing[held[following] == held[firsts_C[growing]]]
            counts_C[growing] += 1
        starts = np.cumsum(counts_C) - counts_C
        return np.repeat(firsts_C - starts, counts_C) + np.arange(counts_C.sum()), starts

    def _scores(self, query: CodedQuery | None, query_QJD: Floats, firsts_N: Ints) -> Tensor:
        """Scores of the documents that start at these places, including holes, ``[Q, N]``.

        ``query``: codes of ``query_QJD``; None: compares floats.
        """
        device, num_queries, width = self._device, len(query_QJD), len(query_QJD) * query_QJD.shape[1]
        facets_FD = torch.from_numpy(query_QJD.reshape(width, -1).astype(np.float32)).to(device)
        scores = torch.empty(num_queries, self._num_slots, device=device)
        best = torch.empty(self._num_slots if self._has_long else 0, width, device=device)
        places = max(1, _PASS_FACETS[device.type] // self.num_facets)
        for start, (codes, inverse) in zip(self._starts, self._blocks, strict=True):
            for first in range(0, min(len(codes), self._num_slots - start), places):
                last = min(first + places, len(codes), self._num_slots - start)
                some, norms = codes[first:last].view(-1, self.dim), inverse[first:last].to(device)
                products = some.to(device).float() @ facets_FD.T if query is None else query.times(some.numpy())
                best_SF = _best_of_places(products, norms)
                if self._has_long:
                    best[start + first : start + last] = best_SF
                else:
                    scores[:, start + first : start + last] = _sums(best_SF, num_queries)
        if not self._has_long:
            return scores
        lengths = torch.from_numpy(np.diff(firsts_N, append=self._num_slots)).to(device)
        return _sums(torch.segment_reduce(best, "max", lengths=lengths, axis=0, unsafe=True), num_queries)


def _best_of_places(products_TF: Tensor, inverse_SK: Tensor) -> Tensor:
    """Best product of each place for each query facet, ``[S, Q J]``; ``-inf`` for a place without facets."""
    products_SKF = products_TF.mul_(inverse_SK.reshape(-1, 1)).view(*inverse_SK.shape, -1)
    missing = inverse_SK == 0
    if missing.any():
        products_SKF.masked_fill_(missing[:, :, None], -torch.inf)
    return reduce(torch.maximum, products_SKF.unbind(dim=1))  # on the CPU twice as fast as `amax`


def _sums(best_NJ: Tensor, num_queries: int) -> Tensor:
    """Sums over the facets of each query, ``[Q, N]``; a document without facets has cosine 0."""
    cosines = best_NJ.masked_fill_(best_NJ == -torch.inf, 0.0)
    return cosines.view(len(best_NJ), num_queries, -1).sum(dim=2).T


def best_columns(scores_QN: Tensor, num_candidates: int, *, margin: float) -> tuple[Ints, Floats]:
    """Documents within ``margin`` of the num_candidates-th score, selected on the device of the scores.

    Returns their columns, ``[Q, C]`` ascending, and their scores; for some queries there are more than necessary.
    """
    num_documents = scores_QN.shape[1]
    if num_documents > num_candidates:
        kth_Q = scores_QN.topk(num_candidates, dim=1).values[:, -1:]
        near_QN = (scores_QN >= kth_Q - margin) & (scores_QN > -torch.inf)
        num_documents = max(num_candidates, int(near_QN.sum(dim=1).amax()))
    columns_QC = scores_QN.topk(min(num_documents, scores_QN.shape[1]), dim=1).indices.sort(dim=1).values
    return columns_QC.cpu().numpy(), scores_QN.gather(1, columns_QC).cpu().numpy()


def search_in_parts(query_QJD: Floats, search: Callable[[Floats], Candidates], *, largest: int) -> Candidates:
    """Runs an exhaustive search for ``largest`` queries at a time, or fewer where the device has too little memory.

    Raises OverloadedError if there is not enough memory for one query.
    """
    found = []
    for start in range(0, len(query_QJD), largest):
        part = query_QJD[start : start + largest]
        try:
            found.append(search(part))
            continue
        except torch.OutOfMemoryError as error:
            if len(part) == 1:
                raise no_memory_for("one query") from error
        found.append(search_in_parts(part, search, largest=-(-len(part) // 2)))
    rows_QC, scores_QC = padded([query for part in found for query in zip(part.rows, part.scores, strict=True)])
    return Candidates(rows=rows_QC, scores=scores_QC, exhaustive=True)
