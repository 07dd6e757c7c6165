"""Scores of papers against candidates, and the best of them.

Shape letters: N papers, K facets, D dimensions, W of documents, C candidates, T top_k.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.papers.candidates import CandidateTable, PaperBank
from facets.papers.scoring import relevance_score

__all__ = ["HybridScores", "best_columns", "example_scores", "hybrid_scores"]


@dataclass(frozen=True, slots=True)
class HybridScores:
    """Scores ``[N, C]`` float32.

    Attributes:
        total: What ranks.
        facets: eq. 3.13.
        documents: Average or greatest cosine with the candidate's papers.
    """

    total: NDArray[np.float32]
    facets: NDArray[np.float32]
    documents: NDArray[np.float32]


def hybrid_scores(
    facets_NKD: NDArray[np.float32],
    documents_NW: NDArray[np.float32],
    table: CandidateTable,
    bank: PaperBank,
    *,
    facet_weight: float,
    document_mode: str,
    rows_C: NDArray[np.int64] | None = None,
) -> HybridScores:
    """``w relevance + (1 - w) document similarity`` of every paper and candidate.

    Args:
        facets_NKD: Facets with magnitudes.
        documents_NW: What is compared with the candidate's papers.
        table: The candidates.
        bank: Their papers.
        facet_weight: w.
        document_mode: ``max`` or ``average`` over a candidate's papers.
        rows_C: The candidates wanted; None: all.

    References:
        Chang 2022, section 3.4.3.2 (K=* + CBOW *).
    """
    vectors = table.vectors if rows_C is None else table.vectors[rows_C]
    facets = relevance_score(facets_NKD, vectors)
    if document_mode == "max":
        rows = np.arange(table.num_rows) if rows_C is None else rows_C
        documents = table.greatest_cosines(documents_NW, rows, bank)
    else:
        documents = documents_NW @ (table.means if rows_C is None else table.means[rows_C]).T
    total = np.float32(facet_weight) * facets + np.float32(1.0 - facet_weight) * documents
    return HybridScores(total, facets, documents)


def example_scores(
    table: CandidateTable, positive: NDArray[np.int64], negative: NDArray[np.int64], weight: float
) -> NDArray[np.float32]:
    """What examples add to every candidate, ``[J]``: weight times (best cosine to a wanted - to an unwanted one)."""
    result = np.zeros(table.num_rows, dtype=np.float32)
    units = unit_rows(table.vectors)
    for examples, sign in ((positive, 1.0), (negative, -1.0)):
        if len(examples):
            result += np.float32(sign * weight) * (units @ units[examples].T).max(axis=1)
    return result


def best_columns(
    scores_NC: NDArray[np.float32], ranks_C: NDArray[np.integer] | NDArray[np.floating], top_k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best columns of each row, best first, ties by rank.

    Args:
        scores_NC: ``-inf`` is never taken.
        ranks_C: Distinct; the lower wins a tie.
        top_k: T, or fewer when there are fewer columns.

    Returns:
        Columns ``[N, T]``, -1 where none is left, and their scores, ``-inf`` there.
    """
    top_k = min(top_k, scores_NC.shape[1])
    # A tie at the border must fall by rank as well: a thousandth of float32's own step at 1 settles it.
    order = np.argsort(np.argsort(ranks_C))
    exact = scores_NC.astype(np.float64) - order * (1e-10 / max(1, len(order)))
    if top_k < scores_NC.shape[1]:
        columns = np.argpartition(-exact, top_k - 1, axis=1)[:, :top_k]
    else:
        columns = np.broadcast_to(np.arange(scores_NC.shape[1]), scores_NC.shape).copy()
    chosen = np.take_along_axis(scores_NC, columns, axis=1)
    places = np.lexsort((ranks_C[columns], -chosen), axis=1)
    columns, chosen = np.take_along_axis(columns, places, axis=1), np.take_along_axis(chosen, places, axis=1)
    return np.where(np.isneginf(chosen), -1, columns), chosen
