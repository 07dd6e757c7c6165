"""Recommends authors and citing papers for a paper from its title and abstract alone (Chang 2022, section 3.4).

Shape letters: N papers, C candidates, K facets, D dimensions, W width of documents, T top_k.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from facets.arrays import Doubles, Floats, Ints
from facets.language.interruption import check_interrupted
from facets.papers.additions import Additions
from facets.papers.confidence import features_of, text_features
from facets.papers.model import PaperModel
from facets.papers.records import (
    AddResult,
    BulkCandidates,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
    check_distinct,
    check_papers,
    check_top_k,
)
from facets.papers.scoring import Scorer, best_columns, diverse_columns
from facets.papers.tables import EngineState
from facets.storage.sql import SqlDatabase

_SCORES_AT_A_TIME = 16_000_000  # papers times candidates: 64 MiB per array
# Diversity chooses from this many candidates, or this many times `top_k`.
_DIVERSITY_POOL, _DIVERSITY_POOL_FOR_EACH = 50, 5


class PaperEngine:
    """A paper model with its authors and citing papers, including those added since training. Thread-safe.

    The model folder is never written. Additions in ``data_dir`` (one SQLite file) are durable when a call returns.
    """

    def __init__(self, model: PaperModel, *, data_dir: str | Path | SqlDatabase | None = None) -> None:
        """Takes a model, and a folder for additions, created when absent, or a database shared by several servers.

        Raises StorageError when the folder cannot be opened, or belongs to another model.
        """
        self.model = model
        self._additions = Additions(model, Path(data_dir) if isinstance(data_dir, str) else data_dir)

    def close(self) -> None:
        """Closes the file of the additions."""
        self._additions.close()

    @property
    def state(self) -> EngineState:
        """The current tables and papers."""
        return self._additions.state

    def size(self, kind: CandidateKind) -> int:
        """Number of known authors or citing papers."""
        return len(self.state.tables[kind])

    def find(self, kind: CandidateKind, text: str, *, top_k: int = 10) -> list[tuple[str, str]]:
        """Id and name of the candidates whose id or name is most similar to a text, best first."""
        check_top_k(top_k)
        return self.state.tables[kind].find(text, top_k)

    def encode(self, papers: Sequence[Paper], *, passages: bool = False) -> PaperFacets:
        """Facets, magnitudes and documents of papers, in order; raises InvalidInputError for one without title.

        ``passages``: also what is compared with the papers of added authors, see ``compares_passages``.
        """
        check_papers(papers)
        texts, model = ([paper.title for paper in papers], [paper.abstract for paper in papers]), self.model
        vectors_NE = model.passage_vectors(*texts) if passages else None
        return model.encode_papers(model.paper_rows(*texts), model.sentence_vectors(*texts), vectors_NE)

    def compares_passages(self, kind: CandidateKind, ids: Sequence[str]) -> bool:
        """Whether one of some candidates is an author added after training; unknown ids are ignored."""
        state = self.state
        return state.compares_passages(kind, state.tables[kind].rows(ids))

    def recommend(
        self, kind: CandidateKind, papers: Sequence[Paper], options: PaperOptions | None = None
    ) -> list[list[RankedCandidate]]:
        """Authors for each paper, or papers that would cite it, best first, ties by id; an empty list if none passes.

        Raises InvalidInputError for a paper without a title.
        """
        options, state = options or PaperOptions(), self.state
        scorer, allowed = self._scorer(state, kind, options), state.tables[kind].allowed(options)
        encoded = self.encode(papers, passages=state.compares_passages(kind, allowed))
        rankings = []
        for number, paper in enumerate(papers):
            check_interrupted()
            rows_C = allowed
            if paper.excluded_ids:
                rows_C = rows_C[~np.isin(rows_C, scorer.table.rows(paper.excluded_ids))]
            own = encoded.part(slice(number, number + 1))
            rankings.append(self._ranking(scorer, paper, own, rows_C, options) if len(rows_C) else [])
        return rankings

    def recommend_bulk(
        self, kind: CandidateKind, papers: Sequence[Paper], options: PaperOptions | None = None
    ) -> BulkCandidates:
        """``recommend`` as arrays, without evidence and diversity."""
        options, state = options or PaperOptions(), self.state
        scorer, table = self._scorer(state, kind, options), state.tables[kind]
        allowed = table.allowed(options)
        encoded = self.encode(papers, passages=state.compares_passages(kind, allowed))
        width = min(options.top_k, len(allowed))
        rows = np.full((len(encoded), width), -1, dtype=np.int64)
        scores = np.full((len(encoded), width), -np.inf, dtype=np.float32)
        step = max(1, _SCORES_AT_A_TIME // max(1, len(allowed)))
        for first in range(0, len(encoded) if width else 0, step):
            check_interrupted()
            part = slice(first, first + step)
            total = scorer.scores(encoded.part(part), allowed)[0]
            for row, paper in enumerate(papers[part]):
                total[row, np.isin(allowed, table.rows(paper.excluded_ids))] = -np.inf
            columns, scores[part] = best_columns(total, width, ranks=lambda: table.id_ranks[allowed])
            rows[part] = np.where(columns >= 0, allowed[columns], -1)
        return BulkCandidates(table.ids.tolist(), rows, scores)

    def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        papers: Sequence[Paper] | PaperFacets,
        *,
        options: PaperOptions | None = None,
    ) -> list[list[RankedPaper]]:
        """Ranks papers, given as records or encoded, for each author (id, else name) or citing paper.

        Best first, ties by position. Of the options, ``top_k``, ``facet_weight`` and ``evidence`` apply; to records
        also ``excluded_ids``, here ids of papers, and the years, here of the papers. Raises NotFoundError
        (``resource_type`` is ``author`` or ``citing_paper``) for an unknown id, which lists similar ones, and
        InvalidInputError for a paper without a title or two of one id.
        """
        options, state = options or PaperOptions(), self.state
        scorer = self._scorer(state, kind, options)
        columns = np.array([state.tables[kind].row_of(kind, key) for key in ids], dtype=np.int64)
        if isinstance(papers, PaperFacets):
            encoded = papers
        else:
            encoded = self.encode(papers, passages=state.compares_passages(kind, columns))
        allowed = np.arange(len(papers)) if isinstance(papers, PaperFacets) else _allowed_papers(papers, options)
        if not len(allowed) or not len(columns):
            return [[] for _ in columns]
        chosen = encoded.part(allowed)
        total, facets, documents = scorer.scores(chosen, columns)
        transposed = np.ascontiguousarray(total.T)
        best, best_scores = best_columns(transposed, options.top_k, ranks=lambda: np.arange(len(allowed)))
        return [
            [
                RankedPaper(
                    position=int(allowed[row]),
                    id="" if isinstance(papers, PaperFacets) else papers[allowed[row]].id,
                    score=float(score),
                    facet_score=float(facets[row, place]),
                    document_score=float(documents[row, place]),
                    evidence=scorer.evidence(self.model, chosen.part(slice(row, row + 1)), column)
                    if options.evidence
                    else None,
                )
                for row, score in zip(best[place], best_scores[place], strict=True)
            ]
            for place, column in enumerate(columns)
        ]

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """Stores papers and fits the vectors of their authors and citing papers, without retraining.

        A paper with a known id is replaced. Entries of ``cited_by_ids`` that are not known papers become citing papers
        and are reported in the result. Nothing is stored after an error: InvalidInputError if a paper has no title or
        id or an id is given twice, StorageError without ``data_dir`` or if writing to it failed.
        """
        return self._additions.add_papers(papers)

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """Fits vectors of authors to their papers and stores them; a known author gets more papers.

        Errors as for ``add_papers``; InvalidInputError also if an author has no papers or is given twice, NotFoundError
        (``resource_type`` is ``paper``) for an unknown ``paper_id``.
        """
        return self._additions.add_authors(authors)

    def _ranking(
        self, scorer: Scorer, paper: Paper, encoded: PaperFacets, rows_C: Ints, options: PaperOptions
    ) -> list[RankedCandidate]:
        """The best of the given candidates for one paper."""
        table = scorer.table
        pool = max(_DIVERSITY_POOL, _DIVERSITY_POOL_FOR_EACH * options.top_k) if options.diversify else options.top_k
        rows_C = scorer.contenders(encoded, rows_C, pool)
        total, facets, documents = scorer.scores(encoded, rows_C)
        best, scores = (array[0] for array in best_columns(total, pool, ranks=lambda: table.id_ranks[rows_C]))
        if options.diversify:
            chosen = diverse_columns(table, rows_C[best], scores, options)
            best, scores = best[chosen], scores[chosen]
        similar = documents[:, best]
        if encoded.passages.size:  # the curve is fitted to the same similarity for all candidates
            similar = table.document_scores(encoded.documents, rows_C[best], scorer.state.bank)
        confidence = self._confidence(scorer.kind, paper, similar[0], facets[0, best])
        return [
            RankedCandidate(
                id=table.ids[rows_C[column]],
                name=table.names[rows_C[column]],
                score=float(score),
                facet_score=float(facets[0, column]),
                document_score=float(documents[0, column]),
                evidence=scorer.evidence(self.model, encoded, rows_C[column]) if options.evidence else None,
                confidence=None if confidence is None else float(confidence[place]),
            )
            for place, (column, score) in enumerate(zip(best, scores, strict=True))
        ]

    def _confidence(self, kind: CandidateKind, paper: Paper, documents_C: Floats, facets_C: Floats) -> Doubles | None:
        if self.model.confidence is None:
            return None
        (rows,) = self.model.paper_rows([paper.title], [paper.abstract])
        known, words = text_features(rows, vocabulary_size=len(self.model.words.vocabulary))
        facets_C = facets_C.astype(np.float64)
        return self.model.confidence.confidence(kind, features_of(documents_C, facets_C, known=known, words=words))

    def _scorer(self, state: EngineState, kind: CandidateKind, options: PaperOptions) -> Scorer:
        settings, weight = self.model.settings, options.facet_weight
        return Scorer(state, kind, settings, settings.facet_weights[kind] if weight is None else weight)


def _allowed_papers(papers: Sequence[Paper], options: PaperOptions) -> Ints:
    """Positions of the papers that pass the filters, ascending."""
    check_distinct((paper.id for paper in papers), "papers", "id")
    mask = np.array([not paper.id or paper.id not in options.excluded_ids for paper in papers], dtype=np.bool_)
    years = np.array([np.nan if paper.year is None else paper.year for paper in papers])  # NaN lies in no range
    if options.from_year is not None:
        mask &= years >= options.from_year
    if options.to_year is not None:
        mask &= years <= options.to_year
    return np.flatnonzero(mask)
