"""Papers and authors added at run time: checked, fitted, stored, then added to the state that readers see."""

import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import NotFoundError, StorageError
from facets.language.interruption import check_interrupted, interrupted_by
from facets.papers.fitting import VectorFitter
from facets.papers.membership import AddedPapers, TrainedLookup, affected_candidates
from facets.papers.model import PaperModel
from facets.papers.records import AddResult, CandidateKind, NewAuthor, Paper, check_added_papers, check_new_authors
from facets.papers.store import Added, AddedVector, AdditionStore
from facets.papers.tables import EngineState, StateGrowth, trained_state
from facets.storage.records import NO_NEWS, News, RecordFollower
from facets.storage.sql import SqlDatabase

logger = logging.getLogger(__name__)

_ENCODED_AT_A_TIME = 1024
# The state is rebuilt once at least this many rows, and a quarter of all papers, have died since the last build.
_REBUILT_AFTER = 20_000

Vectors = Mapping[str, NDArray[np.float32]]


class Additions(RecordFollower[AdditionStore]):
    """The additions to a model: one writer at a time; readers take ``state`` and never wait.

    ``place``: folder of the additions, or a database shared by several servers; None: nothing can be added.

    Raises:
        StorageError: The store cannot be opened, or belongs to another model.
    """

    _state: EngineState | None = None
    _added: AddedPapers
    _growth: StateGrowth
    _num_dead = 0  # dead rows when the state was last built
    _is_behind = False  # whether the store holds something that `_state` does not show
    _foreign = ""  # model revision with which another server has taken over the additions

    def __init__(self, model: PaperModel, place: Path | SqlDatabase | None) -> None:
        super().__init__(None if place is None else AdditionStore(place, model.name))
        self._model = model
        self._trained = TrainedLookup(model.papers)
        self._fitter = VectorFitter(model, self._trained)
        with self.lock:
            self.follow(now=True)
            if self._state is None:
                self.take(NO_NEWS)

    @property
    def state(self) -> EngineState:
        """The latest state."""
        self.follow()
        assert self._state is not None
        return self._state

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """See ``PaperEngine.add_papers``."""
        store = self._writable()
        check_added_papers(papers)
        with self._adding(store):
            added = self._added.extended({paper.id: paper for paper in papers})
            cited_by = {key for paper in papers for key in paper.cited_by_ids}
            unknown = sorted(key for key in cited_by if not added.is_known(key))
            num_authors, num_citing = self._add(store, added, papers)
        return AddResult(len(papers), num_authors, num_citing, tuple(unknown))

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
                    if not self._added.is_known(paper_id):
                        raise NotFoundError(
                            f"authors[{place}].paper_ids[{number}] is no known paper: {paper_id!r}",
                            resource_type="paper",
                            resource_name=paper_id,
                        )
            added = self._added.extended(papers, given)
            num_authors, num_citing = self._add(store, added, list(papers.values()), names=names, given=given)
        return AddResult(sum(len(new.papers) for new in authors), num_authors, num_citing)

    def take(self, news: News) -> None:
        """Applies what was written to the store, by this server or another."""
        with interrupted_by(lambda: None):  # a caller that gives up must not keep these additions from later callers
            stored = Added.of(news)
            if news.is_all or self._is_behind:
                self._load(stored if news.is_all else self._writable().content())
            elif stored.revision != self._model.revision:
                self._foreign = stored.revision
                logger.error("another server added to %s with its revision %s", self._model.name, self._foreign)
            else:
                added = self._added.extended(stored.papers, stored.given)
                documents = self._documents(list(stored.papers.values()), stored.sentences)
                self._is_behind = True
                self._show(added, list(stored.papers.values()), documents, stored.vectors, stored.given)

    @contextmanager
    def _adding(self, store: AdditionStore) -> Iterator[None]:
        """Excludes other writers and applies their additions first."""
        with self.lock, store.alone(check_interrupted):
            if self._is_behind:
                self.seen = 0
            self.follow(now=True)
            if self._foreign:
                raise StorageError(
                    f"another server has taken over the additions with revision {self._foreign} of {self._model.name}; "
                    f"this server has revision {self._model.revision} and can add nothing: give it the same model"
                )
            yield

    def _add(
        self,
        store: AdditionStore,
        added: AddedPapers,
        papers: Sequence[Paper],
        *,
        names: Mapping[str, str] | None = None,
        given: Set[tuple[str, str]] = frozenset(),
    ) -> tuple[int, int]:
        """Fits and stores an addition and makes it visible.

        Args:
            store: Where to store it.
            added: All added papers, including these.
            papers: The added papers.
            names: Names of authors by id; they take precedence over names in papers.
            given: Pairs of author id and paper id.

        Returns:
            Numbers of fitted authors and citing papers.
        """
        state = self._state
        assert state is not None
        author_names: dict[str, str] = {}
        for author in (author for paper in papers for author in paper.authors):
            author_names[author.key] = author.name or author_names.get(author.key, "")
        author_names |= names or {}

        def name_of(kind: CandidateKind, key: str) -> str:
            if kind is CandidateKind.CITATIONS and key in added.papers:
                return added.papers[key].title
            table = state.tables[kind]
            known = table.names[table.row_of_id[key]] if key in table.row_of_id else ""
            return (author_names.get(key) if kind is CandidateKind.AUTHORS else None) or known

        ids = [paper.id for paper in papers]
        affected = affected_candidates(self._added, added, ids, {author for author, _ in given})
        vectors = self._fitter.fit(affected, added, changed=ids, name=name_of)
        sentences = self._sentences(papers)
        documents = self._documents(papers, sentences)
        self.seen = store.add(
            revision=self._model.revision,
            papers=papers,
            vectors=vectors,
            sentences=sentences,
            given=given,
            after=self.seen,
        )
        self._is_behind = True  # until the addition is shown
        with interrupted_by(lambda: None):  # a stored addition is shown even if its caller has gone
            self._show(added, papers, documents, vectors, given)
        num_authors = sum(vector.kind is CandidateKind.AUTHORS for vector in vectors)
        return num_authors, len(vectors) - num_authors

    def _show(
        self,
        added: AddedPapers,
        papers: Sequence[Paper],
        documents_AW: NDArray[np.float32],
        vectors: Sequence[AddedVector],
        given: Set[tuple[str, str]],
    ) -> None:
        """Replaces the state with one that includes an addition."""
        assert self._state is not None
        given_to = {author for author, _ in given}
        affected = affected_candidates(self._added, added, [paper.id for paper in papers], given_to)
        state = self._growth.grown(self._state, papers, documents_AW, affected=affected, vectors=vectors, added=added)
        self._state, self._added = state, added
        self._is_behind = False
        if rebuild_is_due(state, self._num_dead):
            self._load(self._writable().content())

    def _load(self, stored: Added) -> None:
        """Builds the state from the model and everything in the store."""
        self._added, self._foreign = AddedPapers(self._trained).extended(stored.papers, stored.given), ""
        vectors, sentences = self._current_vectors(stored)
        papers = list(self._added.papers.values())
        state = trained_state(self._model)
        self._growth = StateGrowth(state)
        if papers or vectors:
            before = AddedPapers(self._trained)
            affected = affected_candidates(before, self._added, self._added.papers, self._added.given_authors())
            affected = {kind: [v.id for v in vectors if v.kind is kind] + affected[kind] for kind in CandidateKind}
            documents = self._documents(papers, sentences)
            state = self._growth.grown(state, papers, documents, affected=affected, vectors=vectors, added=self._added)
        self._state, self._num_dead = state, state.num_dead
        self._is_behind = False

    def _current_vectors(self, stored: Added) -> tuple[Sequence[AddedVector], Vectors]:
        """Vectors of candidates, and sentence vectors of papers by id.

        All are recomputed when the model's revision has changed, because their spaces have changed.
        """
        papers = list(self._added.papers.values())
        if stored.revision == self._model.revision or not (papers or stored.vectors):
            return stored.vectors, stored.sentences
        logger.info("%s has a new revision: making the vectors of %d papers again", self._model.name, len(papers))
        sentences = self._sentences(papers)
        names = {(vector.kind, vector.id): vector.name for vector in stored.vectors}
        keys: dict[CandidateKind, list[str]] = {kind: [] for kind in CandidateKind}
        for kind, key in names:
            keys[kind].append(key)
        fitted = self._fitter.fit(keys, self._added, name=lambda kind, key: names[kind, key])
        self._writable().add(revision=self._model.revision, vectors=fitted, sentences=sentences)
        return fitted, sentences

    def _sentences(self, papers: Sequence[Paper]) -> dict[str, NDArray[np.float32]]:
        """Sentence vectors by paper id; empty for a model without them."""
        vectors = self._model.sentence_vectors([paper.title for paper in papers], [paper.abstract for paper in papers])
        return {paper.id: row for paper, row in zip(papers, vectors, strict=True)} if vectors.shape[1] else {}

    def _documents(self, papers: Sequence[Paper], sentences: Vectors) -> NDArray[np.float32]:
        """Documents ``[A, W]`` of papers with the given sentence vectors."""
        no_sentences = self._model.sentence_vectors([], [])
        parts = [self._model.document_vectors([], no_sentences)]
        for first in range(0, len(papers), _ENCODED_AT_A_TIME):
            part = papers[first : first + _ENCODED_AT_A_TIME]
            rows = self._model.paper_rows([paper.title for paper in part], [paper.abstract for paper in part])
            vectors = np.zeros((len(part), no_sentences.shape[1]), dtype=np.float32)
            if vectors.size:
                vectors[:] = [sentences[paper.id] for paper in part]
            parts.append(self._model.document_vectors(rows, vectors))
        return np.concatenate(parts)

    def _writable(self) -> AdditionStore:
        if self.store is None:
            raise StorageError("nothing can be added: the papers were opened without a data directory")
        return self.store


def rebuild_is_due(state: EngineState, num_dead: int) -> bool:
    """Whether a state has many more dead rows than it had when it was last built, ``num_dead``."""
    return state.num_dead - num_dead > max(_REBUILT_AFTER, len(state.bank.ids) // 4)
