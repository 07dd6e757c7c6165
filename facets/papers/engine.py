"""Who would write and who would cite a paper, from its title and abstract alone (Chang 2022, section 3.4).

Shape letters: N papers, J candidates, C chosen candidates, K facets, D dimensions, W of word averages.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.model.loading import load
from facets.papers.additions import Additions, EngineState
from facets.papers.candidates import CandidateTable
from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind, NewAuthor, Paper, PaperOptions, check_papers
from facets.papers.model import PaperModel
from facets.papers.ranking import HybridScores, best_columns, example_scores, hybrid_scores
from facets.papers.results import AddResult, BulkCandidates, Evidence, PaperFacets, RankedCandidate, RankedPaper
from facets.words.vectors import unit_rows

__all__ = ["PaperEngine"]

# Scores computed at a time, papers times candidates: 64 MiB an array.
_SCORES_AT_A_TIME = 16_000_000
# More papers than this are compared with every candidate: one matrix product beats as many searches.
_MAX_SEARCHES = 8
_NEAREST_WORDS = 8
_NEAREST_PAPERS = 3


class PaperEngine:
    """A model of papers with its authors and citing papers, and those added since; may be shared by threads.

    The model folder is never written. What is added goes to ``data_dir`` (one SQLite file) and is durable
    before the call returns; an engine opened on the same folder later has it again.
    """

    def __init__(self, model: object, *, data_dir: Path | None = None) -> None:
        """Takes a model that ``facets.load`` returned.

        Args:
            model: Its ``task`` is ``papers``.
            data_dir: Folder for additions, made when absent; None: additions are refused.

        Raises:
            InvalidInputError: The model's task is another one.
            StorageError: The folder cannot be opened, or belongs to another model.
        """
        task = getattr(model, "task", None)
        if task != "papers" or not isinstance(model, PaperEncoder):
            raise InvalidInputError(f"must be one for the task 'papers', got one for {task!r}", path="model")
        self.model = model
        self._additions = Additions(model, data_dir)

    @classmethod
    def load(cls, name_or_path: str | Path | None = None, *, data_dir: Path | None = None, device: str = "cpu") -> Self:
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
        """Tables, papers and indexes as they are now."""
        return self._additions.state

    def size(self, kind: CandidateKind) -> int:
        """How many authors or citing papers are known."""
        return len(self._additions.state.tables[kind])

    def find(self, kind: CandidateKind, text: str, *, top_k: int = 10) -> list[tuple[str, str]]:
        """Candidates whose id or name is like a text, best first: ``(id, name)``; for "did you mean"."""
        return self._additions.state.tables[kind].find(text, top_k)

    def encode(self, papers: Sequence[Paper]) -> PaperFacets:
        """Facets, magnitudes and word averages of papers, in order.

        Raises:
            InvalidInputError: A paper has no title (``field`` is ``papers[3].title``).
        """
        check_papers(papers)
        rows = self.model.paper_rows([paper.title for paper in papers], [paper.abstract for paper in papers])
        arrays = self.model.encode_papers(rows)
        return PaperFacets(arrays.facets, arrays.author_magnitudes, arrays.citation_magnitudes, arrays.averages)

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
        self,
        kind: CandidateKind,
        papers: Sequence[Paper] | PaperFacets,
        options: PaperOptions | None = None,
    ) -> BulkCandidates:
        """``recommend_authors`` or ``recommend_citations`` as arrays, for thousands of papers; no evidence."""
        options = options or PaperOptions()
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        state = self._additions.state
        table = state.tables[kind]
        allowed = _without(np.arange(len(table)), self._allowed_mask(table, options), np.empty(0, dtype=np.int64))
        excluded = [] if isinstance(papers, PaperFacets) else [table.rows(paper.excluded) for paper in papers]
        width = min(options.top_k, len(allowed))
        rows = np.full((len(encoded), width), -1, dtype=np.int64)
        scores = np.full((len(encoded), width), -np.inf, dtype=np.float32)
        examples = self._example_scores(table, options)
        step = max(1, _SCORES_AT_A_TIME // max(1, len(allowed)))
        for first in range(0, len(encoded) if width else 0, step):
            part = slice(first, first + step)
            total = self._scores(state, kind, encoded.part(part), options, allowed).total
            if examples is not None:
                total += examples[allowed]
            for place, own in enumerate(excluded[part]):
                total[place, np.isin(allowed, own)] = -np.inf
            columns, scores[part] = best_columns(total, table.id_ranks[allowed], width)
            rows[part] = np.where(columns >= 0, allowed[columns], -1)
        return BulkCandidates(table.ids, rows, scores)

    def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        papers: Sequence[Paper] | PaperFacets,
        options: PaperOptions | None = None,
    ) -> list[list[RankedPaper]]:
        """Ranks papers for each author or citing paper of ``ids``.

        Args:
            kind: What the ids are.
            ids: Authors (id, else name) or citing papers.
            papers: The papers to rank; a collection that is asked often is encoded once by ``encode``.
            options: ``exclude``, ``candidates``, ``positive`` and ``negative`` are ids of ``papers`` here, and the
                years bound their ``year``; encoded papers have neither id nor year, so all of these must be empty.

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
        columns = np.array([self._row_of(kind, table, key) for key in ids], dtype=np.int64)
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        allowed, bonus = _allowed_papers(papers, encoded, options)
        if not len(allowed) or not len(columns):
            return [[] for _ in columns]
        chosen = encoded.part(allowed)
        scores = self._scores(state, kind, chosen, options, columns)
        total = scores.total + bonus[allowed, None]
        best, best_scores = best_columns(np.ascontiguousarray(total.T), np.arange(len(allowed)), options.top_k)
        scaled = chosen.scaled(kind)
        result = []
        for place, column in enumerate(columns):
            ranked = []
            for row, score in zip(best[place], best_scores[place], strict=True):
                evidence = None
                if options.evidence:
                    evidence = self._evidence(state, table, scaled[row], chosen.documents[row], int(column))
                paper = int(allowed[row])
                ranked.append(
                    RankedPaper(
                        paper,
                        "" if isinstance(papers, PaperFacets) else papers[paper].id,
                        float(score),
                        float(scores.facets[row, place]),
                        float(scores.documents[row, place]),
                        evidence,
                    )
                )
            result.append(ranked)
        return result

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """Stores papers and fits the vectors of their authors and citing papers, new and known, without retraining.

        A paper of a known id is replaced. ``cited_by`` entries that are no known paper become citing papers
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
        table, index = state.tables[kind], state.index(kind)
        examples = self._example_scores(table, options)
        mask = self._allowed_mask(table, options)
        searchable = (
            index is not None and examples is None and options.candidates is None and len(encoded) <= _MAX_SEARCHES
        )
        result = []
        for number in range(len(encoded)):
            one = encoded.part(slice(number, number + 1))
            own = () if isinstance(papers, PaperFacets) else papers[number].excluded
            excluded = table.rows(own)
            rows = np.empty(0, dtype=np.int64)
            if searchable and index is not None:
                weight = self._facet_weight(kind, options)
                rows = index.search(one.scaled(kind)[0], one.documents[0], weight, 2 * options.top_k + len(excluded))
                rows = _without(rows, mask, excluded)
            if len(rows) < options.top_k:  # a small table, a strict filter, or a far-off paper: compare all
                rows = _without(np.arange(len(table)), mask, excluded)
            result.append(self._best_of(state, kind, one, rows, options, examples))
        return result

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
        columns, best = best_columns(total, table.id_ranks[rows], options.top_k)
        scaled = paper.scaled(kind)[0]
        return [
            RankedCandidate(
                table.ids[rows[column]],
                table.names[rows[column]],
                float(score),
                float(scores.facets[0, column]),
                float(scores.documents[0, column]),
                self._evidence(state, table, scaled, paper.documents[0], int(rows[column]))
                if options.evidence
                else None,
            )
            for column, score in zip(columns[0], best[0], strict=True)
        ]

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
            rows_C=None if len(rows) == len(table) else rows,
        )

    def _facet_weight(self, kind: CandidateKind, options: PaperOptions) -> float:
        return self.model.settings.facet_weights[kind] if options.facet_weight is None else options.facet_weight

    def _allowed_mask(self, table: CandidateTable, options: PaperOptions) -> NDArray[np.bool_] | None:
        """``[J]``: what candidates, exclusions and years leave; None: everything."""
        years = options.from_year is not None or options.to_year is not None
        if options.candidates is None and not options.exclude and not years:
            return None
        mask = np.ones(len(table), dtype=np.bool_)
        if options.candidates is not None:
            mask[:] = False
            mask[table.rows(options.candidates)] = True
        mask[table.rows(options.exclude)] = False
        if years:
            mask &= table.year_mask(options.from_year, options.to_year)
        return mask

    def _example_scores(self, table: CandidateTable, options: PaperOptions) -> NDArray[np.float32] | None:
        if not options.positive and not options.negative:
            return None
        for name in ("positive", "negative"):
            for place, key in enumerate(getattr(options, name)):
                if not len(table.rows([key])):
                    raise InvalidInputError(f"is no known id: {key!r}", path=(name, place))
        return example_scores(table, table.rows(options.positive), table.rows(options.negative), options.example_weight)

    def _row_of(self, kind: CandidateKind, table: CandidateTable, key: str) -> int:
        rows = table.rows([key])
        if len(rows) == 1:
            return int(rows[0])
        resource = "author" if kind is CandidateKind.AUTHORS else "citing_paper"
        thing = resource.replace("_", " ")
        if len(rows):
            ids = ", ".join(repr(table.ids[row]) for row in rows[:5])
            message = f"{thing} {key!r} is the name of several, expected one of the ids {ids}"
        else:
            near = ", ".join(repr(found) for found, _ in table.find(key, 5)) or "nobody with such a name"
            message = f"no {thing} {key!r}; nearest: {near}"
        raise NotFoundError(message, resource_type=resource, resource_name=key)

    @cached_property
    def _word_facets(self) -> NDArray[np.float32]:
        """Unit word vectors in the space of the facets (H of eq. B.4), ``[V, D]``; zero for stop words."""
        facets = unit_rows(self.model.words_as_facets())
        facets[self.model.words.vocabulary.is_stop[:-1]] = 0.0
        return facets

    def _evidence(
        self,
        state: EngineState,
        table: CandidateTable,
        facets_KD: NDArray[np.float32],
        average_W: NDArray[np.float32],
        row: int,
    ) -> Evidence:
        facet = int((facets_KD @ table.vectors[row]).argmax())
        words = self.model.words.vocabulary.words
        cosines = self._word_facets @ unit_rows(facets_KD[facet : facet + 1])[0]
        best = np.argsort(-cosines, kind="stable")[:_NEAREST_WORDS]
        bank = state.bank
        papers = table.papers_of(row)
        likeness = bank.averages[papers] @ average_W
        nearest = np.argsort(-likeness, kind="stable")[:_NEAREST_PAPERS]
        return Evidence(
            facet,
            tuple((words[word], float(cosines[word])) for word in best),
            tuple((bank.ids[papers[n]], bank.titles[papers[n]], float(likeness[n])) for n in nearest),
        )


def _without(rows: NDArray[np.int64], mask: NDArray[np.bool_] | None, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that a mask allows and that are not excluded."""
    if mask is not None:
        rows = rows[mask[rows]]
    return rows[~np.isin(rows, excluded)] if len(excluded) else rows


