"""FAISS inverted lists over single facets find candidate documents, which are then scored by their codes.

Shape letters: S places, Q queries, J facets of a query, K facets of a place, D dimensions, M facets of a sample, L
lists.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.arrays import Bools, Floats, Ints, Vectors
from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, first_places
from facets.index.candidates import Candidates
from facets.index.exact import ExactIndex

LISTS_SEED = 12345
TRAIN_PER_LIST = 40  # FAISS asks for at least 39 training vectors for each list
_TRAIN_STEPS = 8
_MIN_PROBES = 4
_TUNE_QUERIES = 96
_TUNE_TOP_K = 10
# For one query facet and each result: minimum of facets to retrieve (lists rank by coarser codes), documents to score.
_MIN_FACETS_PER_RESULT, _DOCUMENTS_PER_RESULT = 4, 2
_SUM_DOCUMENTS_PER_RESULT = 8  # for several query facets: documents to score for each result
_FEW_ALLOWED = 2048  # if a filter allows at most this many places, all are compared


class FaissIndex(ExactIndex):
    """An exact index with FAISS inverted lists, which find the documents to compare.

    A document gets the next free places; the FAISS id of a facet is ``place * K + facet``, so nothing is renumbered.
    Removed documents stay in the lists until :meth:`purge` and are masked by a bitmap. Zero facets are left out.
    """

    def __init__(self, index: faiss.IndexIVF, *, num_facets: int, trained_documents: int = 0) -> None:
        super().__init__(num_facets=num_facets, dim=int(index.d), room=trained_documents * 5 // 4)
        self.kind = "faiss-ivf-int8"
        self.trained_documents = trained_documents
        self._index = index
        self.num_probes = int(index.nprobe)  # lists scanned for each query facet; set by `tune`
        self._firsts = np.empty(0, dtype=np.int64)  # first place of the document of each place
        self._is_mapped = False  # whether the lists are in a snapshot
        self._copied: faiss.ArrayInvertedLists | None = None

    @classmethod
    def train(cls, sample_MD: Vectors, *, num_facets: int, num_documents: int) -> "FaissIndex":
        """Trains an empty index on facets of a collection of about ``num_documents``."""
        sample = np.ascontiguousarray(sample_MD, dtype=np.float32)
        num_lists = max(1, min(2 * math.isqrt(num_documents * num_facets), len(sample) // TRAIN_PER_LIST))
        index = faiss.index_factory(sample.shape[1], f"IVF{num_lists},SQ8", faiss.METRIC_INNER_PRODUCT)
        assert isinstance(index, faiss.IndexIVFScalarQuantizer)
        index.by_residual = False
        index.cp.niter = _TRAIN_STEPS
        index.cp.seed = LISTS_SEED
        index.cp.min_points_per_centroid = 1
        index.train(sample)
        index.nprobe = num_lists
        return cls(index, num_facets=num_facets, trained_documents=num_documents)

    @property
    def num_vectors(self) -> int:
        """Facets in the lists, including those of removed documents."""
        return int(self._index.ntotal)

    def prepare(self, rows: Ints, facets_SKD: Vectors) -> Ints:
        """List of every facet, ``[S, K]``, -1 for zero facets."""
        self._copy_lists()
        vectors = np.ascontiguousarray(facets_SKD.reshape(-1, self.dim), dtype=np.float32)
        kept_SK: Bools = np.any(facets_SKD, axis=2)
        kept_SK[~kept_SK.any(axis=1), 0] = True  # a document without facets must be found, too
        lists = np.full(len(vectors), -1, dtype=np.int64)
        lists[kept_SK.ravel()] = self._index.quantizer.search(vectors[kept_SK.ravel()], 1)[1][:, 0]
        return lists.reshape(kept_SK.shape)

    def reserve(self, sizes_L: Ints) -> None:
        """Allocates room for so many facets in each list, so that they do not double while they are filled."""
        lists = self._index.invlists
        assert lists is not None
        for number, size in enumerate(sizes_L.tolist()):
            lists.resize(number, size)
            lists.resize(number, 0)  # keeps the memory

    def add_prepared(self, rows: Ints, facets_SKD: Vectors, prepared: NDArray[np.integer]) -> None:
        """Adds documents to the lists found by :meth:`prepare`."""
        if not len(rows):
            return
        self._own_lists()
        first = len(self.slots)
        kept = (prepared >= 0).ravel()
        ids = first * self.num_facets + np.flatnonzero(kept).astype(np.int64)
        vectors = np.ascontiguousarray(facets_SKD.reshape(-1, self.dim)[kept], dtype=np.float32)
        lists = prepared.ravel()[kept].astype(np.int64)
        self._index.add_core(len(vectors), faiss.swig_ptr(vectors), faiss.swig_ptr(ids), faiss.swig_ptr(lists))
        super().add_prepared(rows, facets_SKD, prepared)
        self._firsts = np.concatenate([self._firsts, first + first_places(rows)])

    def remove(self, rows: Ints) -> int:
        """Masks documents."""
        removed = FacetIndex.remove(self, rows)  # places keep their numbers
        self.num_masked += removed
        return removed

    def purge(self) -> None:
        """Removes the facets of removed documents from the lists."""
        if self.num_masked:
            self._own_lists()
            self._index.remove_ids(_selector(np.repeat(self.slots < 0, self.num_facets)))
            self.num_masked = 0

    def tune(self, facets_MD: Vectors, recall_target: float) -> None:
        """Sets the number of probed lists to the smallest that finds ``recall_target`` of the exact top 10.

        ``facets_MD``: unit-norm facets of documents in the index, used as queries; each finds its own document first,
        which is not counted.
        """
        queries = np.ascontiguousarray(facets_MD[:_TUNE_QUERIES], dtype=np.float32)[:, None, :]
        truth = self.search(queries, _TUNE_TOP_K + 1, exhaustive=True).rows[:, 1 : _TUNE_TOP_K + 1]
        self.num_probes = min(_MIN_PROBES, self._index.nlist)
        while True:
            found = self.search(queries, _TUNE_TOP_K + 1).rows[:, 1 : _TUNE_TOP_K + 1]
            num_hits = ((truth[:, :, None] == found[:, None, :]).any(axis=2) & (truth >= 0)).sum()
            if num_hits >= recall_target * max(1, (truth >= 0).sum()) or self.num_probes >= self._index.nlist:
                return
            self.num_probes = min(2 * self.num_probes, self._index.nlist)

    def search(
        self, query_QJD: Floats, num_candidates: int, *, allowed_rows: Ints | None = None, exhaustive: bool = False
    ) -> Candidates:
        """Finds candidates in the probed lists.

        With a filter, more lists are probed, inversely to the share of allowed documents. If too few documents are
        found or allowed, all allowed ones are compared.
        """
        query_QJD = _without_padding(query_QJD)
        allowed = self.allowed_slots(allowed_rows)
        num_allowed = int(np.count_nonzero(allowed))
        if num_allowed <= _FEW_ALLOWED < len(self):
            firsts = np.unique(self._firsts[allowed])
            return self.compared(query_QJD, [firsts] * len(query_QJD), num_candidates, exhaustive=True)
        num_probes = self.num_probes * len(self) / max(1, num_allowed)
        if not exhaustive and num_probes < self._index.nlist:
            parameters = faiss.SearchParametersIVF()
            parameters.nprobe = int(num_probes)
            if num_allowed < len(self.slots) or self.num_masked:
                selector = _selector(np.repeat(allowed, self.num_facets))
                parameters.sel = selector  # a raw pointer: the local variable keeps the object alive
            # For the calling thread: FAISS and PyTorch have threads of their own, which wait busily for each other.
            faiss.omp_set_num_threads(1)
            firsts_Q = [self._probed(query_JD, num_candidates, parameters) for query_JD in query_QJD]
            if min(map(len, firsts_Q)) >= min(num_candidates, num_allowed):
                return self.compared(query_QJD, firsts_Q, num_candidates, exhaustive=False)
        return super().search(query_QJD, num_candidates, allowed_rows=allowed_rows, exhaustive=True)

    def _probed(self, query_JD: Floats, num_candidates: int, parameters: faiss.SearchParametersIVF) -> Ints:
        """First places of documents in the probed lists that may be among the best for a query, ascending."""
        used_JD = query_JD[query_JD.any(axis=1)]
        if len(query_JD) > 1:
            return self._best_sums(used_JD, num_candidates, parameters)
        num_found = min(num_candidates * max(self.num_facets, _MIN_FACETS_PER_RESULT), self.num_vectors)
        ids = self._index.search(used_JD, num_found, params=parameters)[1].ravel()
        firsts = self._firsts[ids[ids >= 0] // self.num_facets]
        _, ranks = np.unique(firsts, return_index=True)
        return np.sort(firsts[np.sort(ranks)[: _DOCUMENTS_PER_RESULT * num_candidates]])

    def _best_sums(self, facets_JD: Floats, num_candidates: int, parameters: faiss.SearchParametersIVF) -> Ints:
        """Documents with the largest sums of cosines over the query facets, from the facets in the probed lists.

        A document may be best by the sum without being near the best for any single facet. For a facet that found a
        document at less than the median of its cosines, or not at all, the median is assumed: higher guesses admit
        documents that cannot be good, lower ones exclude documents that answer all other facets.
        """
        limits, cosines, ids = self._index.range_search(facets_JD, -2.0, params=parameters)
        medians = np.zeros(len(facets_JD), dtype=np.float32)
        for facet, (start, end) in enumerate(pairwise(limits.tolist())):
            if start < end:
                medians[facet] = np.partition(cosines[start:end], (end - start) // 2)[(end - start) // 2]
        facets = np.repeat(np.arange(len(facets_JD)), (limits[1:] - limits[:-1]).astype(np.int64))
        above = cosines - medians[facets]
        kept = np.flatnonzero(above >= 0)
        firsts = self._firsts[ids[kept] // self.num_facets]
        # The different documents, numbered without sorting; of this array, only what is written takes time.
        numbers = np.empty(len(self.slots), dtype=np.int64)
        numbers[firsts] = np.arange(len(firsts))
        documents = firsts[numbers[firsts] == np.arange(len(firsts))]
        numbers[documents] = np.arange(len(documents))
        gains = np.zeros(len(facets_JD) * len(documents), dtype=np.float32)  # what each facet adds to each sum
        np.maximum.at(gains, facets[kept] * len(documents) + numbers[firsts], above[kept])
        num_kept = _SUM_DOCUMENTS_PER_RESULT * num_candidates
        if len(documents) > num_kept:
            sums = gains.reshape(len(facets_JD), -1).sum(axis=0)
            documents = documents[sums >= np.partition(sums, -num_kept)[-num_kept]]
        return np.sort(documents)

    def write(self, sink: Callable[[bytes | memoryview], object]) -> None:
        """Writes the FAISS index and the codes."""
        self._index.nprobe = self.num_probes
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(lambda data: sink(bytes(data))))  # type: ignore[attr-defined]  # missing in the stubs
        super().write(sink)

    @classmethod
    def map(
        cls, path: Path, content: NDArray[np.uint8], rows_S: Ints, description: Mapping[str, int | float | str]
    ) -> "FaissIndex":
        """Opens a snapshot. Lists stay in the file until the first document is added, codes permanently."""
        num_facets, dim = int(description["num_facets"]), int(description["dim"])
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFormatError(f"FAISS cannot read the index: {error}") from error
        assert isinstance(index, faiss.IndexIVFScalarQuantizer)
        opened = cls(index, num_facets=num_facets, trained_documents=int(description["trained_documents"]))
        opened._is_mapped = True
        codes_byte = len(content) - len(rows_S) * num_facets * (dim + 4)
        opened._map(content[codes_byte:], rows_S, code_error=float(description["code_error"]))
        opened._firsts = first_places(rows_S)
        opened.num_masked = int(description["num_masked"])
        return opened

    def _copy_lists(self) -> None:
        """Copies the lists of a snapshot into memory; safe during searches."""
        if not self._is_mapped or self._copied is not None:
            return
        mapped, nlist = self._index.invlists, self._index.nlist
        assert mapped is not None
        copied = faiss.ArrayInvertedLists(nlist, mapped.code_size)
        for number in range(nlist):
            copied.add_entries(number, mapped.list_size(number), mapped.get_ids(number), mapped.get_codes(number))
        self._copied = copied

    def _own_lists(self) -> None:
        """Replaces mapped lists by copies, which can change; not safe during searches."""
        self._copy_lists()
        if self._copied is not None:
            self._index.replace_invlists(self._copied, True)
            self._copied.this.disown()  # type: ignore[attr-defined]  # the index owns it now
            self._is_mapped, self._copied = False, None

    def describe(self) -> dict[str, int | float | str]:
        """Numbers for the header of a snapshot."""
        return {
            "num_facets": self.num_facets,
            "dim": self.dim,
            "trained_documents": self.trained_documents or 0,
            "num_vectors": self.num_vectors,
            "num_masked": self.num_masked,
            "code_error": self.code_error,
        }


def _selector(allowed: Bools) -> faiss.IDSelectorBitmap:
    # FAISS's Python wrapper takes an array and keeps it alive; its stubs describe the C++ constructor
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]


def _without_padding(query_QJD: Floats) -> Floats:
    """Queries as ``[Q, 1, D]`` if each has only one facet that is not zero."""
    used_QJ = query_QJD.any(axis=2)
    if query_QJD.shape[1] == 1 or (used_QJ.sum(axis=1) > 1).any():
        return query_QJD
    first_Q = used_QJ.argmax(axis=1)
    return np.ascontiguousarray(query_QJD[np.arange(len(query_QJD)), first_Q][:, None, :])
