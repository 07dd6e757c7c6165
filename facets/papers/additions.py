"""Papers and authors added at run time: checked, fitted, stored, and then part of the state."""

import logging
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError, StorageError
from facets.language.interruption import check_interrupted, interrupted_by
from facets.papers.fitting import VectorFitter
from facets.papers.model import PaperModel
from facets.papers.records import AddResult, CandidateKind, NewAuthor, Paper, check_papers
from facets.papers.state import BankGrowth, EngineState, StateBuilder, TableGrowth, live_candidates
from facets.papers.store import Added, AddedPapers, AddedVector, AdditionStore, Change
from facets.papers.trained import TrainedLookup
from facets.storage import NO_NEWS, News, RecordFollower, SqlDatabase

logger = logging.getLogger(__name__)

_ENCODED_AT_A_TIME = 1024


class Additions(RecordFollower[AdditionStore]):
    """The additions to a model; one writer at a time, readers never wait.

    A reader takes ``state`` and keeps to it; a writer puts the next one in its place when that is complete.

    ``place``: folder of the additions, or the database that servers share; None: nothing can be added.
    ``rebuilt_after``: see ``PaperEngine``.

    Raises:
        StorageError: The store cannot be opened, or belongs to another model.
    """

    _state: EngineState | None = None
    _is_behind = False  # something is stored that could not be shown
    _foreign = ""  # version of the model whose additions another server has written

    def __init__(self, model: PaperModel, place: Path | SqlDatabase | None, *, rebuilt_after: int) -> None:
        super().__init__(None if place is None else AdditionStore(place, model.name))
        self._model = model
        self._rebuilt_after = rebuilt_after
        self._trained = TrainedLookup(model.papers)
        self._builder = StateBuilder(model, self._trained)
        self._fitter = VectorFitter(model, self._trained)
        with self.lock:
            self.follow(now=True)
            if self._state is None:
                self.take(NO_NEWS)

    @property
    def state(self) -> EngineState:
        """What is known now."""
        self.follow()
        assert self._state is not None
        return self._state

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """See ``PaperEngine.add_papers``."""
        store = self._writable()
        check_papers(papers)
        _check_ids(papers)
        change = Change({paper.id: paper for paper in papers})
        with self._adding(store):
            named = {key: None for paper in papers for key in paper.cited_by_ids}
            unknown = sorted(key for key in named if not self._is_known(key) and key not in change.papers)
            result = self._add(store, change)
        return AddResult(len(papers), *result, unknown_citations=tuple(unknown))

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """See ``PaperEngine.add_authors``."""
        store = self._writable()
        own = _papers_of_authors(authors)
        papers = [paper for of_one in own for paper in of_one]
        given = {
            (new.author.key, paper_id)
            for new, of_one in zip(authors, own, strict=True)
            for paper_id in (*new.paper_ids, *(paper.id for paper in of_one))
        }
        change = Change({paper.id: paper for paper in papers}, frozenset(given))
        with self._adding(store):
            for place, new in enumerate(authors):
                for number, paper_id in enumerate(new.paper_ids):
                    if not self._is_known(paper_id):
                        raise NotFoundError(
                            f"authors[{place}].paper_ids[{number}] is no known paper: {paper_id!r}",
                            resource_type="paper",
                            resource_name=paper_id,
                        )
            result = self._add(store, change, {new.author.key: new.author.name for new in authors})
        return AddResult(len(papers), *result)

    @contextmanager
    def _adding(self, store: AdditionStore) -> Iterator[None]:
        """Nobody else adds, and everything that was added is known."""
        with self.lock, store.alone(check_interrupted):
            if self._is_behind:
                self.seen = 0
            self.follow(now=True)
            if self._foreign:
                raise StorageError(
                    f"{self._model.name} of version {self._foreign} has taken over the additions on another server: "
                    "nothing is added by this one any more; give it the same version"
                )
            yield

    def _add(self, store: AdditionStore, change: Change, names: dict[str, str] | None = None) -> tuple[int, int]:
        """Fits, stores and shows; how many vectors of authors and of citing papers there were."""
        names = _author_names(change.papers.values()) | (names or {})

        def name(kind: CandidateKind, key: str) -> str:
            if kind is CandidateKind.CITATIONS:
                cited = change.papers.get(key) or self._added.papers.get(key)
                return cited.title if cited else self._name(kind, key)
            return names.get(key) or self._name(kind, key)

        concerned = self._added.concerned(change)
        vectors = self._fitter.fit(concerned, self._added, change, name=name)
        papers = list(change.papers.values())
        sentences = self._sentences(papers)
        documents = self._documents(papers, sentences)
        self.seen = store.add(
            revision=self._model.revision,
            papers=papers,
            vectors=vectors,
            sentences=sentences,
            given=change.given,
            after=self.seen,
        )
        self._is_behind = True  # until all of it is shown
        with interrupted_by(lambda: None):  # what is stored is shown, also when its caller has gone
            self._added.apply(change)
            self._show(change, concerned, vectors, documents)
        self._is_behind = False
        num_authors = sum(vector.kind is CandidateKind.AUTHORS for vector in vectors)
        return num_authors, len(vectors) - num_authors

    def _show(
        self,
        change: Change,
        concerned: dict[CandidateKind, list[str]],
        vectors: Sequence[AddedVector],
        documents_AW: NDArray[np.float32],
    ) -> None:
        """Puts the next state in the place of this one."""
        state = self._state
        assert state is not None
        bank = self._bank_growth.grown(state.bank, list(change.papers.values()), documents_AW)
        new_rows = {paper_id: len(state.bank.ids) + place for place, paper_id in enumerate(change.papers)}
        # An added paper that cites others has a year and a title now.
        concerned[CandidateKind.CITATIONS] = list(dict.fromkeys([*concerned[CandidateKind.CITATIONS], *change.papers]))
        tables = {
            kind: self._table_growths[kind].grown(
                state.tables[kind],
                concerned[kind],
                vectors={vector.id: vector for vector in vectors if vector.kind is kind},
                added=self._added,
                bank=bank,
                row_of_paper=ChainMap(new_rows, self._row_of_paper),
            )
            for kind in CandidateKind
        }
        self._state = EngineState(bank, tables)
        self._row_of_paper.update(new_rows)
        if self._is_due(self._state):
            rows = [self._row_of_paper[paper_id] for paper_id in self._added.papers]
            self._put_together(self._builder.build(self._added, live_candidates(self._state), bank.documents[rows]))

    def _is_due(self, state: EngineState) -> bool:
        least = self._rebuilt_after
        return self._bank_growth.is_due(state.bank, len(self._row_of_paper), rebuilt_after=least) or any(
            growth.is_due(state.tables[kind], rebuilt_after=least) for kind, growth in self._table_growths.items()
        )

    def _put_together(self, state: EngineState) -> None:
        """Shows a state that was put together anew, from which the next ones grow."""
        self._row_of_paper = {paper_id: row for row, paper_id in enumerate(state.bank.ids)}
        self._bank_growth = BankGrowth(state.bank)
        self._table_growths = {kind: TableGrowth(kind, table) for kind, table in state.tables.items()}
        self._state = state

    def _sentences(self, papers: Sequence[Paper]) -> dict[str, NDArray[np.float32]]:
        """Sentence vectors by id; none where the model has none."""
        vectors = self._model.sentence_vectors([paper.title for paper in papers], [paper.abstract for paper in papers])
        return {paper.id: own for paper, own in zip(papers, vectors, strict=True)} if vectors.shape[1] else {}

    def _documents(self, papers: Sequence[Paper], sentences: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        none = self._model.sentence_vectors([], [])
        parts = [self._model.document_vectors([], none)]
        for first in range(0, len(papers), _ENCODED_AT_A_TIME):
            some = papers[first : first + _ENCODED_AT_A_TIME]
            rows = self._model.paper_rows([paper.title for paper in some], [paper.abstract for paper in some])
            own = np.zeros((len(some), none.shape[1]), dtype=np.float32)
            if own.size:
                own[:] = [sentences[paper.id] for paper in some]
            parts.append(self._model.document_vectors(rows, own))
        return np.concatenate(parts)

    def _name(self, kind: CandidateKind, key: str) -> str:
        table = self.state.tables[kind]
        return table.names[table.row_of_id[key]] if key in table.row_of_id else ""

    def _is_known(self, paper_id: str) -> bool:
        return paper_id in self._added.papers or paper_id in self._trained.row_of

    def _writable(self) -> AdditionStore:
        if self.store is None:
            raise StorageError("nothing can be added: the papers were opened without a data directory")
        return self.store

    @interrupted_by(lambda: None)  # a caller in a hurry must not keep all who come after him from what others added
    def take(self, news: News) -> None:
        """Has what was added by whichever server."""
        added = Added.of(news)
        if news.is_all or self._is_behind:
            self._put_all(added if news.is_all else self._writable().content())
            return
        if added.revision != self._model.revision:
            self._foreign = added.revision
            logger.error("%s has other additions on another server, of version %s", self._model.name, self._foreign)
            return
        change = Change(added.papers, frozenset(added.given))
        concerned = self._added.concerned(change)
        documents = self._documents(list(added.papers.values()), added.sentences)
        self._is_behind = True
        self._added.apply(change)
        self._show(change, concerned, added.vectors, documents)
        self._is_behind = False

    def _put_all(self, added: Added) -> None:
        """Puts together what the model and the store hold."""
        self._added, self._foreign = AddedPapers(self._trained), ""
        self._added.apply(Change(added.papers, frozenset(added.given)))
        vectors, sentences = self._vectors(added)
        documents = self._documents(list(self._added.papers.values()), sentences)
        self._put_together(self._builder.build(self._added, self._builder.trained_candidates(vectors), documents))
        self._is_behind = False

    def _vectors(self, added: Added) -> tuple[Sequence[AddedVector], Mapping[str, NDArray[np.float32]]]:
        """The vectors of candidates, and of papers by id.

        All are made again when the model is another version: its spaces are others.
        """
        vectors, papers = added.vectors, list(self._added.papers.values())
        if added.revision == self._model.revision or not (papers or vectors):
            return vectors, added.sentences
        logger.info("%s is another version: making the vectors of %d added papers again", self._model.name, len(papers))
        sentences = self._sentences(papers)
        names = {(vector.kind, vector.id): vector.name for vector in vectors}
        keys: dict[CandidateKind, list[str]] = {kind: [] for kind in CandidateKind}
        for kind, key in names:
            keys[kind].append(key)
        fitted = self._fitter.fit(keys, self._added, Change({}), name=lambda kind, key: names[kind, key])
        self._writable().add(revision=self._model.revision, vectors=fitted, sentences=sentences)
        return fitted, sentences


def _author_names(papers: Iterable[Paper]) -> dict[str, str]:
    """The last name that papers give each author; a name wins over none."""
    names: dict[str, str] = {}
    for paper in papers:
        for author in paper.authors:
            names[author.key] = author.name or names.get(author.key, "")
    return names


def _papers_of_authors(authors: Sequence[NewAuthor]) -> list[list[Paper]]:
    """The papers given with each author, each with an id."""
    seen: set[str] = set()
    result = []
    for place, new in enumerate(authors):
        where = ("authors", place)
        if not new.author.key:
            raise InvalidInputError("has neither id nor name, expected one", path=where)
        if new.author.key in seen:
            raise InvalidInputError(f"is given twice: {new.author.key!r}", path=where)
        seen.add(new.author.key)
        if not new.papers and not new.paper_ids:
            raise InvalidInputError("has no items, expected at least one", path=(*where, "papers"))
        check_papers(new.papers, (*where, "papers"))
        # A paper without an id belongs to this author alone.
        own = [
            paper
            if paper.id
            else Paper(paper.title, paper.abstract, f"{new.author.key}/{paper.title}", year=paper.year)
            for paper in new.papers
        ]
        result.append(own)
    return result


def _check_ids(papers: Sequence[Paper]) -> None:
    seen: set[str] = set()
    for place, paper in enumerate(papers):
        where = ("papers", place, "id")
        if not paper.id:
            raise InvalidInputError("is empty, expected an id", path=where)
        if paper.id in seen:
            raise InvalidInputError(f"is given twice: {paper.id!r}", path=where)
        seen.add(paper.id)
        for number, author in enumerate(paper.authors):
            if not author.key:
                raise InvalidInputError(
                    "has neither id nor name, expected one", path=("papers", place, "authors", number)
                )
