"""Single vectors by inner product, magnitudes kept: FAISS over one vector a row.

Shape letters: J rows, D dimensions, Q queries, C found.
"""

import faiss
import numpy as np
from numpy.typing import NDArray

from facets.index.faiss_lists import LISTS_SEED, TRAIN_PER_LIST, num_lists, train_lists

__all__ = ["InnerProductIndex"]

_TRAIN_STEPS = 6
_PROBED_SHARE = 1 / 14  # of the lists, for each query
_MIN_PROBES = 8


class InnerProductIndex:
    """Inverted lists of vectors in half precision, built once and only searched.

    Args:
        vectors_JD: ``[J, D]`` float32; row j is found as ``j``.
    """

    def __init__(self, vectors_JD: NDArray[np.float32]) -> None:
        lists = num_lists(len(vectors_JD), len(vectors_JD))
        rng = np.random.default_rng(LISTS_SEED)
        sample = rng.choice(len(vectors_JD), min(len(vectors_JD), TRAIN_PER_LIST * lists), replace=False)
        index = train_lists(vectors_JD[np.sort(sample)], lists, code="fp16", train_steps=_TRAIN_STEPS)
        index.add(vectors_JD)
        index.nprobe = max(_MIN_PROBES, int(lists * _PROBED_SHARE))
        self._index = index

    def search(self, queries_QD: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Rows of about ``count`` vectors a query with the largest inner products, ascending, ``[C]``."""
        # A handful of queries of a millisecond: waking other threads costs more than they bring.
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # of the calling thread alone
        try:
            _, rows = self._index.search(np.ascontiguousarray(queries_QD, dtype=np.float32), count)
        finally:
            faiss.omp_set_num_threads(threads)
        found = np.unique(rows)
        return found[found >= 0]