def _allowed_papers(
    papers: Sequence[Paper] | PaperFacets, encoded: PaperFacets, options: PaperOptions
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Places of the papers left by the options, and what examples add to each paper."""
    bonus = np.zeros(len(encoded), dtype=np.float32)
    filtered = options.candidates is not None or options.exclude or options.positive or options.negative
    if isinstance(papers, PaperFacets):
        if filtered or options.from_year is not None or options.to_year is not None:
            raise InvalidInputError("encoded papers have no ids and years to filter by, expected none of the filters")
        return np.arange(len(encoded)), bonus
    places = {paper.id: place for place, paper in enumerate(papers) if paper.id}
    if len(places) != sum(bool(paper.id) for paper in papers):
        raise InvalidInputError("must have distinct ids, got one twice", path="papers")
    for name, sign in (("positive", 1.0), ("negative", -1.0)):
        ids = getattr(options, name)
        unknown = [key for key in ids if key not in places]
        if unknown:
            raise InvalidInputError(f"must be ids of the papers, got {unknown[0]!r}", path=name)
        if ids:
            examples = encoded.documents[[places[key] for key in ids]]
            bonus += np.float32(sign * options.example_weight) * (encoded.documents @ examples.T).max(axis=1)
    excluded = set(options.exclude)
    wanted = None if options.candidates is None else set(options.candidates)
    from_year, to_year = options.from_year, options.to_year
    allowed = [
        place
        for place, paper in enumerate(papers)
        if not (paper.id and paper.id in excluded)
        and (wanted is None or paper.id in wanted)
        and (from_year is None or (paper.year is not None and paper.year >= from_year))
        and (to_year is None or (paper.year is not None and paper.year <= to_year))
    ]
    return np.array(allowed, dtype=np.int64), bonus
