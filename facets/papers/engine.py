"""Who would write and who would cite a paper, from its title and abstract alone (Chang 2022, section 3.4).

Shape letters: N papers, J candidates, C chosen candidates, K facets, D dimensions, W of documents.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.index.candidates import select_diverse
from facets.language.interruption import check_interrupted
from facets.model.loading import load
from facets.papers.additions import Additions
from facets.papers.candidates import allowed_mask, allowed_papers, example_bonus, row_of, without
from facets.papers.confidence import features_of, text_features
from facets.papers.model import PaperModel
from facets.papers.records import (
    AddResult,
    BulkCandidates,
    CandidateEvidence,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
    check_papers,
)
from facets.papers.scoring import (
    DIVERSITY_POOL,
    DIVERSITY_POOL_FOR_EACH,
    EvidenceFinder,
    HybridScores,
    best_columns,
    group_similarities,
    hybrid_scores,
)
from facets.papers.state import EngineState
from facets.storage import SqlDatabase

# Scores computed at a time, papers times candidates: 64 MiB an array.
_SCORES_AT_A_TIME = 16_000_000


class PaperEngine:
    """A model of papers with its authors and citing papers, and those added since; may be shared by threads.

    The model folder is never written. What is added goes to ``data_dir`` (one SQLite file) and is durable
    before the call returns; an engine opened on the same folder later has it again.
    """

    def __init__(
        self, model: PaperModel, *, data_dir: str | Path | SqlDatabase | None = None, rebuilt_after: int = 20_000
    ) -> None:
        """Takes a model that ``facets.load`` returned.

        Args:
            model: Its ``task`` is ``papers``.
            data_dir: Folder for additions, made when absent, or the database that servers share; None: additions are
                refused.
            rebuilt_after: Additions leave so many rows of former versions at least, before what is known is put
                together without them.

        Raises:
            InvalidInputError: The model's task is another one.
            StorageError: The folder cannot be opened, or belongs to another model.
        """
        if model.task != "papers":
            raise InvalidInputError(f"must be one for the task 'papers', got one for {model.task!r}", path="model")
        self.model = model
        self._additions = Additions(
            model, Path(data_dir) if isinstance(data_dir, str) else data_dir, rebuilt_after=rebuilt_after
        )
        self._evidence_finder = EvidenceFinder(model)

    @classmethod
    def load(
        cls,
        name_or_path: str | Path | None = None,
        *,
        data_dir: str | Path | SqlDatabase | None = None,
        device: str = "cpu",
    ) -> Self:
        """Loads a model (``facets-papers-en`` when none is named) and the additions in ``data_dir``.

        Raises:
            NotFoundError: No such model.
            CheckpointError: The model folder is damaged.
            InvalidInputError: The model's task is not ``papers``.
        """
        return cls(load(name_or_path, PaperModel, device=device), data_dir=data_dir)

    def close(self) -> None:
        """Closes the file of the additions."""
        self._additions.close()

    @property
    def state(self) -> EngineState:
        """Tables and papers as they are now."""
        return self._additions.state

    def size(self, kind: CandidateKind) -> int:
        """How many authors or citing papers are known."""
        return len(self._additions.state.tables[kind])

    def find(self, kind: CandidateKind, text: str, *, top_k: int = 10) -> list[tuple[str, str]]:
        """Candidates whose id or name is like a text, best first: ``(id, name)``; for "did you mean"."""
        return self._additions.state.tables[kind].find(text, top_k)

    def encode(self, papers: Sequence[Paper]) -> PaperFacets:
        """Facets, magnitudes and documents of papers, in order.

        Raises:
            InvalidInputError: A paper has no title (``field`` is ``papers[3].title``).
        """
        check_papers(papers)
        texts = [paper.title for paper in papers], [paper.abstract for paper in papers]
        return self.model.encode_papers(self.model.paper_rows(*texts), self.model.sentence_vectors(*texts))

    def recommend_authors(
        self, papers: Sequence[Paper] | PaperFacets, options: PaperOptions | None = None
    ) -> list[list[RankedCandidate]]:
        """Authors for each paper, best first, ties by id.

        A list is empty when no candidate is left, e.g. when everyone is excluded.

        Raises:
            InvalidInputError: A paper has no title; a positive or negative example is unknown.
        """
        return self._recommend(CandidateKind.AUTHORS, papers, options or PaperOptions())

    def recommend_citations(
        self, papers: Sequence[Paper] | PaperFacets, options: PaperOptions | None = None
    ) -> list[list[RankedCandidate]]:
        """Papers that would cite each paper; as ``recommend_authors``."""
        return self._recommend(CandidateKind.CITATIONS, papers, options or PaperOptions())

    def recommend_bulk(
        self, kind: CandidateKind, papers: Sequence[Paper] | PaperFacets, options: PaperOptions | None = None
    ) -> BulkCandidates:
        """``recommend_authors`` or ``recommend_citations`` as arrays, for thousands of papers; no evidence."""
        options = options or PaperOptions()
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        state = self._additions.state
        table = state.tables[kind]
        allowed = without(table.live_rows, allowed_mask(table, options), np.empty(0, dtype=np.int64))
        excluded = [] if isinstance(papers, PaperFacets) else [table.rows(paper.excluded_ids) for paper in papers]
        width = min(options.top_k, len(allowed))
        rows = np.full((len(encoded), width), -1, dtype=np.int64)
        scores = np.full((len(encoded), width), -np.inf, dtype=np.float32)
        examples = example_bonus(table, options)
        step = max(1, _SCORES_AT_A_TIME // max(1, len(allowed)))
        for first in range(0, len(encoded) if width else 0, step):
            check_interrupted()
            part = slice(first, first + step)
            total = self._scores(state, kind, encoded.part(part), options, allowed).total
            if examples is not None:
                total += examples[allowed]
            for place, own in enumerate(excluded[part]):
                total[place, np.isin(allowed, own)] = -np.inf
            columns, scores[part] = best_columns(total, table.id_ranks[allowed], width)
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
        """Ranks papers for each author or citing paper of ``ids``.

        Args:
            kind: What the ids are.
            ids: Authors (id, else name) or citing papers.
            papers: The papers to rank; a collection that is asked often is encoded once by ``encode``.
            options: ``excluded_ids``, ``candidates``, ``positive_ids`` and ``negative_ids`` are ids of ``papers`` here,
                and the years bound their ``year``; encoded papers have neither id nor year, so all of these must be
                empty.

        Returns:
            One list an id, best first, ties by place.

        Raises:
            NotFoundError: An id is unknown (``resource_type`` ``author`` or ``citing_paper``); the message
                names the nearest known ones.
            InvalidInputError: A paper has no title, or two papers have the same id.
        """
        options = options or PaperOptions()
        state = self._additions.state
        table = state.tables[kind]
        columns = np.array([row_of(kind, table, key) for key in ids], dtype=np.int64)
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        allowed, bonus = allowed_papers(papers, encoded, options)
        if not len(allowed) or not len(columns):
            return [[] for _ in columns]
        chosen = encoded.part(allowed)
        scores = self._scores(state, kind, chosen, options, columns)
        total = scores.total + bonus[allowed, None]
        best, best_scores = best_columns(np.ascontiguousarray(total.T), np.arange(len(allowed)), options.top_k)
        return [
            [
                RankedPaper(
                    int(allowed[row]),
                    "" if isinstance(papers, PaperFacets) else papers[allowed[row]].id,
                    float(score),
                    float(scores.facets[row, place]),
                    float(scores.documents[row, place]),
                    self._evidence(state, kind, chosen.part(slice(row, row + 1)), int(column), options),
                )
                for row, score in zip(best[place], best_scores[place], strict=True)
            ]
            for place, column in enumerate(columns)
        ]

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """Stores papers and fits the vectors of their authors and citing papers, new and known, without retraining.

        A paper of a known id is replaced. ``cited_by_ids`` entries that are no known paper become citing papers
        all the same and are reported.

        Raises:
            InvalidInputError: No title, no id, or an id twice in the call; nothing was stored then.
            StorageError: No ``data_dir``, or it could not be written; nothing was stored then.
        """
        return self._additions.add_papers(papers)

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """Fits vectors of authors from what they wrote and stores them; a known author gets more papers.

        Raises:
            InvalidInputError: An author without papers, or twice in the call; nothing was stored then.
            NotFoundError: A ``paper_id`` is unknown (``resource_type`` ``paper``).
            StorageError: As for ``add_papers``.
        """
        return self._additions.add_authors(authors)

    def _recommend(
        self, kind: CandidateKind, papers: Sequence[Paper] | PaperFacets, options: PaperOptions
    ) -> list[list[RankedCandidate]]:
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        state = self._additions.state
        table = state.tables[kind]
        examples = example_bonus(table, options)
        mask = allowed_mask(table, options)
        result = []
        for number in range(len(encoded)):
            check_interrupted()
            one = encoded.part(slice(number, number + 1))
            own = () if isinstance(papers, PaperFacets) else papers[number].excluded_ids
            rows = without(table.live_rows, mask, table.rows(own))
            found = self._best_of(state, kind, one, rows, options, examples)
            result.append(
                found if isinstance(papers, PaperFacets) else self._with_confidence(kind, papers[number], found)
            )
        return result

    def _with_confidence(
        self, kind: CandidateKind, paper: Paper, ranked: list[RankedCandidate]
    ) -> list[RankedCandidate]:
        """The same with how sure each is, where the model has a curve."""
        if self.model.confidence is None or not ranked:
            return ranked
        (rows,) = self.model.paper_rows([paper.title], [paper.abstract])
        known, words = text_features(rows, vocabulary_size=len(self.model.words.vocabulary))
        documents_C = np.array([item.document_score for item in ranked])
        facets_C = np.array([item.facet_score for item in ranked])
        features_CF = features_of(documents_C, facets_C, known=known, words=words)
        found_C = self.model.confidence.confidence(kind, features_CF)
        if found_C is None:
            return ranked
        return [replace(item, confidence=float(value)) for item, value in zip(ranked, found_C, strict=True)]

    def _best_of(
        self,
        state: EngineState,
        kind: CandidateKind,
        paper: PaperFacets,
        rows: NDArray[np.int64],
        options: PaperOptions,
        examples: NDArray[np.float32] | None,
    ) -> list[RankedCandidate]:
        if not len(rows):
            return []
        table = state.tables[kind]
        scores = self._scores(state, kind, paper, options, rows)
        total = scores.total if examples is None else scores.total + examples[rows]
        columns, best = best_columns(total, table.id_ranks[rows], _wanted(options))
        if options.diversify:
            alike = group_similarities(table, rows[columns[0]])
            nothing = np.empty((len(alike), 0))  # facets of a query that are to be covered
            chosen = select_diverse(best[0], nothing, alike, diversify=options.diversify, top_k=options.top_k)
            columns, best = columns[:, chosen], best[:, chosen]
        return [
            RankedCandidate(
                table.ids[rows[column]],
                table.names[rows[column]],
                float(score),
                float(scores.facets[0, column]),
                float(scores.documents[0, column]),
                self._evidence(state, kind, paper, int(rows[column]), options),
            )
            for column, score in zip(columns[0], best[0], strict=True)
        ]

    def _evidence(
        self, state: EngineState, kind: CandidateKind, paper: PaperFacets, row: int, options: PaperOptions
    ) -> CandidateEvidence | None:
        """Why a candidate suits a single paper; None unless asked for."""
        if not options.evidence:
            return None
        return self._evidence_finder.evidence(
            state.tables[kind], state.bank, row, facets_KD=paper.scaled(kind)[0], document_W=paper.documents[0]
        )

    def _scores(
        self,
        state: EngineState,
        kind: CandidateKind,
        papers: PaperFacets,
        options: PaperOptions,
        rows: NDArray[np.int64],
    ) -> HybridScores:
        table = state.tables[kind]
        return hybrid_scores(
            papers.scaled(kind),
            papers.documents,
            table,
            state.bank,
            facet_weight=self._facet_weight(kind, options),
            document_mode=self.model.settings.document_modes[kind],
            rows_C=None if len(rows) == table.num_rows else rows,
        )

    def _facet_weight(self, kind: CandidateKind, options: PaperOptions) -> float:
        return self.model.settings.facet_weights[kind] if options.facet_weight is None else options.facet_weight


def _wanted(options: PaperOptions) -> int:
    if not options.diversify:
        return options.top_k
    return max(DIVERSITY_POOL, DIVERSITY_POOL_FOR_EACH * options.top_k)
