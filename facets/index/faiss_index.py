"""FAISS inverted lists over single facets, which find the documents that codes compare.

Shape letters: S places, Q queries, J facets of a query, K facets of a place, D dimensions, M of a sample.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, MappedFile, first_places
from facets.index.candidates import Candidates
from facets.index.exact import ExactIndex
from facets.index.faiss_lists import ListRoom, num_lists, train_lists

_TRAIN_STEPS = 8
_MIN_PROBES = 4
_TUNE_QUERIES = 96
_TUNE_TOP_K = 10
_SPARE_ROOM = 1 / 8  # of a list that is filled at once
MOVED_BYTES = 8 * 1024 * 1024  # of lists that grow while searches wait: a few milliseconds
# With one query facet at least so many facets are looked at for each document wanted, for lists rank by coarser codes,
# and so many documents are compared.
_SPARE_DEPTH, _WIDTH = 4, 2
# With several query facets so many times the lists are probed, and so many times top_k documents compared.
_SUM_PROBES, _SUM_WIDTH = 2, 8
_ABOVE_ZERO = 3.0  # cosines and this are more than 0, which is nothing found
_FEW_DOCUMENTS = 2048  # that pass a filter: all of them are compared


class FaissIndex(FacetIndex):
    """Inverted lists that find documents, and the codes of these that compare them.

    A document gets the next free slots, one for each K of its facets, with the FAISS ids ``slot * K + facet``, so
    nothing is ever renumbered. Removed documents stay in the lists until :meth:`purge`, masked by a bitmap that the
    scan consults. Zero facets are left out. Create with :meth:`train`, then add.
    """

    kind = "faiss-ivf-int8"

    def __init__(self, index: faiss.IndexIVF, *, num_facets: int, trained_documents: int = 0) -> None:
        super().__init__(num_facets=num_facets, dim=int(index.d))
        self.trained_documents = trained_documents
        self._index = index
        self.num_probes = int(index.nprobe)  # lists scanned for a facet of a query; `tune` chooses it
        self._room = ListRoom(index)
        self._codes = ExactIndex(
            num_facets=num_facets, dim=self.dim, keeps_places=True, room=trained_documents * 5 // 4
        )
        self._heads = np.empty(0, dtype=np.int64)  # of the document of each slot
        self._file: MappedFile | None = None  # of a snapshot, while lists are in it
        self._list_bytes = np.zeros(1, dtype=np.int64)  # where in it each list begins, and where the last one ends
        self._copied: faiss.ArrayInvertedLists | None = None

    @classmethod
    def train(cls, sample_MD: NDArray[np.floating], *, num_facets: int, num_documents: int) -> "FaissIndex":
        """Places the inverted lists for a collection of about ``num_documents``.

        ``sample_MD``: unit-norm facets drawn from the collection, ``[M, D]``; ``sample_size`` of them.
        ``num_documents``: expected size; a few times more or fewer only cost speed. Returns an empty index.
        """
        sample = np.ascontiguousarray(sample_MD, dtype=np.float32)
        lists = num_lists(num_documents * num_facets, len(sample))
        index = train_lists(sample, lists, code="int8", train_steps=_TRAIN_STEPS)
        index.nprobe = lists
        return cls(index, num_facets=num_facets, trained_documents=num_documents)

    @property
    def score_error(self) -> float:
        """That of the codes."""
        return self._codes.score_error

    @property
    def num_vectors(self) -> int:
        """Facets in the lists, those of removed documents included."""
        return int(self._index.ntotal)

    @property
    def slots(self) -> NDArray[np.int64]:
        """Row number of every place, -1 where the document was removed."""
        return self._codes.slots

    def __len__(self) -> int:
        return len(self._codes)

    def prepare(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """List of every facet, ``[N, K]``, -1: left out. The slow part of :meth:`add`, safe beside searches."""
        self._copy_lists()
        vectors = np.ascontiguousarray(facets_SKD.reshape(-1, self.dim), dtype=np.float32)
        kept_SK: NDArray[np.bool_] = np.any(facets_SKD, axis=2)
        kept_SK[~kept_SK.any(axis=1), 0] = True  # a document without facets can still be found, last
        lists = np.full(len(vectors), -1, dtype=np.int64)
        lists[kept_SK.ravel()] = self._index.quantizer.search(vectors[kept_SK.ravel()], 1)[1][:, 0]
        return lists.reshape(kept_SK.shape)

    def reserve(self, prepared: NDArray[np.integer]) -> None:
        """Makes room for documents that :meth:`prepare` has seen, before all of them are added, and some to spare."""
        self._room.make(self._per_list(prepared), spare=_SPARE_ROOM)

    def make_room(self, prepared: NDArray[np.int64]) -> bool:
        """Makes some of the room; see :meth:`FacetIndex.make_room`."""
        self._own_lists()
        return self._room.make(self._per_list(prepared), max_bytes=MOVED_BYTES)

    def _per_list(self, prepared: NDArray[np.integer]) -> NDArray[np.int64]:
        return np.bincount(prepared[prepared >= 0], minlength=self._index.nlist)

    def add_prepared(
        self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating], prepared: NDArray[np.integer]
    ) -> None:
        """Adds documents whose lists :meth:`prepare` has found."""
        if not len(rows):
            return
        self._own_lists()
        first = len(self.slots)
        kept = (prepared >= 0).ravel()
        ids = first * self.num_facets + np.flatnonzero(kept).astype(np.int64)
        vectors = np.ascontiguousarray(facets_SKD.reshape(-1, self.dim)[kept], dtype=np.float32)
        lists = prepared.ravel()[kept].astype(np.int64)
        self._index.add_core(len(vectors), faiss.swig_ptr(vectors), faiss.swig_ptr(ids), faiss.swig_ptr(lists))
        self._codes.add(rows, facets_SKD)
        self._heads = np.concatenate([self._heads, first + first_places(rows)])

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Masks documents; see :meth:`FacetIndex.remove`."""
        removed = self._codes.remove(rows)
        self.num_masked += removed
        self.num_holes = self._codes.num_holes
        return removed

    def purge(self) -> None:
        """Takes the facets of removed documents out of the lists: one pass over the ids."""
        if self.num_masked:
            self._own_lists()
            self._index.remove_ids(_selector(np.repeat(self.slots < 0, self.num_facets)))
            self.num_masked = 0

    def tune(self, facets_MD: NDArray[np.floating], recall_target: float) -> float:
        """Sets the number of probed lists: the fewest that find ``recall_target`` of the exact top 10.

        ``facets_MD``: facets of documents in the index that serve as queries, ``[M, D]`` unit norm; each finds its own
        document first, which is not counted. ``recall_target``: in (0, 1]. Returns the recall reached on this sample,
        in [0, 1].
        """
        queries = np.ascontiguousarray(facets_MD[:_TUNE_QUERIES], dtype=np.float32)[:, None, :]
        truth = self.search(queries, _TUNE_TOP_K + 1, exhaustive=True).rows[:, 1 : _TUNE_TOP_K + 1]
        probes, recall = min(_MIN_PROBES, self._index.nlist), 1.0
        while True:
            self.num_probes = probes
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

        With a filter more lists are probed, inversely to the share of allowed documents; where that finds fewer than
        ``min(top_k, documents allowed)``, and where few are allowed, everything allowed is compared.
        """
        query_QJD = _without_padding(query_QJD)
        allowed = self.allowed_slots(allowed_rows)
        num_allowed = int(np.count_nonzero(allowed))
        if num_allowed <= _FEW_DOCUMENTS < len(self):
            firsts = np.unique(self._heads[allowed])
            return self._codes.compared(query_QJD, [firsts] * len(query_QJD), top_k, exhaustive=True)
        wanted = self.num_probes * len(self) / max(1, num_allowed)
        wanted *= _SUM_PROBES if query_QJD.shape[1] > 1 else 1
        if not exhaustive and wanted < self._index.nlist:
            parameters = faiss.SearchParametersIVF()
            parameters.nprobe = int(wanted)
            if num_allowed < len(self.slots) or self.num_masked:
                selector = _selector(np.repeat(allowed, self.num_facets))
                parameters.sel = selector  # a bare pointer: the name above keeps it alive until we return
            lines = self._probed(query_QJD, top_k, parameters)
            if min(map(len, lines)) >= min(top_k, num_allowed):
                return self._codes.compared(query_QJD, lines, top_k, exhaustive=False)
        return self._codes.search(query_QJD, top_k, allowed_rows=allowed_rows, exhaustive=True)

    def _probed(
        self, query_QJD: NDArray[np.float32], top_k: int, parameters: faiss.SearchParametersIVF
    ) -> list[NDArray[np.int64]]:
        """First slots of documents of the probed lists that may be among the best, of each query, ascending."""
        self._touch(np.ascontiguousarray(query_QJD.reshape(-1, self.dim), dtype=np.float32), parameters.nprobe)
        if query_QJD.shape[1] > 1:
            return [self._best_sums(query_JD, top_k, parameters) for query_JD in query_QJD]
        vectors = np.ascontiguousarray(query_QJD[:, 0], dtype=np.float32)
        depth = top_k * max(self.num_facets, _SPARE_DEPTH)
        _, ids = self._index.search(vectors, min(depth, self.num_vectors), params=parameters)
        lines = []
        for found, vector in zip(ids, vectors, strict=True):  # padding finds anything
            heads = self._heads[found[found >= 0] // self.num_facets] if vector.any() else np.empty(0, dtype=np.int64)
            _, firsts = np.unique(heads, return_index=True)
            lines.append(np.sort(heads[np.sort(firsts)[: _WIDTH * top_k]]))
        return lines

    def _best_sums(
        self, query_JD: NDArray[np.float32], top_k: int, parameters: faiss.SearchParametersIVF
    ) -> NDArray[np.int64]:
        """Documents of the greatest sums over the facets of a query of what each found in its lists.

        All that is in them counts: a document may be best by the sum and far from it by each facet. One that a facet
        did not find is taken to answer it as the median of what it did find: guesses above that let candidates in that
        cannot be good, guesses below keep out those that answer all other facets.
        """
        facets = np.ascontiguousarray(query_JD[query_JD.any(axis=1)])
        if not len(facets):
            return np.empty(0, dtype=np.int64)
        limits, cosines, ids = self._index.range_search(facets, -2.0, params=parameters)
        heads, cosines = self._heads[ids // self.num_facets], cosines + _ABOVE_ZERO
        # Zeros are pages that nobody has touched: what is found is paid for, not what there is.
        sums, best = np.zeros((2, len(self.slots)), dtype=np.float32)
        seen_at = np.zeros(len(self.slots), dtype=np.int64)
        found = [np.empty(0, dtype=np.int64)]
        for start, end in pairwise(limits.tolist()):
            if start < end:
                mine, scores = heads[start:end], cosines[start:end]
                np.maximum.at(best, mine, scores)
                once = _each_once(mine, seen_at)
                sums[once] += best[once] - np.partition(scores, len(scores) // 2)[len(scores) // 2]
                best[once] = 0
                found.append(once)
        slots, kept = _each_once(np.concatenate(found), seen_at), _SUM_WIDTH * top_k
        return np.sort(slots if len(slots) <= kept else slots[np.argpartition(-sums[slots], kept)[:kept]])

    def write(self, sink: Callable[[bytes | memoryview], object]) -> None:
        """Streams the FAISS index and the codes to ``sink``; :attr:`slots` and :meth:`describe` are the rest."""
        self._index.nprobe = self.num_probes
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(lambda data: sink(bytes(data))))  # type: ignore[attr-defined]  # missing in the stubs
        self._codes.write(sink)

    @classmethod
    def map(
        cls, file: MappedFile, rows_S: NDArray[np.int64], description: Mapping[str, int | float | str]
    ) -> "FaissIndex":
        """What was written, which stays in its file: lists until the first document is added, codes for good.

        ``rows_S``: row number of each slot, -1 for none.

        Raises:
            IndexFormatError: FAISS cannot read it, or the parts contradict each other.
        """
        num_facets, dim = int(description["num_facets"]), int(description["dim"])
        codes_byte = file.num_bytes - len(rows_S) * num_facets * (dim + 4)
        entry_bytes = dim + 8  # a code and an id
        lists_byte = codes_byte - int(description["num_vectors"]) * entry_bytes
        file.check(np.array([0]), max(1, lists_byte))
        try:
            index = faiss.read_index(str(file.path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFormatError(f"FAISS cannot read the index: {error}") from error
        if not isinstance(index, faiss.IndexIVFScalarQuantizer) or index.d != dim:
            raise IndexFormatError(f"expected inverted lists of dimension {dim}, got {type(index).__name__}")
        found = cls(index, num_facets=num_facets, trained_documents=int(description["trained_documents"]))
        assert index.invlists is not None
        sizes_L = np.array([index.invlists.list_size(number) for number in range(index.nlist)], dtype=np.int64)
        if lists_byte < 0 or sizes_L.sum() * entry_bytes != codes_byte - lists_byte:
            raise IndexFormatError(f"expected lists of {codes_byte - lists_byte} bytes, got {sizes_L.sum()} entries")
        found._file = file
        found._list_bytes = lists_byte + np.cumsum([0, *sizes_L]) * entry_bytes
        found._codes.map(file, codes_byte, rows_S, code_error=float(description["code_error"]))
        found._heads = first_places(rows_S)
        found.num_masked, found.num_holes = int(description["num_masked"]), found._codes.num_holes
        return found

    def _touch(self, facets_JD: NDArray[np.float32], num_probes: int) -> None:
        """Compares the lists of a snapshot with their checksums before they are searched."""
        if self._file is not None:
            lists = np.unique(self._index.quantizer.search(facets_JD, num_probes)[1])
            starts, ends = (self._list_bytes[lists[lists >= 0] + further] for further in (0, 1))
            self._file.check(starts, ends - starts)

    def _copy_lists(self) -> None:
        """Copies the lists of a snapshot: the slow part of :meth:`_own_lists`, safe beside searches."""
        if self._file is None or self._copied is not None:
            return
        start, end = int(self._list_bytes[0]), int(self._list_bytes[-1])
        self._file.check(np.array([start]), end - start)
        held, nlist = self._index.invlists, self._index.nlist
        assert held is not None
        copied = faiss.ArrayInvertedLists(nlist, held.code_size)
        for number in range(nlist):
            copied.add_entries(number, held.list_size(number), held.get_ids(number), held.get_codes(number))
        self._copied = copied

    def _own_lists(self) -> None:
        """From now on lists are in memory, where they can change; nobody may search meanwhile."""
        self._copy_lists()
        if self._copied is not None:
            self._index.replace_invlists(self._copied, True)
            self._copied.this.disown()  # type: ignore[attr-defined]  # SWIG's own handle
            self._file, self._copied, self._room = None, None, ListRoom(self._index)

    def describe(self) -> dict[str, int | float | str]:
        """The small numbers that the backend needs to read the index again."""
        return {
            "num_facets": self.num_facets,
            "dim": self.dim,
            "trained_documents": self.trained_documents or 0,
            "num_vectors": self.num_vectors,
            "num_masked": self.num_masked,
            "code_error": self._codes.code_error,
        }


def _each_once(numbers: NDArray[np.int64], room: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different ones of numbers below ``len(room)``, which is written over: nothing is sorted."""
    places = np.arange(len(numbers))
    room[numbers] = places
    return numbers[room[numbers] == places]


def _selector(allowed: NDArray[np.bool_]) -> faiss.IDSelectorBitmap:
    # FAISS's Python wrapper takes the array and keeps it alive; its stubs describe the C++ constructor
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]


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
