"""Papers and authors added at run time: checked, fitted, stored, then shown to readers.

Shape letters: N papers, K facets, D dimensions.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats
from facets.errors import NotFoundError, StorageError
from facets.language.interruption import check_interrupted, interrupted_by
from facets.language.tokenizer import grouped
from facets.papers.model import PaperModel
from facets.papers.records import (
    AddResult,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    check_added_papers,
    check_new_authors,
)
from facets.papers.store import Added, AddedVector, AdditionStore
from facets.papers.tables import EngineState, Members, PaperBank
from facets.storage.records import NO_NEWS, News, RecordFollower
from facets.storage.sql import SqlDatabase

logger = logging.getLogger(__name__)

_MAX_FITTED_PAPERS = 128  # a vector is fitted to at most this many of a candidate's latest papers
_PAPERS_AT_A_TIME = 4096  # encoded together: about 20 MB with the shipped model
_FIT_STEPS = 8

Pairs = Collection[tuple[str, str]]  # of author and paper id
Sentences = Mapping[str, Floats]  # sentence vectors by paper id, each followed by the passage vector


class Additions(RecordFollower[AdditionStore]):
    """The additions to a model: one writer at a time; readers take ``state`` and never wait.

    ``place``: folder of the additions, or a database shared by several servers; None: nothing can be added.
    """

    _state: EngineState
    _given: dict[str, set[str]]  # by paper, the authors it was given to
    _foreign = ""  # model revision with which another server has taken over the additions

    def __init__(self, model: PaperModel, place: Path | SqlDatabase | None) -> None:
        super().__init__(None if place is None else AdditionStore(place, model.name))
        self._model = model
        lengths = {kind: np.linalg.norm(model.tables.vectors[kind][:], axis=1) for kind in CandidateKind}
        self._lengths = {kind: float(np.median(own)) if len(own) else 1.0 for kind, own in lengths.items()}
        news = NO_NEWS if self.store is None else self.store.news()
        self.take(news)
        self.seen = news.writes

    @property
    def state(self) -> EngineState:
        """The latest state."""
        self.follow()
        return self._state

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """See ``PaperEngine.add_papers``."""
        store = self._writable()
        check_added_papers(papers)
        with self._adding(store):
            known = self._state.row_of_paper.keys() | {paper.id for paper in papers}
            unknown = {key for paper in papers for key in paper.cited_by_ids} - known
            num_authors, num_citing = self._add(store, papers, {}, ())
        return AddResult(len(papers), num_authors, num_citing, tuple(sorted(unknown)))

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """See ``PaperEngine.add_authors``."""
        store = self._writable()
        check_new_authors(authors)
        papers: dict[str, Paper] = {}
        given: set[tuple[str, str]] = set()
        for new in authors:
            for paper in new.papers:
                # A paper without an id belongs only to this author.
                paper_id = paper.id or f"{new.author.key}/{paper.title}"
                papers[paper_id] = paper if paper.id else Paper(paper.title, paper.abstract, paper_id, year=paper.year)
                given.add((new.author.key, paper_id))
            given.update((new.author.key, paper_id) for paper_id in new.paper_ids)
        names = {new.author.key: new.author.name for new in authors}
        with self._adding(store):
            for place, new in enumerate(authors):
                for number, paper_id in enumerate(new.paper_ids):
                    if paper_id not in self._state.row_of_paper:
                        message = f"authors[{place}].paper_ids[{number}] is no known paper: {paper_id!r}"
                        raise NotFoundError(message, resource_type="paper", resource_name=paper_id)
            num_authors, num_citing = self._add(store, list(papers.values()), names, given)
        return AddResult(sum(len(new.papers) for new in authors), num_authors, num_citing)

    def take(self, news: News) -> None:
        """Applies writes to the store, of this server or another."""
        with interrupted_by(lambda: None):  # a caller that gives up must not keep these additions from later callers
            stored = Added.of(news)
            if news.is_all:
                self._load(stored)
            elif stored.revision != self._model.revision:
                self._foreign = stored.revision
                logger.error("another server added to %s with its revision %s", self._model.name, self._foreign)
            else:
                papers = list(stored.papers.values())
                grown, members = self._grown(self._state, papers, stored.sentences, stored.given)
                self._show(grown.with_candidates(members, stored.vectors, papers), stored.given)

    @contextmanager
    def _adding(self, store: AdditionStore) -> Iterator[None]:
        """Excludes other writers and applies their additions first."""
        with self.lock, store.alone(check_interrupted):
            self.follow(now=True)
            if self._foreign:
                raise StorageError(
                    f"another server has taken over the additions with revision {self._foreign} of {self._model.name}; "
                    f"this server has revision {self._model.revision} and can add nothing: give it the same model"
                )
            yield

    def _add(
        self, store: AdditionStore, papers: Sequence[Paper], names: Mapping[str, str], given: Pairs
    ) -> tuple[int, int]:
        """Fits, stores and shows an addition; returns the numbers of fitted authors and citing papers.

        ``names`` of authors by id take precedence over those in papers.
        """
        names = {**{author.key: author.name for paper in papers for author in paper.authors if author.name}, **names}
        sentences = self._sentences(papers)
        grown, members = self._grown(self._state, papers, sentences, given)
        vectors = self._fitted(members, grown, {(CandidateKind.AUTHORS, key): name for key, name in names.items()})
        state = grown.with_candidates(members, vectors, papers)
        self.seen = store.add(self._model.revision, papers, vectors, sentences, given, after=self.seen)
        self._show(state, given)
        num_authors = sum(vector.kind is CandidateKind.AUTHORS for vector in vectors)
        return num_authors, len(vectors) - num_authors

    def _grown(
        self, state: EngineState, papers: Sequence[Paper], sentences: Sentences, given: Pairs
    ) -> tuple[EngineState, Members]:
        """The state with more papers, and the candidates to change."""
        grown = state.with_papers(papers, *self._paper_vectors(papers, sentences)) if papers else state
        given = {*given, *((author, paper.id) for paper in papers for author in self._given.get(paper.id, ()))}
        return grown, state.changed_members(grown, papers, given)

    def _fitted(
        self, members: Members, state: EngineState, names: Mapping[tuple[CandidateKind, str], str]
    ) -> list[AddedVector]:
        """Vectors of the candidates that have papers; a candidate without a new name keeps its own."""
        vectors = []
        for kind, table in state.tables.items():
            spread_DD, length = self._model.tables.spreads[kind], self._lengths[kind]
            papers = ((key, rows[-_MAX_FITTED_PAPERS:]) for key, rows in members[kind].items() if rows)
            for group in grouped(papers, _PAPERS_AT_A_TIME, size=lambda pair: len(pair[1])):
                encoded = sorted({row for _, rows in group for row in rows})
                facets_NKD = self._encoded(encoded, state.bank).scaled(kind)
                for key, rows in group:
                    check_interrupted()
                    own_NKD = facets_NKD[np.searchsorted(encoded, rows)]
                    known = table.names[table.row_of_id[key]] if key in table.row_of_id else ""
                    vector_D = fit_vector(own_NKD, length=length, spread_DD=spread_DD)
                    vectors.append(AddedVector(kind, key, names.get((kind, key)) or known, vector_D))
        return vectors

    def _encoded(self, rows: Sequence[int], bank: PaperBank) -> PaperFacets:
        trained = self._model.papers
        added = [row for row in rows if row >= len(trained.ids)]
        read = iter(self._model.paper_rows([bank.titles[row] for row in added], [bank.abstracts[row] for row in added]))
        return self._model.encode_papers(
            [trained.words_of(row) if row < len(trained.ids) else next(read) for row in rows]
        )

    def _show(self, state: EngineState, given: Pairs) -> None:
        for author, paper_id in given:
            self._given[paper_id].add(author)
        self._state = state

    def _load(self, stored: Added) -> None:
        """Builds the state from the model and the store; computes all vectors again for another model revision."""
        trained = EngineState.trained(self._model)
        self._given, self._foreign = defaultdict(set), ""
        papers, vectors = list(stored.papers.values()), stored.vectors
        sentences: Sentences = stored.sentences
        is_stale = stored.revision != self._model.revision and bool(papers or vectors)
        if is_stale:
            logger.info("%s has a new revision: making the vectors of %d papers again", self._model.name, len(papers))
            sentences = self._sentences(papers)
        grown, members = self._grown(trained, papers, sentences, stored.given)
        if is_stale:
            for vector in vectors:
                members[vector.kind].setdefault(vector.id, trained.papers_of(vector.kind, vector.id))
            vectors = self._fitted(members, grown, {(vector.kind, vector.id): vector.name for vector in vectors})
            self._writable().add(self._model.revision, (), vectors, sentences)
        self._show(grown.with_candidates(members, vectors, papers), stored.given)

    def _sentences(self, papers: Sequence[Paper]) -> Sentences:
        """Sentence and passage vectors by paper id; empty for a model without them."""
        texts = [paper.title for paper in papers], [paper.abstract for paper in papers]
        vectors = np.concatenate([self._model.sentence_vectors(*texts), self._model.passage_vectors(*texts)], axis=1)
        return {paper.id: row for paper, row in zip(papers, vectors, strict=True)} if vectors.shape[1] else {}

    def _paper_vectors(self, papers: Sequence[Paper], sentences: Sentences) -> tuple[Floats, Floats, NDArray[np.void]]:
        """Documents ``[A, W]``, passages ``[A, E]`` and words ``[A, M]`` of papers with the given vectors."""
        rows = self._model.paper_rows([paper.title for paper in papers], [paper.abstract for paper in papers])
        width = self._model.sentence_vectors([], []).shape[1]
        total = width + self._model.passage_vectors([], []).shape[1]
        vectors = np.array([sentences[paper.id] if total else () for paper in papers], dtype=np.float32)
        own, passages = np.split(vectors.reshape(len(papers), total), [width], axis=1)
        return self._model.document_vectors(rows, own), passages, self._model.weighted_words(rows)

    def _writable(self) -> AdditionStore:
        if self.store is None:
            raise StorageError("nothing can be added: the papers were opened without a data directory")
        return self.store


def fit_vector(papers_NKD: Floats, *, length: float, spread_DD: Floats) -> Floats:
    """Vector of a new author or citing paper, by the same rule as in training.

    Maximises ``sum_n max_k a . p_nk`` over all vectors a of the given length (Chang 2022, eq. 3.12, for one column and
    facets that are spread evenly). Alternates between choosing the best facet of each paper and scaling the sum of the
    chosen facets to that length, until the choice stays the same. ``spread_DD`` is applied last, see ``PaperTables``.
    """
    # The first choice: the facets nearest to the sum of all facets.
    vector_D = papers_NKD.sum(axis=(0, 1), dtype=np.float64)
    chosen_N = np.full(len(papers_NKD), -1)
    for _ in range(_FIT_STEPS):
        best_N = (papers_NKD @ vector_D).argmax(axis=1)
        if (best_N == chosen_N).all():
            break
        chosen_N = best_N
        vector_D = papers_NKD[np.arange(len(papers_NKD)), chosen_N].sum(axis=0, dtype=np.float64)
    vector_D = spread_DD @ vector_D
    norm = float(np.linalg.norm(vector_D))
    return (vector_D * (length / norm) if norm > 0 else vector_D).astype(np.float32)
