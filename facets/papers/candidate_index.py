"""Candidates for a single paper out of very many, by FAISS: inner products with magnitudes kept.

A candidate is stored as ``[a ; m]``, its vector beside the mean word average of its papers, and a paper asks with
``[w p_k ; (1 - w) d]`` for each facet k: the inner product is the hybrid score of that facet with average document
similarity, whatever the weight w, so one index serves all weights. What comes back is scored again, exactly.
Shape letters: J candidates, K facets, D dimensions, W of word averages, C candidates found.
"""

import math

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.papers.candidates import CandidateTable

__all__ = ["CandidateIndex"]

_TRAIN_PER_LIST = 40
_TRAIN_STEPS = 6
_PROBED_SHARE = 1 / 14  # of the lists, for each facet
_SEED = 12345


class CandidateIndex:
    """Inverted lists of candidates in half precision.

    Args:
        table: The candidates; rows of the index are rows of the table.
    """

    def __init__(self, table: CandidateTable) -> None:
        stored = np.concatenate([table.vectors, table.means], axis=1)
        num_lists = max(1, min(2 * math.isqrt(len(stored)), len(stored) // _TRAIN_PER_LIST))
        quantizer = faiss.IndexFlatIP(stored.shape[1])
        index = faiss.IndexIVFScalarQuantizer(
            quantizer, stored.shape[1], num_lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
        )
        quantizer.this.disown()  # type: ignore[attr-defined]  # SWIG's own handle
        index.own_fields = True
        index.cp.niter = _TRAIN_STEPS
        index.cp.seed = _SEED
        rng = np.random.default_rng(_SEED)
        sample = rng.choice(len(stored), min(len(stored), _TRAIN_PER_LIST * num_lists), replace=False)
        index.train(stored[np.sort(sample)])
        index.add(stored)
        index.nprobe = max(8, int(num_lists * _PROBED_SHARE))
        self._index = index

    def search(
        self, facets_KD: NDArray[np.float32], average_W: NDArray[np.float32], facet_weight: float, count: int
    ) -> NDArray[np.int64]:
        """Rows of about ``count`` candidates a facet that are likely the best, ascending, ``[C]``."""
        averages_KW = np.broadcast_to((1.0 - facet_weight) * average_W, (len(facets_KD), len(average_W)))
        queries = np.concatenate([facet_weight * facets_KD, averages_KW], axis=1)
        # A handful of queries of a millisecond: waking other threads costs more than they bring.
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # of the calling thread alone
        try:
            _, rows = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), count)
        finally:
            faiss.omp_set_num_threads(threads)
        found = np.unique(rows)
        return found[found >= 0]
