"""Papers and authors added at run time: checked, fitted, stored, then shown to readers."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import NotFoundError, StorageError
from facets.language.interruption import check_interrupted, interrupted_by
from facets.papers.fitting import VectorFitter
from facets.papers.model import PaperModel
from facets.papers.records import AddResult, CandidateKind, NewAuthor, Paper, check_added_papers, check_new_authors
from facets.papers.store import Added, AddedVector, AdditionStore
from facets.papers.tables import EngineState, GrowingRows, Members
from facets.storage.records import NO_NEWS, News, RecordFollower
from facets.storage.sql import SqlDatabase

logger = logging.getLogger(__name__)

Pairs = Collection[tuple[str, str]]  # of author and paper id
Sentences = Mapping[str, NDArray[np.float32]]  # sentence vectors by paper id, each followed by the passage vector


class Additions(RecordFollower[AdditionStore]):
    """The additions to a model: one writer at a time; readers take ``state`` and never wait.

    ``place``: folder of the additions, or a database shared by several servers; None: nothing can be added.
    """

    _state: EngineState
    _documents: GrowingRows  # those of `_state`
    _passages: GrowingRows  # likewise
    _words: GrowingRows
    _fitter: VectorFitter
    _given: dict[str, set[str]]  # by paper, the authors it was given to
    _foreign = ""  # model revision with which another server has taken over the additions

    def __init__(self, model: PaperModel, place: Path | SqlDatabase | None) -> None:
        super().__init__(None if place is None else AdditionStore(place, model.name))
        self._model = model
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
        documents, passages, words = self._paper_vectors(papers, sentences)
        documents_IW = self._documents.extended(len(state.bank.ids), documents)
        passages_AE = self._passages.extended(len(state.bank.passages), passages)
        words_AM = self._words.extended(len(state.bank.words), words)
        grown = state.with_papers(papers, documents_IW, passages_AE, words_AM)
        given = {*given, *((author, paper.id) for paper in papers for author in self._given.get(paper.id, ()))}
        return grown, state.changed_members(grown, papers, given)

    def _fitted(
        self, members: Members, state: EngineState, names: Mapping[tuple[CandidateKind, str], str]
    ) -> list[AddedVector]:
        """Vectors of the candidates that have papers; a candidate without a new name keeps its own."""
        vectors = []
        for kind, table in state.tables.items():
            for key, vector_D in self._fitter.fit(kind, members[kind], state.bank):
                known = table.names[table.row_of_id[key]] if key in table.row_of_id else ""
                vectors.append(AddedVector(kind, key, names.get((kind, key)) or known, vector_D))
        return vectors

    def _show(self, state: EngineState, given: Pairs) -> None:
        for author, paper_id in given:
            self._given[paper_id].add(author)
        self._state = state

    def _load(self, stored: Added) -> None:
        """Builds the state from the model and the store; computes all vectors again for another model revision."""
        trained = EngineState.trained(self._model)
        bank = trained.bank
        self._documents, self._passages = GrowingRows(bank.documents), GrowingRows(bank.passages)
        self._words = GrowingRows(bank.words)
        self._given, self._foreign = defaultdict(set), ""
        self._fitter = VectorFitter(self._model)
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

    def _paper_vectors(
        self, papers: Sequence[Paper], sentences: Sentences
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.void]]:
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
