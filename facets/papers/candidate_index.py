"""Candidates for a single paper out of very many, by FAISS: inner products with magnitudes kept.

A candidate is stored as ``[a ; m]``, its vector beside the mean document of its papers, and a paper asks with
``[w p_k ; (1 - w) d]`` for each facet k: the inner product is the hybrid score of that facet with average document
similarity, whatever the weight w, so one index serves all weights. What comes back is scored again, exactly.
Shape letters: J candidates, K facets, D dimensions, W of documents, C candidates found.
"""

import numpy as np
from numpy.typing import NDArray

from facets.index.faiss_lists import InnerProductIndex
from facets.papers.candidates import CandidateTable

__all__ = ["CandidateIndex"]


class CandidateIndex:
    """Candidates in an index of inner products.

    Args:
        table: The candidates; rows of the index are rows of the table.

    Attributes:
        num_rows: Rows of that table; rows that were written behind them are not known here.
    """

    def __init__(self, table: CandidateTable) -> None:
        self.num_rows = table.num_rows
        self._index = InnerProductIndex(np.concatenate([table.vectors, table.means], axis=1))

    def search(
        self, facets_KD: NDArray[np.float32], document_W: NDArray[np.float32], facet_weight: float, count: int
    ) -> NDArray[np.int64]:
        """Rows of about ``count`` candidates a facet that are likely the best, ascending, ``[C]``."""
        documents_KW = np.broadcast_to((1.0 - facet_weight) * document_W, (len(facets_KD), len(document_W)))
        queries = np.concatenate([facet_weight * facets_KD, documents_KW], axis=1)
        return self._index.search(queries, count)
