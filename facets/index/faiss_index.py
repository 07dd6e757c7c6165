"""FAISS inverted lists over single facets, grouped into documents.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions, C candidates.
"""

from collections.abc import Callable, Iterable, Iterator

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, FacetSource, first_places
from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, select_candidates
from facets.index.faiss_lists import Code, ListRoom, num_lists, train_lists

# Facets of one document closer than this (Euclidean distance of unit vectors, which bounds the difference of
# any cosine) are stored once: it costs less than a thousandth of a score, and rescoring repairs even that.
DUPLICATE_ERROR = 1.0e-3
_RESTORE_CHUNK = 1024  # documents read from the source at a time
_TRAIN_STEPS = 8
_MIN_PROBES = 4
_TUNE_QUERIES = 96
_TUNE_TOP_K = 10
_SPARE_ROOM = 1 / 8  # of a list that is filled at once
MOVED_BYTES = 8 * 1024 * 1024  # of lists that grow while searches wait: a few milliseconds
_SUM_WIDTH = 8  # with several query facets, so many times top_k documents are candidates and ...
_SUM_PROBES = 2  # ... so many times the lists are probed: recall 0.985 of the best 10, see docs/use/search.md


def duplicate_facets(facets_NKD: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Marks facets that nearly equal an earlier, unmarked facet of the same document, ``[N, K]``."""
    facets = facets_NKD.astype(np.float32)
    squared_NK = np.einsum("nkd,nkd->nk", facets, facets)
    gram_NKK = facets @ facets.transpose(0, 2, 1)
    # float32 differences of nearly equal numbers are noise below 1e-6, so the bound is the larger of the two
    close = squared_NK[:, :, None] + squared_NK[:, None, :] - 2 * gram_NKK <= DUPLICATE_ERROR**2
    marked = np.zeros(squared_NK.shape, dtype=np.bool_)
    for facet in range(1, facets.shape[1]):
        marked[:, facet] = (close[:, facet, :facet] & ~marked[:, :facet]).any(axis=1)
    return marked


class FaissIndex(FacetIndex):
    """Inverted lists of compressed facets.

    A document gets the next free slots, one for each K of its facets, with the FAISS ids ``slot * K + facet``, so
    nothing is ever renumbered. Removed documents stay in the lists until :meth:`purge`, masked by a bitmap that the
    scan consults. Zero facets are left out. Create with :meth:`train`, then add.
    """

    def __init__(
        self,
        index: faiss.IndexIVF,
        *,
        num_facets: int,
        code: Code,
        rows: NDArray[np.int64] | None = None,
        code_error: float = 0.0,
        trained_documents: int = 0,
    ) -> None:
        super().__init__(num_facets=num_facets, dim=int(index.d))
        self.code = code
        self.trained_documents = trained_documents
        self._index = index
        self._room = ListRoom(index)
        self._rows = np.empty(0, dtype=np.int64) if rows is None else rows  # -1: removed
        self._heads = first_places(self._rows)  # of the document of each slot
        self.num_masked = int(np.count_nonzero(self._rows < 0))
        self._num_documents = len(self.rows())
        self._code_error = code_error

    @classmethod
    def train(
        cls, sample_MD: NDArray[np.floating], *, num_facets: int, num_documents: int, code: Code = "fp16"
    ) -> "FaissIndex":
        """Places the inverted lists for a collection of about ``num_documents``.

        Args:
            sample_MD: Unit-norm facets drawn from the collection, ``[M, D]``; ``sample_size`` of them.
            num_facets: K.
            num_documents: Expected size; a few times more or fewer only cost speed.
            code: How facets are kept.

        Returns:
            An empty index.
        """
        sample = np.ascontiguousarray(sample_MD, dtype=np.float32)
        lists = num_lists(num_documents * num_facets, len(sample))
        index = train_lists(sample, lists, code=code, train_steps=_TRAIN_STEPS)
        index.nprobe = lists
        return cls(index, num_facets=num_facets, code=code, trained_documents=num_documents)

    @property
    def kind(self) -> str:
        """``faiss-ivf-fp16`` or ``faiss-ivf-int8``."""
        return f"faiss-ivf-{self.code}"

    @property
    def score_error(self) -> float:
        """Rounding, the duplicates left out, and for int8 the largest code error seen."""
        return HALF_PRECISION_ERROR + DUPLICATE_ERROR + self._code_error

    @property
    def num_probes(self) -> int:
        """Lists scanned for a facet of a query; :meth:`tune` chooses it."""
        return int(self._index.nprobe)

    @num_probes.setter
    def num_probes(self, number: int) -> None:
        self._index.nprobe = number

    @property
    def num_vectors(self) -> int:
        """Facets in the lists, those of removed documents included."""
        return int(self._index.ntotal)

    @property
    def slots(self) -> NDArray[np.int64]:
        """Row number of every place, -1 where the document was removed."""
        return self._rows

    def prepare(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """List of every facet, ``[N, K]``, -1: left out. The slow part of :meth:`add`, safe beside searches."""
        vectors = np.ascontiguousarray(facets_SKD.reshape(-1, self.dim), dtype=np.float32)
        left_out_NK = duplicate_facets(facets_SKD) | ~facets_SKD.any(axis=2)
        left_out_NK[left_out_NK.all(axis=1), 0] = False  # a document without facets can still be found, last
        kept = ~left_out_NK.ravel()
        lists = np.full(len(vectors), -1, dtype=np.int64)
        lists[kept] = self._index.quantizer.search(vectors[kept], 1)[1][:, 0]
        if self.code == "int8":
            quantizer = self._index.sq  # type: ignore[attr-defined]  # of every scalar quantizer index
            decoded = quantizer.decode(quantizer.compute_codes(vectors[kept]))
            worst = float(np.linalg.norm(decoded - vectors[kept], axis=1).max(initial=0))
            self._code_error = max(self._code_error, worst)
        return lists.reshape(left_out_NK.shape)

    def reserve(self, prepared: NDArray[np.integer]) -> None:
        """Makes room for documents that :meth:`prepare` has seen, before all of them are added, and some to spare."""
        self._room.make(self._per_list(prepared), spare=_SPARE_ROOM)

    def make_room(self, prepared: NDArray[np.int64]) -> bool:
        """Makes some of the room; see :meth:`FacetIndex.make_room`."""
        return self._room.make(self._per_list(prepared), max_bytes=MOVED_BYTES)

    def _per_list(self, prepared: NDArray[np.integer]) -> NDArray[np.int64]:
        return np.bincount(prepared[prepared >= 0], minlength=self._index.nlist)

    def add(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> None:
        """Adds documents; see :meth:`FacetIndex.add`."""
        if len(rows):
            self.add_prepared(rows, facets_SKD, self.prepare(rows, facets_SKD))

    def add_prepared(
        self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating], prepared: NDArray[np.integer]
    ) -> None:
        """Adds documents whose lists :meth:`prepare` has found."""
        if not len(rows):
            return
        slots = len(self._rows) + np.arange(len(rows))
        self._add_to_lists(slots, facets_SKD, prepared)
        heads = first_places(rows)
        self._heads = np.concatenate([self._heads, len(self._rows) + heads])
        self._rows = np.concatenate([self._rows, rows])
        self._num_documents += int(np.count_nonzero(heads == np.arange(len(heads))))

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Masks documents; see :meth:`FacetIndex.remove`."""
        removed = super().remove(rows)
        self.num_masked += removed
        return removed

    def purge(self) -> None:
        """Takes the facets of removed documents out of the lists: one pass over the ids."""
        if self.num_masked:
            self._index.remove_ids(_selector(np.repeat(self._rows < 0, self.num_facets)))
            self.num_masked = 0

    def tune(self, facets_MD: NDArray[np.floating], recall_target: float) -> float:
        """Sets the number of probed lists: the fewest that find ``recall_target`` of the exact top 10.

        Args:
            facets_MD: Facets of documents in the index that serve as queries, ``[M, D]`` unit norm; each finds its
                own document first, which is not counted.
            recall_target: In (0, 1].

        Returns:
            The recall reached on this sample, in [0, 1].
        """
        queries = np.ascontiguousarray(facets_MD[:_TUNE_QUERIES], dtype=np.float32)[:, None, :]
        truth = self.search(queries, _TUNE_TOP_K + 1, exhaustive=True).rows[:, 1 : _TUNE_TOP_K + 1]
        probes, recall = min(_MIN_PROBES, self._index.nlist), 1.0
        while True:
            self._index.nprobe = probes
            found = self.search(queries, _TUNE_TOP_K + 1).rows[:, 1 : _TUNE_TOP_K + 1]
            recall = _overlap(truth, found)
            if recall >= recall_target or probes >= self._index.nlist:
                return recall
            probes = min(2 * probes, self._index.nlist)

    def search(
        self,
        query_QJD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidates in the probed lists; see :meth:`FacetIndex.search`.

        With a filter more lists are probed, inversely to the share of allowed documents, and all of them when
        that still gives fewer than ``min(top_k, documents allowed)``.
        """
        query_QJD = _without_padding(query_QJD)
        allowed = self.allowed_slots(allowed_rows)
        num_allowed = int(np.count_nonzero(allowed))
        if not num_allowed or not self.num_vectors:
            return _no_candidates(len(query_QJD))
        parameters = faiss.SearchParametersIVF()
        if num_allowed < self._num_documents or self.num_masked:
            selector = _selector(np.repeat(allowed, self.num_facets))
            parameters.sel = selector  # a bare pointer: the name above keeps it alive until we return
        wanted = self._index.nprobe * self._num_documents / num_allowed
        if query_QJD.shape[1] > 1:
            wanted *= _SUM_PROBES
        parameters.nprobe = int(min(wanted, self._index.nlist))
        exhaustive = exhaustive or parameters.nprobe == self._index.nlist
        if not exhaustive:
            found = self._search_lists(query_QJD, top_k, parameters, exhaustive=False)
            if (found.rows >= 0).sum(axis=1).min() >= min(top_k, num_allowed):
                return found
        parameters.nprobe = int(self._index.nlist)
        return self._search_lists(query_QJD, top_k, parameters, exhaustive=True)

    def _search_lists(
        self,
        query_QJD: NDArray[np.float32],
        top_k: int,
        parameters: faiss.SearchParametersIVF,
        *,
        exhaustive: bool,
    ) -> Candidates:
        num_queries, query_facets, dim = query_QJD.shape
        vectors = np.ascontiguousarray(query_QJD.reshape(-1, dim), dtype=np.float32)
        if query_facets > 1:
            lines = [self._sums(query_JD, top_k, parameters, exhaustive=exhaustive) for query_JD in query_QJD]
        else:
            lines = self._best_facets(vectors, top_k, parameters, exhaustive=exhaustive)
        width = max((len(slots) for slots, _ in lines), default=0)
        rows_QC = np.full((num_queries, width), -1, dtype=np.int64)
        scores_QC = np.full((num_queries, width), -np.inf, dtype=np.float32)
        for query, (slots, best) in enumerate(lines):
            rows_QC[query, : len(slots)] = self._rows[slots]
            scores_QC[query, : len(slots)] = best
        estimated = query_facets > 1 and not exhaustive
        margin = np.inf if estimated else 2 * self.score_error
        return select_candidates(rows_QC, scores_QC, top_k, margin=margin, exhaustive=exhaustive)

    def _depth(self, top_k: int) -> int:
        slots = -(-int(np.count_nonzero(self._rows >= 0)) // max(1, self._num_documents))  # of a document, on average
        return min(top_k * self.num_facets * slots, self.num_vectors)

    def _best_facets(
        self, vectors_QD: NDArray[np.float32], top_k: int, parameters: faiss.SearchParametersIVF, *, exhaustive: bool
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Documents by their best facet, for queries of one facet."""
        scores, ids = self._index.search(vectors_QD, self._depth(top_k), params=parameters)
        lines: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for query in range(len(vectors_QD)):
            slots, best = best_of_slots(self._heads_of(ids[query]), scores[query])
            threshold = (best[top_k - 1] if len(best) >= top_k else -np.inf) - 2 * self.score_error
            # A full list that ends above the cut may hide documents that tie with, or round to, the top_k-th; one that
            # a few long documents have filled hides all others.
            is_cut = ids[query, -1] >= 0 and scores[query, -1] >= threshold
            if is_cut and (exhaustive or len(best) < top_k):
                slots, best = self._range(vectors_QD[query : query + 1], float(threshold), parameters)
            lines.append((slots, best))
        return lines

    def _sums(
        self, query_JD: NDArray[np.float32], top_k: int, parameters: faiss.SearchParametersIVF, *, exhaustive: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Documents by their sum over the facets of a query; one facet at a time bounds the memory."""
        slots, sums = sum_best_of_slots(
            ((self._heads_of(ids), scores) for ids, scores in self._scan(query_JD, parameters)), len(self._rows)
        )
        keep = _SUM_WIDTH * top_k
        if not exhaustive and len(slots) > keep:
            kept = np.argpartition(-sums, keep)[:keep]
            slots, sums = slots[kept], sums[kept]
        return slots, sums

    def _scan(
        self, query_JD: NDArray[np.float32], parameters: faiss.SearchParametersIVF
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Every facet in the probed lists of each facet of a query: ids and weighted cosines."""
        for facet in query_JD[query_JD.any(axis=1)]:
            _, scores, ids = self._index.range_search(np.ascontiguousarray(facet[None]), -2.0, params=parameters)
            yield ids, scores

    def _range(
        self, vectors_KD: NDArray[np.float32], threshold: float, parameters: faiss.SearchParametersIVF
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Every document of a score above the threshold."""
        radius = max(threshold, -2.0)
        _, scores, ids = self._index.range_search(vectors_KD, radius, params=parameters)
        return best_of_slots(self._heads_of(ids), scores)

    def _heads_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first slot of the document of each facet; negative ids are none."""
        return np.where(ids < 0, -1, self._heads[ids // self.num_facets])

    def write(self, sink: Callable[[bytes], object]) -> None:
        """Streams the FAISS part to ``sink``; :attr:`slots` and :meth:`describe` are the rest.

        That is the trained index without facets, which the source of the documents has, and the list of every facet,
        ``[slots, K]`` int32 little-endian, -1 for none: what took time to find.
        """

        def write(data: bytes) -> None:
            sink(bytes(data))

        writer = faiss.PyCallbackIOWriter(write)  # type: ignore[attr-defined]  # missing in the stubs
        faiss.write_index(self._without_facets(), writer)
        lists = np.full(len(self._rows) * self.num_facets, -1, dtype="<i4")
        held = self._index.invlists
        assert held is not None
        for number in range(self._index.nlist):
            size = held.list_size(number)
            if size:
                lists[faiss.rev_swig_ptr(held.get_ids(number), size)] = number
        sink(lists.tobytes())

    def _without_facets(self) -> faiss.IndexIVFScalarQuantizer:
        trained = self._index
        codes = trained.sq  # type: ignore[attr-defined]  # of every scalar quantizer index
        empty = faiss.IndexIVFScalarQuantizer(
            trained.quantizer, self.dim, trained.nlist, codes.qtype, trained.metric_type, False
        )
        faiss.copy_array_to_vector(faiss.vector_to_array(codes.trained), empty.sq.trained)
        empty.is_trained, empty.nprobe = True, trained.nprobe
        return empty

    def restore(self, source: FacetSource, lists_SK: NDArray[np.integer]) -> None:
        """Fills an index that was written: facets come from the source, their lists from what was written.

        Args:
            source: The documents; those that it no longer has become removed ones.
            lists_SK: The list of every facet of each slot, ``[slots, K]``, -1 for none.

        Raises:
            IndexFormatError: A list that is not there.
        """
        if lists_SK.min(initial=-1) < -1 or lists_SK.max(initial=-1) >= self._index.nlist:
            raise IndexFormatError(f"expected lists below {self._index.nlist}, got {lists_SK.max()}")
        held = np.flatnonzero(self._rows >= 0)
        held = held[np.argsort(self._rows[held], kind="stable")]
        held_rows = self._rows[held]
        documents = np.unique(held_rows)
        self.reserve(lists_SK[held])
        for start in range(0, len(documents), _RESTORE_CHUNK):
            wanted = documents[start : start + _RESTORE_CHUNK]
            first, last = np.searchsorted(held_rows, [wanted[0], wanted[-1] + 1])
            slots = held[first:last]
            existing, units_NKD = source.read(wanted)
            there = np.isin(self._rows[slots], existing)
            self._rows[slots[~there]] = -1
            slots = slots[there]
            if not np.array_equal(self._rows[slots], existing):
                raise IndexFormatError("documents have other numbers of facets than when the index was written")
            self._add_to_lists(slots, units_NKD, lists_SK[slots])
        self.num_masked = 0
        self._num_documents = len(self.rows())

    def _add_to_lists(
        self, slots_N: NDArray[np.int64], facets_NKD: NDArray[np.floating], lists_NK: NDArray[np.integer]
    ) -> None:
        """Adds the facets of these slots to these lists, -1 for none."""
        kept = (lists_NK >= 0).ravel()
        ids = (slots_N[:, None] * self.num_facets + np.arange(self.num_facets)).ravel()[kept].astype(np.int64)
        vectors = np.ascontiguousarray(facets_NKD.reshape(-1, self.dim)[kept], dtype=np.float32)
        lists = lists_NK.ravel()[kept].astype(np.int64)
        self._index.add_core(len(vectors), faiss.swig_ptr(vectors), faiss.swig_ptr(ids), faiss.swig_ptr(lists))

    def describe(self) -> dict[str, int | float | str]:
        """The small numbers that the backend needs to read the index again."""
        return {
            "num_facets": self.num_facets,
            "dim": self.dim,
            "code": self.code,
            "code_error": self._code_error,
            "trained_documents": self.trained_documents or 0,
        }


def _selector(allowed: NDArray[np.bool_]) -> faiss.IDSelectorBitmap:
    # FAISS's Python wrapper takes the array and keeps it alive; its stubs describe the C++ constructor
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]


def _no_candidates(num_queries: int) -> Candidates:
    return Candidates(
        rows=np.empty((num_queries, 0), dtype=np.int64),
        scores=np.empty((num_queries, 0), dtype=np.float32),
        exhaustive=True,
    )


def _overlap(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Share of the truth that was found, ``[Q, C]`` against ``[Q, C']``; -1 is none."""
    hits = ((truth[:, :, None] == found[:, None, :]).any(axis=2) & (truth >= 0)).sum()
    return float(hits) / max(1, int((truth >= 0).sum()))


def _without_padding(query_QJD: NDArray[np.float32]) -> NDArray[np.float32]:
    """Queries that have one facet each as ``[Q, 1, D]``: they are found by their best facet, exactly."""
    used_QJ = query_QJD.any(axis=2)
    if query_QJD.shape[1] == 1 or (used_QJ.sum(axis=1) > 1).any():
        return query_QJD
    first_Q = used_QJ.argmax(axis=1)
    return np.ascontiguousarray(query_QJD[np.arange(len(query_QJD)), first_Q][:, None, :])


def best_of_slots(
    slots: NDArray[np.int64], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best score of every slot, best first; negative slots are none."""
    order = np.argsort(-scores, kind="stable")
    order = order[slots[order] >= 0]
    found, first = np.unique(slots[order], return_index=True)
    by_score = np.argsort(first)
    return found[by_score], scores[order][first[by_score]]


def sum_best_of_slots(
    parts: Iterable[tuple[NDArray[np.int64], NDArray[np.float32]]], num_slots: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The sum over the facets of a query of the best score of every document that was found for one of them.

    A document that a facet did not find is taken to answer it as the median of what it did find: guesses above that
    let candidates in that cannot be good, guesses below keep out those that answer all other facets.

    Args:
        parts: For each facet of the query slots ``[C]`` >= 0, one as often as facets of it were found, and scores.
        num_slots: Slots lie below this.

    Returns:
        Slots, ascending, and sums: exact when every facet found every document.

    Example:
        >>> parts = [(np.array([1, 2, 1]), np.array([0.5, 0.25, 0.1])), (np.array([2]), np.array([0.5]))]
        >>> [part.tolist() for part in sum_best_of_slots(parts, 4)]
        [[1, 2], [1.0, 0.75]]
    """
    sums = np.zeros(num_slots, dtype=np.float32)
    found = np.zeros(num_slots, dtype=np.bool_)
    for slots, scores in parts:
        best = np.full(num_slots, -np.inf, dtype=np.float32)
        np.maximum.at(best, slots, scores.astype(np.float32))
        mine = np.isfinite(best)
        found |= mine
        sums += np.where(mine, best, np.float32(np.median(scores)) if len(scores) else np.float32(0))
    slots = np.flatnonzero(found)
    return slots, sums[slots]
