"""Scores of candidates: facet relevance mixed with document similarity; choice of the best, diversity and evidence.

Shape letters: N papers, K facets, D dimensions, W width of documents, J authors or citing papers, C chosen candidates,
T top_k, V words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from facets.arrays import Doubles, Floats, Ints, take_groups
from facets.index.candidates import select_diverse
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows
from facets.papers.model import PaperModel
from facets.papers.records import CandidateEvidence, CandidateKind, PaperFacets, PaperOptions
from facets.papers.tables import CandidateTable, EngineState
from facets.papers.trained import ScoringSettings

_NEAREST_WORDS, _NEAREST_PAPERS = 8, 3
_MAX_TITLES = 30  # most titles of the candidate's papers from which the words are taken
_MIN_WORD_LETTERS = 3
FEW_CANDIDATES = 2048  # are all scored


def relevance_score(facets_NKD: Floats, table_JD: Floats) -> Floats:
    """``max(0, max_k a_j . p_nk)``, ``[N, J]`` in ``[0, inf)``; magnitudes count (Chang 2022, eq. 3.13)."""
    scores = np.zeros((len(facets_NKD), len(table_JD)), dtype=np.float32)
    for facet in range(facets_NKD.shape[1]):  # K matrix products: no [N, K, J] array
        np.maximum(scores, facets_NKD[:, facet] @ table_JD.T, out=scores)
    return scores


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores papers for the candidates of one kind."""

    state: EngineState
    kind: CandidateKind
    settings: ScoringSettings
    facet_weight: float  # share of the facets in a score, in [0, 1]

    @property
    def table(self) -> CandidateTable:
        """The candidates."""
        return self.state.tables[self.kind]

    def scores(self, papers: PaperFacets, rows_C: Ints) -> tuple[Floats, Floats, Floats]:
        """``w relevance + (1 - w) document similarity``, relevance (eq. 3.13) and document similarity, ``[N, C]`` each.

        Document similarity is the greatest cosine with a candidate's papers (Chang 2022, section 3.4.3.2); for authors
        added after training, the mean of the three greatest similarities of text, rescaled in the sum.
        """
        table, bank, additions = self.table, self.state.bank, self.settings.additions
        vectors_CD = table.vectors[slice(None) if len(rows_C) == len(table) else rows_C]
        facets = relevance_score(papers.scaled(self.kind), vectors_CD)
        documents = np.empty_like(facets)
        added_C = np.zeros(len(rows_C), dtype=np.bool_)
        if additions is not None and self.kind is CandidateKind.AUTHORS and papers.passages.size:
            added_C[table.added(rows_C, bank)] = True
            documents[:, added_C] = table.added_scores(papers, rows_C[added_C], bank, words_share=additions.words_share)
        documents[:, ~added_C] = table.document_scores(papers.documents, rows_C[~added_C], bank)
        total = np.float32(self.facet_weight) * facets + np.float32(1.0 - self.facet_weight) * documents
        if additions is not None and added_C.any():
            own = documents[:, added_C]
            rescaled = np.float32(additions.offset) + np.float32(additions.scale) * own
            total[:, added_C] = self.facet_weight * facets[:, added_C] + (1.0 - self.facet_weight) * rescaled
        return total, facets, documents

    def contenders(self, paper: PaperFacets, rows_C: Ints, num_best: int) -> Ints:
        """The candidates among ``rows_C`` that may be one of the ``num_best`` for one paper, or tie with one of them.

        The scores of those with the highest upper bounds show what a bound must reach.
        """
        if len(rows_C) <= max(FEW_CANDIDATES, 2 * num_best):
            return rows_C
        table, weight = self.table, self.facet_weight
        facets_J = np.maximum(table.coded.bounds(paper.scaled(self.kind)[0]), 0.0)
        bounds_J = weight * facets_J + (1.0 - weight) * table.document_bounds(paper.documents[0], self.state.bank)
        bounds_C = bounds_J if len(rows_C) == len(table) else bounds_J[rows_C]
        if self.kind is CandidateKind.AUTHORS:
            bounds_C[table.added(rows_C, self.state.bank)] = np.inf
        lowest = np.partition(bounds_C, -2 * num_best)[-2 * num_best]
        highest = np.flatnonzero(bounds_C >= lowest)[: 2 * num_best]
        scores = self.scores(paper, rows_C[highest])[0][0]
        return rows_C[bounds_C >= np.partition(scores, -num_best)[-num_best]]

    def evidence(self, model: PaperModel, paper: PaperFacets, row: int) -> CandidateEvidence:
        """Why a candidate, ``row`` of the table, is recommended for one paper."""
        bank, facets_KD = self.state.bank, paper.scaled(self.kind)[0]
        facet = int((facets_KD @ self.table.vectors[row]).argmax())
        papers = self.table.papers_of(row)
        cosines = bank.documents.products(papers, paper.documents)[:, 0]
        nearest = np.argsort(-cosines, kind="stable")
        titles = [bank.titles[papers[n]] for n in nearest[:_MAX_TITLES]]
        return CandidateEvidence(
            facet,
            _nearest_words(model, titles, unit_rows(facets_KD[facet : facet + 1])[0]),
            tuple((bank.ids[papers[n]], bank.titles[papers[n]], float(cosines[n])) for n in nearest[:_NEAREST_PAPERS]),
        )


