"""FAISS inverted lists over single facets, which find the documents that codes compare.

Shape letters: S places, Q queries, J facets of a query, K facets of a place, D dimensions, M of a sample.
"""

from collections.abc import Callable
from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, FacetSource, first_places
from facets.index.candidates import Candidates
from facets.index.exact import ExactIndex
from facets.index.faiss_lists import ListRoom, num_lists, train_lists

_RESTORE_CHUNK = 1024  # documents read from the source at a time
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

    def __init__(self, index: faiss.IndexIVF, *, num_facets: int, trained_documents: int = 0) -> None:
        super().__init__(num_facets=num_facets, dim=int(index.d))
        self.trained_documents = trained_documents
        self._index = index
        self._room = ListRoom(index)
        self._codes = ExactIndex(
            num_facets=num_facets, dim=self.dim, keeps_places=True, room=trained_documents * 5 // 4
        )
        self._heads = np.empty(0, dtype=np.int64)  # of the document of each slot

    @classmethod
    def train(cls, sample_MD: NDArray[np.floating], *, num_facets: int, num_documents: int) -> "FaissIndex":
        """Places the inverted lists for a collection of about ``num_documents``.

        Args:
            sample_MD: Unit-norm facets drawn from the collection, ``[M, D]``; ``sample_size`` of them.
            num_facets: K.
            num_documents: Expected size; a few times more or fewer only cost speed.

        Returns:
            An empty index.
        """
        sample = np.ascontiguousarray(sample_MD, dtype=np.float32)
        lists = num_lists(num_documents * num_facets, len(sample))
        index = train_lists(sample, lists, code="int8", train_steps=_TRAIN_STEPS)
        index.nprobe = lists
        return cls(index, num_facets=num_facets, trained_documents=num_documents)

    @property
    def kind(self) -> str:
        """``faiss-ivf-int8``."""
        return "faiss-ivf-int8"

    @property
    def score_error(self) -> float:
        """That of the codes."""
        return self._codes.score_error

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
        return self._codes.slots

    def __len__(self) -> int:
        """Documents in the index."""
        return len(self._codes)

    def prepare(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """List of every facet, ``[N, K]``, -1: left out. The slow part of :meth:`add`, safe beside searches."""
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
            self._index.remove_ids(_selector(np.repeat(self.slots < 0, self.num_facets)))
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

        With a filter more lists are probed, inversely to the share of allowed documents; where that finds fewer than
        ``min(top_k, documents allowed)``, and where few are allowed, everything allowed is compared.
        """
        query_QJD = _without_padding(query_QJD)
        allowed = self.allowed_slots(allowed_rows)
        num_allowed = int(np.count_nonzero(allowed))
        if num_allowed <= _FEW_DOCUMENTS < len(self):
            firsts = np.unique(self._heads[allowed])
            return self._codes.compared(query_QJD, [firsts] * len(query_QJD), top_k, exhaustive=True)
        wanted = self._index.nprobe * len(self) / max(1, num_allowed)
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
        sums, best, seen_at = (np.zeros(len(self.slots), dtype=kind) for kind in (np.float32, np.float32, np.int64))
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
        return np.sort(slots[np.argpartition(-sums[slots], kept)[:kept]]) if len(slots) > kept else slots

    def write(self, sink: Callable[[bytes], object]) -> None:
        """Streams the FAISS part to ``sink``; :attr:`slots` and :meth:`describe` are the rest.

        That is the trained index without facets, which the source of the documents has, and the list of every facet,
        ``[slots, K]`` int32 little-endian, -1 for none: what took time to find.
        """

        def write(data: bytes) -> None:
            sink(bytes(data))

        writer = faiss.PyCallbackIOWriter(write)  # type: ignore[attr-defined]  # missing in the stubs
        faiss.write_index(self._without_facets(), writer)
        lists = np.full(len(self.slots) * self.num_facets, -1, dtype="<i4")
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

    def restore(self, source: FacetSource, rows_S: NDArray[np.int64], lists_SK: NDArray[np.integer]) -> None:
        """Fills an index that was written: facets come from the source, their lists from what was written.

        Args:
            source: The documents; those that it no longer has are left out.
            rows_S: Row number of each slot, -1 for none.
            lists_SK: The list of every facet of each slot, ``[slots, K]``, -1 for none.

        Raises:
            IndexFormatError: A list that is not there.
        """
        if lists_SK.min(initial=-1) < -1 or lists_SK.max(initial=-1) >= self._index.nlist:
            raise IndexFormatError(f"expected lists below {self._index.nlist}, got {lists_SK.max()}")
        held = np.argsort(rows_S, kind="stable")[np.count_nonzero(rows_S < 0) :]
        held_rows = rows_S[held]
        documents = np.unique(held_rows)
        self.reserve(lists_SK[held])
        for start in range(0, len(documents), _RESTORE_CHUNK):
            wanted = documents[start : start + _RESTORE_CHUNK]
            first, last = np.searchsorted(held_rows, [wanted[0], wanted[-1] + 1])
            existing, units_SKD = source.read(wanted)
            there = held[first:last][np.isin(held_rows[first:last], existing)]
            if not np.array_equal(rows_S[there], existing):
                raise IndexFormatError("documents have other numbers of facets than when the index was written")
            self.add_prepared(existing, units_SKD, lists_SK[there])

    def describe(self) -> dict[str, int | float | str]:
        """The small numbers that the backend needs to read the index again."""
        return {
            "num_facets": self.num_facets,
            "dim": self.dim,
            "trained_documents": self.trained_documents or 0,
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
