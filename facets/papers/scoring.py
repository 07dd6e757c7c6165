"""How a paper is scored: relevance of candidates, mixed with the likeness of documents; the best of them, and why.

Shape letters: N papers, K facets, D dimensions, W of documents, J authors or citing papers, C candidates, T top_k,
V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.papers.model import PaperModel
from facets.papers.records import CandidateEvidence
from facets.papers.tables import CandidateTable, PaperBank


def relevance_score(facets_NKD: NDArray[np.float32], table_JD: NDArray[np.float32]) -> NDArray[np.float32]:
    """``max(0, max_k a_j . p_nk)``, ``[N, J]``, magnitudes kept; in ``[0, inf)``.

    References:
        Chang 2022, eq. 3.13.

    Example:
        >>> facets = np.array([[[1.0, 0.0], [0.0, 2.0]]], dtype=np.float32)
        >>> relevance_score(facets, np.array([[0.5, 0.5], [-1.0, 0.0]], dtype=np.float32)).tolist()
        [[1.0, 0.0]]
    """
    scores = np.zeros((len(facets_NKD), len(table_JD)), dtype=np.float32)
    for facet in range(facets_NKD.shape[1]):  # K products of matrices: no [N, K, J] array
        np.maximum(scores, facets_NKD[:, facet] @ table_JD.T, out=scores)
    return scores


@dataclass(frozen=True, slots=True)
class HybridScores:
    """Scores ``[N, C]`` float32."""

    total: NDArray[np.float32]  # what ranks
    facets: NDArray[np.float32]  # eq. 3.13
    documents: NDArray[np.float32]  # average or greatest cosine with the candidate's papers


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

    ``documents_NW``: what is compared with the candidate's papers. ``document_mode``: ``max`` or ``average`` over a
    candidate's papers. ``rows_C``: the candidates wanted; None: all.

    References:
        Chang 2022, section 3.4.3.2 (K=* + CBOW *).
    """
    vectors = table.vectors if rows_C is None else table.vectors[rows_C]
    facets = relevance_score(facets_NKD, vectors)
    rows = np.arange(table.num_rows) if rows_C is None else rows_C
    documents = table.document_scores(documents_NW, rows, bank, mode=document_mode)
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

    ``scores_NC``: ``-inf`` is never taken. ``ranks_C``: distinct; the lower wins a tie. Returns columns ``[N, T]``, -1
    where none is left, and their scores, ``-inf`` there.
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


# Candidates that diversity chooses from, at least, and for each one wanted.
DIVERSITY_POOL, DIVERSITY_POOL_FOR_EACH = 50, 5


def group_similarities(table: CandidateTable, rows_C: NDArray[np.int64]) -> NDArray[np.float64]:
    """What share of the papers of the one with fewer two candidates have in common, ``[C, C]`` in [0, 1]."""
    papers = [table.papers_of(int(row)) for row in rows_C]
    _, columns = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *papers]), return_inverse=True)
    counts_C = np.array([len(own) for own in papers])
    has_CP = np.zeros((len(papers), int(columns.max(initial=-1)) + 1), dtype=np.float32)
    has_CP[np.repeat(np.arange(len(papers)), counts_C), columns] = 1.0
    fewer_CC = np.maximum(1, np.minimum(counts_C[:, None], counts_C))
    return (has_CP @ has_CP.T) / fewer_CC


_NEAREST_WORDS = 8
_WORDS_FROM = 30  # papers of the candidate whose titles give the words
_LEAST_LETTERS = 3
_NEAREST_PAPERS = 3


class EvidenceFinder:
    """Finds the evidence of one paper and one candidate at a time.

    Args:
        model: Gives the words and their place in the space of the facets.
    """

    def __init__(self, model: PaperModel) -> None:
        self._model = model

    def evidence(
        self,
        table: CandidateTable,
        bank: PaperBank,
        row: int,
        *,
        facets_KD: NDArray[np.float32],
        document_W: NDArray[np.float32],
    ) -> CandidateEvidence:
        """The evidence of a candidate."""
        facet = int((facets_KD @ table.vectors[row]).argmax())
        papers = table.papers_of(row)
        likeness = bank.documents[papers] @ document_W
        nearest = np.argsort(-likeness, kind="stable")
        titles = [bank.titles[papers[n]] for n in nearest[:_WORDS_FROM]]
        nearest = nearest[:_NEAREST_PAPERS]
        return CandidateEvidence(
            facet,
            self._nearest_words(titles, unit_rows(facets_KD[facet : facet + 1])[0]),
            tuple((bank.ids[papers[n]], bank.titles[papers[n]], float(likeness[n])) for n in nearest),
        )

    def _nearest_words(self, titles: Sequence[str], facet_D: NDArray[np.float32]) -> tuple[tuple[str, float], ...]:
        """The words of titles nearest to a facet: of all words the nearest are rare ones that nobody understands."""
        vocabulary = self._model.words.vocabulary
        said = {word for words in self._model.tokenizer.words(titles) for word in words}
        rows_V = vocabulary.rows(sorted(word for word in said if word.isalpha() and len(word) >= _LEAST_LETTERS))
        rows_V = rows_V[rows_V != vocabulary.unknown_row]
        rows_V = rows_V[~vocabulary.is_stop[rows_V]]
        cosines_V = unit_rows(self._model.words_as_facets(rows_V)) @ facet_D
        best = np.argsort(-cosines_V, kind="stable")[:_NEAREST_WORDS]
        return tuple((vocabulary.words[rows_V[word]], float(cosines_V[word])) for word in best)
