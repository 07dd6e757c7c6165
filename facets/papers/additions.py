"""Papers and authors added at run time: checked, fitted, stored, and then part of the state."""

import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from facets.errors import InvalidInputError, NotFoundError, StorageError
from facets.papers.contract import PaperEncoder
from facets.papers.fitting import Affected, VectorFitter
from facets.papers.inputs import CandidateKind, NewAuthor, Paper, check_papers
from facets.papers.results import AddResult
from facets.papers.state import Added, StateBuilder, candidates_of
from facets.papers.store import AdditionStore

__all__ = ["Additions"]


class Additions:
    """The additions to a model; one writer at a time, readers never wait.

    Args:
        model: The model.
        data_dir: Folder of the additions; None: nothing can be added.
        min_indexed: Tables of fewer candidates are compared whole.

    Attributes:
        state: What is known now.

    Raises:
        StorageError: The folder cannot be opened, or belongs to another model.
    """

    def __init__(self, model: PaperEncoder, data_dir: Path | None, *, min_indexed: int) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._builder = StateBuilder(model, min_indexed=min_indexed)
        self._fitter = VectorFitter(model, self._builder.trained_rows)
        self._store = None if data_dir is None else AdditionStore(data_dir, model.name)
        self._added = Added() if self._store is None else self._read(self._store)
        self.state = self._builder.build(self._added)

    def close(self) -> None:
        """Closes the file."""
        if self._store is not None:
            self._store.close()

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """See ``PaperEngine.add_papers``."""
        store = self._writable()
        check_papers(papers)
        _check_ids(papers)
        with self._lock:
            affected: dict[CandidateKind, dict[str, str]] = {kind: {} for kind in CandidateKind}
            for paper in papers:
                # Those of an earlier version of the paper too: they lose it.
                for version in (self._added.papers.get(paper.id), paper):
                    for kind, key, name in candidates_of(version) if version else ():
                        affected[kind][key] = name or affected[kind].get(key, "")
            added = self._added.with_papers(papers)
            unknown = sorted({key for paper in papers for key in paper.cited_by if not self._is_known(key, added)})
            result = self._add(store, added, affected, papers=papers)
        return AddResult(len(papers), *result, unknown_citations=tuple(unknown))

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """See ``PaperEngine.add_authors``."""
        store = self._writable()
        own = _papers_of_authors(authors)
        papers = [paper for of_one in own for paper in of_one]
        with self._lock:
            for place, new in enumerate(authors):
                for number, paper_id in enumerate(new.paper_ids):
                    if not self._is_known(paper_id, self._added):
                        raise NotFoundError(
                            f"authors[{place}].paper_ids[{number}] is no known paper: {paper_id!r}",
                            resource_type="paper",
                            resource_name=paper_id,
                        )
            given = {
                (new.author.key, paper_id)
                for new, of_one in zip(authors, own, strict=True)
                for paper_id in (*new.paper_ids, *(paper.id for paper in of_one))
            }
            added = self._added.with_papers(papers).with_memberships(CandidateKind.AUTHORS, given)
            affected = {CandidateKind.AUTHORS: {new.author.key: new.author.name for new in authors}}
            result = self._add(store, added, affected, papers=papers, memberships=given)
        return AddResult(len(papers), *result)

    def _add(
        self,
        store: AdditionStore,
        added: Added,
        affected: Affected,
        *,
        papers: Sequence[Paper],
        memberships: AbstractSet[tuple[str, str]] = frozenset(),
    ) -> tuple[int, int]:
        """Fits, stores and shows; how many vectors of authors and of citing papers there were."""
        vectors = self._fitter.fit(affected, added)
        store.write(
            revision=self._model.revision,
            papers=papers,
            vectors=vectors,
            memberships=[(CandidateKind.AUTHORS, key, paper_id) for key, paper_id in sorted(memberships)],
        )
        self._added = added.with_vectors(vectors)
        self.state = self._builder.build(self._added, self.state)
        num_authors = sum(vector.kind is CandidateKind.AUTHORS for vector in vectors)
        return num_authors, len(vectors) - num_authors

    def _is_known(self, paper_id: str, added: Added) -> bool:
        return paper_id in added.papers or paper_id in self._builder.trained_rows

    def _writable(self) -> AdditionStore:
        if self._store is None:
            raise StorageError("nothing can be added: the papers were opened without a data directory")
        return self._store

    def _read(self, store: AdditionStore) -> Added:
        added = Added().with_papers(store.papers())
        memberships = store.memberships()
        for kind in CandidateKind:
            added = added.with_memberships(kind, ((key, paper) for own, key, paper in memberships if own is kind))
        vectors = store.vectors()
        if vectors and store.revision() != self._model.revision:
            # Another version of the model: its space is another one, so everything is fitted again.
            affected: dict[CandidateKind, dict[str, str]] = {kind: {} for kind in CandidateKind}
            for vector in vectors:
                affected[vector.kind][vector.id] = vector.name
            vectors = self._fitter.fit(affected, added)
            store.write(revision=self._model.revision, vectors=vectors)
        return added.with_vectors(vectors)


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
