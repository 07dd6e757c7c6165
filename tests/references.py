"""Scores computed directly, one at a time; the indexes are tested against them.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.index.lexical import TermCounts


def reference_search(query_QJD: NDArray[np.float32], facets_NKD: NDArray[np.floating]) -> NDArray[np.float32]:
    """``sum_j w_j max_k cos(q_j, F_k)``, ``[Q, N]`` in [-1, 1]; norms of queries are weights, zero facets count 0."""
    norms_NK1 = np.linalg.norm(facets_NKD.astype(np.float64), axis=2, keepdims=True)
    units_NKD = facets_NKD / np.where(norms_NK1 > 0, norms_NK1, 1)
    cosines_QJNK = np.einsum("qjd,nkd->qjnk", query_QJD.astype(np.float64), units_NKD)
    cosines_QJNK[:, :, norms_NK1[:, :, 0] == 0] = -np.inf
    best_QJN = cosines_QJNK.max(axis=3)
    return np.clip(np.where(np.isfinite(best_QJN), best_QJN, 0.0).sum(axis=1), -1.0, 1.0).astype(np.float32)


def reference_bm25(query: Sequence[int], documents: Sequence[TermCounts]) -> NDArray[np.float64]:
    """BM25 of documents for the terms of a query, ``[N]``; see ``LexicalIndex``."""
    counts_N = [dict(zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True)) for terms in documents]
    lengths = [sum(counts.values()) for counts in counts_N]
    scores = np.zeros(len(documents))
    for term in query:
        num_with_term = sum(term in counts for counts in counts_N)
        idf = np.log(1 + (len(documents) - num_with_term + 0.5) / (num_with_term + 0.5))
        for n, counts in enumerate(counts_N):
            if term in counts:
                discount = 0.9 * (0.6 + 0.4 * lengths[n] * len(lengths) / sum(lengths))
                scores[n] += idf * 1.9 * counts[term] / (counts[term] + discount)
    return scores