def best_columns(scores_NC: Floats, top_k: int, *, ranks: Callable[[], Ints]) -> tuple[Ints, Floats]:
    """The best columns of each row ``[N, T]``, best first, and their scores; -1 and ``-inf`` where no column is left.

    ``ranks`` gives ``[C]`` distinct numbers; of equal scores the lower number comes first. It is only called for ties.
    """
    top_k = min(top_k, scores_NC.shape[1])
    if top_k < scores_NC.shape[1]:
        columns = np.argpartition(-scores_NC, top_k - 1, axis=1)[:, :top_k]
    else:
        columns = np.broadcast_to(np.arange(top_k), scores_NC.shape).copy()
    best = np.take_along_axis(scores_NC, columns, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    columns, best = np.take_along_axis(columns, order, axis=1), np.take_along_axis(best, order, axis=1)
    lowest_N1 = np.maximum(best[:, -1:], np.finfo(np.float32).min)
    has_equal_N = ((best[:, 1:] == best[:, :-1]) & (best[:, 1:] >= lowest_N1)).any(axis=1)
    for row in np.flatnonzero(has_equal_N | ((scores_NC >= lowest_N1).sum(axis=1) > top_k)):
        tied = np.flatnonzero(scores_NC[row] >= lowest_N1[row])
        tied = tied[np.lexsort((ranks()[tied], -scores_NC[row, tied]))][:top_k]
        columns[row, : len(tied)] = tied
    return np.where(np.isneginf(best), -1, columns), best


def diverse_columns(table: CandidateTable, rows_C: Ints, scores_C: Floats, options: PaperOptions) -> Ints:
    """Positions of ``top_k`` candidates of which few share papers with a better one.

    Two candidates are as similar as the fraction of papers that they share, of the smaller paper set.
    """
    pairs_P, starts_C1 = take_groups(table.starts, rows_C)
    papers_P, counts_C = table.papers[pairs_P], np.diff(starts_C1)
    candidates_P = np.repeat(np.arange(len(rows_C)), counts_C)

    def similarities(place: int) -> Doubles:  # of one candidate at a time: a matrix of all would take gigabytes
        check_interrupted()
        is_shared_P = np.isin(papers_P, table.papers_of(int(rows_C[place])))
        shared_C = np.bincount(candidates_P[is_shared_P], minlength=len(rows_C))
        return shared_C / np.maximum(1, np.minimum(counts_C[place], counts_C))

    no_facets = np.empty((len(rows_C), 0))  # facets of a query that diversity should cover
    return select_diverse(scores_C, no_facets, similarities, diversify=options.diversify, top_k=options.top_k)


def _nearest_words(model: PaperModel, titles: Sequence[str], facet_D: Floats) -> tuple[tuple[str, float], ...]:
    """Title words nearest to a facet; the nearest of all words would be rare ones that mean little to readers."""
    vocabulary = model.words.vocabulary
    words = {word for title_words in model.tokenizer.words(titles) for word in title_words}
    rows_V = vocabulary.rows(sorted(word for word in words if word.isalpha() and len(word) >= _MIN_WORD_LETTERS))
    rows_V = rows_V[rows_V != vocabulary.unknown_row]
    rows_V = rows_V[~vocabulary.is_stop[rows_V]]
    cosines_V = unit_rows(model.words_as_facets(rows_V)) @ facet_D
    best = np.argsort(-cosines_V, kind="stable")[:_NEAREST_WORDS]
    return tuple((vocabulary.words[rows_V[word]], float(cosines_V[word])) for word in best)
