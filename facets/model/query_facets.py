"""Facets of queries: a short one is one vector, a long one also has those of its sentences.

Shape suffixes: Q queries, J facets of a query, P parts of all queries, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.model.word_pieces import Pieces
from facets.text.tokenizer import Sentence

__all__ = ["MAX_QUERY_FACETS", "QueryFacets", "join_parts", "query_parts"]

_SHORT_PIECES = 64
MAX_QUERY_FACETS = 16
_MOST_SENTENCES = MAX_QUERY_FACETS - 1
_OWN_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class QueryFacets:
    """What ``PassageModel.encode_queries`` gives.

    Attributes:
        facets: ``[Q, J, D]`` float32, unit norm; zero rows where a query has fewer facets. The first is the query's own
            vector.
        weights: ``[Q, J]`` float32, what each facet counts: they add up to 1, and are 0 for zero rows.
    """

    facets: NDArray[np.float32]
    weights: NDArray[np.float32]


def query_parts(pieces: Pieces, sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """The runs of pieces whose vectors are facets of a query: the whole first, and its sentences if it is long.

    Args:
        pieces: The query, at least one piece.
        sentences: Its sentences, in order.

    Returns:
        First piece and the one behind the last, for each part. Many sentences are joined to 15 runs.
    """
    whole = (0, len(pieces))
    if len(pieces) <= _SHORT_PIECES or len(sentences) < 2:
        return [whole]
    bounds = np.append(np.searchsorted(pieces.starts, [sentence.start for sentence in sentences]), len(pieces))
    bounds[0] = 0
    if len(sentences) > _MOST_SENTENCES:
        wanted = np.linspace(0, len(pieces), _MOST_SENTENCES + 1)
        bounds = bounds[np.abs(bounds[:, None] - wanted).argmin(axis=0)]
    bounds = np.unique(bounds)
    return [whole, *zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]


def join_parts(vectors_PD: NDArray[np.float32], num_parts: Sequence[int]) -> QueryFacets:
    """Facets of queries of the vectors of their parts.

    Args:
        vectors_PD: Unit vectors, those of one query one after another.
        num_parts: Parts of each query, at least 1.
    """
    counts_Q = np.array(num_parts, dtype=np.int64)
    is_part_QJ = np.arange(max(num_parts, default=1)) < counts_Q[:, None]
    facets_QJD = np.zeros((*is_part_QJ.shape, vectors_PD.shape[1]), dtype=np.float32)
    facets_QJD[is_part_QJ] = vectors_PD
    weights_QJ = is_part_QJ * np.float32(1 - _OWN_WEIGHT) / np.maximum(counts_Q - 1, 1)[:, None].astype(np.float32)
    weights_QJ[:, 0] = np.where(counts_Q > 1, _OWN_WEIGHT, 1.0)
    return QueryFacets(facets_QJD, weights_QJ.astype(np.float32))
