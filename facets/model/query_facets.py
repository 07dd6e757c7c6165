"""Facets of queries: a short one is one vector, a long one has a vector for each of its sentences.

A sentence of a long query stands for what it says and for what it means here: its facet is the mean of its vector when
read alone and of its vector among the others. Shape suffixes: Q queries, J facets of a query, P parts of all queries,
D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.tokenizer import Sentence
from facets.model.word_pieces import Pieces

__all__ = ["MAX_QUERY_FACETS", "QueryFacets", "join_parts", "query_parts"]

_SHORT_PIECES = 64
_SHORTEST_PART = 12  # pieces; a shorter sentence is one part with the next
MAX_QUERY_FACETS = 16


@dataclass(frozen=True, slots=True)
class QueryFacets:
    """What ``PassageModel.encode_queries`` gives.

    Attributes:
        facets: ``[Q, J, D]`` float32, unit norm; zero rows where a query has fewer facets. A short query has one, its
            own vector.
        weights: ``[Q, J]`` float32, what each facet counts: they add up to 1, and are 0 for zero rows.
    """

    facets: NDArray[np.float32]
    weights: NDArray[np.float32]


def query_parts(pieces: Pieces, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
    """Where the parts of a query begin that have facets of their own: one part, or the sentences of a long query.

    Args:
        pieces: The query, at least one piece.
        sentences: Its sentences, in order.

    Returns:
        The first piece of each part, and the number of all pieces at the end; at most 16 parts.
    """
    ends = np.array([0, len(pieces)])
    if len(pieces) <= _SHORT_PIECES:
        return ends
    starts = np.searchsorted(pieces.starts, [sentence.start for sentence in sentences[1:]])
    kept = [0]
    for start in starts.tolist():
        if start - kept[-1] >= _SHORTEST_PART and len(pieces) - start >= _SHORTEST_PART:
            kept.append(start)
    bounds = np.array([*kept, len(pieces)])
    if len(kept) > MAX_QUERY_FACETS:
        wanted = np.linspace(0, len(pieces), MAX_QUERY_FACETS + 1)
        bounds = np.unique(bounds[np.abs(bounds[:, None] - wanted).argmin(axis=0)])
    return bounds


def join_parts(vectors_PD: NDArray[np.float32], num_parts: Sequence[int]) -> QueryFacets:
    """Facets of queries of the vectors of their parts, which all count the same.

    Args:
        vectors_PD: Unit vectors, those of one query one after another.
        num_parts: Parts of each query, at least 1.
    """
    counts_Q = np.array(num_parts, dtype=np.int64)
    is_part_QJ = np.arange(max(num_parts, default=1)) < counts_Q[:, None]
    facets_QJD = np.zeros((*is_part_QJ.shape, vectors_PD.shape[1]), dtype=np.float32)
    facets_QJD[is_part_QJ] = vectors_PD
    return QueryFacets(facets_QJD, (is_part_QJ / counts_Q[:, None]).astype(np.float32))
