"""What is known of papers: the trained tables, and papers and authors added since, fitted without retraining.

Shape letters: J candidates, P pairs, N papers, K facets, D dimensions.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError, StorageError
from facets.papers.candidate_index import CandidateIndex
from facets.papers.candidates import CandidateTable, PaperBank, build_table
from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind, NewAuthor, Paper, check_papers
from facets.papers.records import year_of_id
from facets.papers.results import AddResult
from facets.papers.scoring import fit_vector
from facets.papers.store import AddedVector, AdditionStore

__all__ = ["Additions", "EngineState"]

# Smaller tables are compared whole.
_MIN_INDEXED = 20_000
# A vector is fitted to at most so many papers, the latest ones.
_MAX_FITTED_PAPERS = 128

_Pair = tuple[str, str]  # candidate, paper


@dataclass(frozen=True, slots=True)
class EngineState:
    """Tables, papers and indexes at one moment; a call works on one state from beginning to end."""

    bank: PaperBank
    tables: dict[CandidateKind, CandidateTable]
    indexes: dict[CandidateKind, CandidateIndex] = field(repr=False)

    def index(self, kind: CandidateKind) -> CandidateIndex | None:
        """The index of a large table; None: compare everything."""
        return self.indexes.get(kind)


class Additions:
    """The library of a model and its additions; one writer at a time, readers never wait.

    Args:
        model: The model.
        data_dir: Folder of the additions; None: nothing can be added.

    Raises:
        StorageError: The folder cannot be opened, or belongs to another model.
    """

    def __init__(self, model: PaperEncoder, data_dir: Path | None) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._store = None if data_dir is None else AdditionStore(data_dir, model.name)
        trained = model.papers
        self._trained_rows = {paper_id: row for row, paper_id in enumerate(trained.ids)}
        self._trained_averages = model.word_averages_of(trained.rows, trained.offsets[:-1])
        self._papers: dict[str, Paper] = {}
        self._memberships: dict[CandidateKind, set[_Pair]] = {kind: set() for kind in CandidateKind}
        self._vectors: dict[CandidateKind, dict[str, AddedVector]] = {kind: {} for kind in CandidateKind}
        if self._store is not None:
            self._read(self._store)
        self.state = self._build(None)

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
            known = self._papers | {paper.id: paper for paper in papers}
            affected: dict[CandidateKind, dict[str, str]] = {kind: {} for kind in CandidateKind}
            for paper in papers:
                # Those of an earlier version of the paper too: they lose it.
                for version in (self._papers.get(paper.id), paper):
                    for kind, key, name in _candidates_of(version) if version else ():
                        affected[kind][key] = name or affected[kind].get(key, "")
            unknown = sorted(
                {key for p in papers for key in p.cited_by if key not in known and key not in self._trained_rows}
            )
            vectors = self._fitted(affected, known, self._memberships)
            store.write(revision=self._model.revision, papers=papers, vectors=vectors)
            self._take(known, self._memberships, vectors)
        num_authors = sum(vector.kind is CandidateKind.AUTHORS for vector in vectors)
        return AddResult(len(papers), num_authors, len(vectors) - num_authors, tuple(unknown))

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """See ``PaperEngine.add_authors``."""
        store = self._writable()
        papers = self._check_authors(authors)
        with self._lock:
            known = dict(self._papers)
            given: set[_Pair] = set()
            for place, new in enumerate(authors):
                for number, paper_id in enumerate(new.paper_ids):
                    if paper_id not in known and paper_id not in self._trained_rows:
                        raise NotFoundError(
                            f"authors[{place}].paper_ids[{number}] is no known paper: {paper_id!r}",
                            resource_type="paper",
                            resource_name=paper_id,
                        )
                    given.add((new.author.key, paper_id))
            for new, own in zip(authors, papers, strict=True):
                known |= {paper.id: paper for paper in own}
                given |= {(new.author.key, paper.id) for paper in own}
            memberships = {
                CandidateKind.AUTHORS: self._memberships[CandidateKind.AUTHORS] | given,
                CandidateKind.CITATIONS: self._memberships[CandidateKind.CITATIONS],
            }
            affected: dict[CandidateKind, dict[str, str]] = {
                CandidateKind.AUTHORS: {new.author.key: new.author.name for new in authors},
                CandidateKind.CITATIONS: {},
            }
            added = [paper for own in papers for paper in own]
            vectors = self._fitted(affected, known, memberships)
            store.write(
                revision=self._model.revision,
                papers=added,
                vectors=vectors,
                memberships=[(CandidateKind.AUTHORS, key, paper) for key, paper in sorted(given)],
            )
            self._take(known, memberships, vectors)
        return AddResult(len(added), len(vectors), 0)

    def _check_authors(self, authors: Sequence[NewAuthor]) -> list[list[Paper]]:
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

    def _writable(self) -> AdditionStore:
        if self._store is None:
            raise StorageError("nothing can be added: the papers were opened without a data directory")
        return self._store

    def _read(self, store: AdditionStore) -> None:
        self._papers = {paper.id: paper for paper in store.papers()}
        for kind, key, paper in store.memberships():
            self._memberships[kind].add((key, paper))
        vectors = store.vectors()
        if vectors and store.revision() != self._model.revision:
            # Another version of the model: its space is another one, so everything is fitted again.
            affected: dict[CandidateKind, dict[str, str]] = {kind: {} for kind in CandidateKind}
            for vector in vectors:
                affected[vector.kind][vector.id] = vector.name
            vectors = self._fitted(affected, self._papers, self._memberships)
            store.write(revision=self._model.revision, vectors=vectors)
        for vector in vectors:
            self._vectors[vector.kind][vector.id] = vector

    def _take(
        self,
        papers: dict[str, Paper],
        memberships: dict[CandidateKind, set[_Pair]],
        vectors: Sequence[AddedVector],
    ) -> None:
        self._papers, self._memberships = papers, memberships
        for vector in vectors:
            self._vectors[vector.kind][vector.id] = vector
        self.state = self._build(self.state)

    def _fitted(
        self,
        affected: dict[CandidateKind, dict[str, str]],
        papers: dict[str, Paper],
        memberships: dict[CandidateKind, set[_Pair]],
    ) -> list[AddedVector]:
        """New vectors of the affected candidates from all of their papers, trained and added."""
        members = {kind: _members(kind, set(keys), papers, memberships[kind]) for kind, keys in affected.items()}
        trained = {kind: self._trained_members(kind, members[kind], papers) for kind in affected}
        ids = sorted({paper for kind in affected for own in members[kind].values() for paper in own})
        ids += sorted({paper for kind in affected for own in trained[kind].values() for paper in own} - set(ids))
        if not ids:
            return []
        place = {paper_id: number for number, paper_id in enumerate(ids)}
        encoded = self._model.encode_papers([self._rows_of(paper_id, papers) for paper_id in ids])
        result = []
        # All trained vectors have one length.
        trained_vectors = self._model.tables.vectors
        lengths = {kind: _length(trained_vectors[kind]) for kind in affected}
        for kind, keys in affected.items():
            is_author = kind is CandidateKind.AUTHORS
            magnitudes = encoded.author_magnitudes if is_author else encoded.citation_magnitudes
            names = dict(zip(self._model.papers.column_ids[kind], self._model.papers.column_names[kind], strict=True))
            for key in sorted(keys):
                own = (trained[kind].get(key, []) + members[kind].get(key, []))[-_MAX_FITTED_PAPERS:]
                if not own:
                    continue
                rows = [place[paper_id] for paper_id in own]
                facets = encoded.facets[rows] * magnitudes[rows][:, :, None]
                vector = fit_vector(facets, length=lengths[kind], spread_DD=self._model.tables.spreads[kind])
                name = keys[key] if is_author else (papers[key].title if key in papers else "")
                result.append(AddedVector(kind, key, name or names.get(key, ""), vector))
        return result

    def _trained_members(
        self, kind: CandidateKind, members: dict[str, list[str]], papers: dict[str, Paper]
    ) -> dict[str, list[str]]:
        """Trained papers of the candidates, less those that were added again since."""
        column_of = {key: column for column, key in enumerate(self._model.papers.column_ids[kind])}
        pairs = self._model.papers.pairs[kind]
        result = {}
        for key, own in members.items():
            if key in column_of:
                rows = pairs[pairs[:, 1] == column_of[key], 0]
                ids = [self._model.papers.ids[row] for row in rows]
                result[key] = [paper_id for paper_id in ids if paper_id not in papers and paper_id not in own]
        return result

    def _rows_of(self, paper_id: str, papers: dict[str, Paper]) -> NDArray[np.uint16]:
        if paper_id in papers:
            return self._model.paper_rows([papers[paper_id].title], [papers[paper_id].abstract])[0]
        row = self._trained_rows[paper_id]
        offsets = self._model.papers.offsets
        return self._model.papers.rows[offsets[row] : offsets[row + 1]]

    def _build(self, previous: EngineState | None) -> EngineState:
        trained = self._model.papers
        added = list(self._papers.values())
        rows = self._model.paper_rows([p.title for p in added], [p.abstract for p in added]) if added else []
        averages = self._trained_averages
        if added:
            averages = np.concatenate([averages, self._model.word_averages(rows)])
        ids = [*trained.ids, *(paper.id for paper in added)]
        years = np.concatenate([trained.years, np.array([paper.year or 0 for paper in added], dtype=np.int32)])
        bank = PaperBank(ids, [*trained.titles, *(paper.title for paper in added)], years, averages)
        row_of = {paper_id: row for row, paper_id in enumerate(ids)}  # an added version wins
        replaced = np.array(
            sorted(self._trained_rows[p.id] for p in added if p.id in self._trained_rows), dtype=np.int64
        )
        tables, indexes = {}, {}
        for kind in CandidateKind:
            tables[kind] = self._table(kind, bank, row_of, replaced)
            unchanged = previous is not None and not self._vectors[kind]
            if unchanged and previous is not None and kind in previous.indexes:
                indexes[kind] = previous.indexes[kind]
            elif len(tables[kind]) >= _MIN_INDEXED:
                indexes[kind] = CandidateIndex(tables[kind])
        return EngineState(bank, tables, indexes)

    def _table(
        self, kind: CandidateKind, bank: PaperBank, row_of: dict[str, int], replaced: NDArray[np.int64]
    ) -> CandidateTable:
        trained = self._model.papers
        ids, names = list(trained.column_ids[kind]), list(trained.column_names[kind])
        column_of = {key: column for column, key in enumerate(ids)}
        vectors = self._model.tables.vectors[kind].copy()
        new_vectors = []
        for key, vector in self._vectors[kind].items():
            if key in column_of:
                vectors[column_of[key]] = vector.vector
            else:
                column_of[key] = len(ids)
                ids.append(key)
                names.append(vector.name)
                new_vectors.append(vector.vector)
        if new_vectors:
            vectors = np.concatenate([vectors, np.stack(new_vectors)])
        pairs = trained.pairs[kind]
        pairs = pairs[~np.isin(pairs[:, 0], replaced)]
        members = _members(kind, set(column_of), self._papers, self._memberships[kind])
        added = [(row_of[paper], column_of[key]) for key, own in members.items() for paper in own]
        if added:
            pairs = np.unique(np.concatenate([pairs, np.array(added, dtype=np.int64)]), axis=0)
        own_years = None
        if kind is CandidateKind.CITATIONS:
            known = [int(bank.years[row_of[key]]) if key in row_of else 0 for key in ids]
            own_years = np.array([year or year_of_id(key) or 0 for year, key in zip(known, ids, strict=True)], np.int32)
        return build_table(ids, names, vectors, pairs, bank, own_years)


def _length(vectors: NDArray[np.float32]) -> float:
    return float(np.median(np.linalg.norm(vectors, axis=1))) if len(vectors) else 1.0


def _candidates_of(paper: Paper) -> list[tuple[CandidateKind, str, str]]:
    authors = [(CandidateKind.AUTHORS, author.key, author.name) for author in paper.authors]
    return authors + [(CandidateKind.CITATIONS, key, "") for key in paper.cited_by]


def _members(
    kind: CandidateKind, keys: set[str], papers: dict[str, Paper], memberships: set[_Pair]
) -> dict[str, list[str]]:
    """Added papers (and trained ones given by id) of each key, in the order of addition."""
    result: dict[str, list[str]] = {key: [] for key in keys}
    for paper in papers.values():
        for paper_kind, key, _ in _candidates_of(paper):
            if paper_kind is kind and key in keys and paper.id not in result[key]:
                result[key].append(paper.id)
    for key, paper_id in sorted(memberships):
        if key in keys and paper_id not in result[key]:
            result[key].append(paper_id)
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
