"""What is known of papers at one moment: the trained tables with all that was added since.

Shape letters: J candidates, P pairs, N papers, D dimensions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from facets.papers.candidate_index import CandidateIndex
from facets.papers.candidates import CandidateTable, PaperBank, build_table
from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.records import year_of_id
from facets.papers.store import AddedVector

__all__ = ["Added", "EngineState", "StateBuilder", "candidates_of"]


@dataclass(frozen=True, slots=True)
class Added:
    """Everything added since the training; never changed, only replaced.

    Attributes:
        papers: By id.
        memberships: By kind, candidate and paper: papers of a candidate beyond those that name it.
        vectors: By kind and id of the candidate.
    """

    papers: Mapping[str, Paper] = field(default_factory=dict)
    memberships: Mapping[CandidateKind, frozenset[tuple[str, str]]] = field(
        default_factory=lambda: {kind: frozenset[tuple[str, str]]() for kind in CandidateKind}
    )
    vectors: Mapping[CandidateKind, Mapping[str, AddedVector]] = field(
        default_factory=lambda: {kind: dict[str, AddedVector]() for kind in CandidateKind}
    )

    def with_papers(self, papers: Iterable[Paper]) -> "Added":
        """With these papers too; one of a known id takes the old one's place."""
        return replace(self, papers={**self.papers, **{paper.id: paper for paper in papers}})

    def with_memberships(self, kind: CandidateKind, pairs: Iterable[tuple[str, str]]) -> "Added":
        """With these candidates and papers too."""
        return replace(self, memberships={**self.memberships, kind: self.memberships[kind] | frozenset(pairs)})

    def with_vectors(self, vectors: Iterable[AddedVector]) -> "Added":
        """With these vectors; one of a known candidate takes the old one's place."""
        merged = {kind: dict(own) for kind, own in self.vectors.items()}
        for vector in vectors:
            merged[vector.kind][vector.id] = vector
        return replace(self, vectors=merged)

    def members(self, kind: CandidateKind, keys: Iterable[str]) -> dict[str, list[str]]:
        """Papers of each candidate: added ones in the order of addition, then those given by id."""
        result: dict[str, list[str]] = {key: [] for key in keys}
        for paper in self.papers.values():
            for paper_kind, key, _ in candidates_of(paper):
                if paper_kind is kind and key in result and paper.id not in result[key]:
                    result[key].append(paper.id)
        for key, paper_id in sorted(self.memberships[kind]):
            if key in result and paper_id not in result[key]:
                result[key].append(paper_id)
        return result


@dataclass(frozen=True, slots=True)
class EngineState:
    """Tables, papers and indexes at one moment; a call works on one state from beginning to end."""

    bank: PaperBank
    tables: dict[CandidateKind, CandidateTable]
    indexes: dict[CandidateKind, CandidateIndex] = field(repr=False)

    def index(self, kind: CandidateKind) -> CandidateIndex | None:
        """The index of a large table; None: compare everything."""
        return self.indexes.get(kind)


class StateBuilder:
    """Puts the trained tables and what was added together.

    Args:
        model: The model.
        min_indexed: Tables of fewer candidates get no index.

    Attributes:
        trained_rows: Row of each trained paper, by id.
    """

    def __init__(self, model: PaperEncoder, *, min_indexed: int) -> None:
        self._model = model
        self._min_indexed = min_indexed
        trained = model.papers
        self.trained_rows = {paper_id: row for row, paper_id in enumerate(trained.ids)}
        self._trained_averages = model.word_averages_of(trained.rows, trained.offsets[:-1])

    def build(self, added: Added, previous: EngineState | None = None) -> EngineState:
        """The state with all additions; indexes of the previous one are kept where what they hold is the same."""
        bank = self._bank(list(added.papers.values()))
        row_of = {paper_id: row for row, paper_id in enumerate(bank.ids)}  # an added version wins
        tables, indexes = {}, {}
        for kind in CandidateKind:
            tables[kind] = self._table(kind, added, bank, row_of)
            kept = previous.index(kind) if previous is not None else None
            if previous is not None and kept is not None and _are_same(tables[kind], previous.tables[kind]):
                indexes[kind] = kept
            elif len(tables[kind]) >= self._min_indexed:
                indexes[kind] = CandidateIndex(tables[kind])
        return EngineState(bank, tables, indexes)

    def _bank(self, added: list[Paper]) -> PaperBank:
        trained = self._model.papers
        averages, years = self._trained_averages, trained.years
        if added:
            rows = self._model.paper_rows([paper.title for paper in added], [paper.abstract for paper in added])
            averages = np.concatenate([averages, self._model.word_averages(rows)])
            years = np.concatenate([years, np.array([paper.year or 0 for paper in added], dtype=np.int32)])
        ids = [*trained.ids, *(paper.id for paper in added)]
        return PaperBank(ids, [*trained.titles, *(paper.title for paper in added)], years, averages)

    def _table(self, kind: CandidateKind, added: Added, bank: PaperBank, row_of: Mapping[str, int]) -> CandidateTable:
        trained = self._model.papers
        ids, names = list(trained.column_ids[kind]), list(trained.column_names[kind])
        column_of = {key: column for column, key in enumerate(ids)}
        vectors = self._model.tables.vectors[kind].copy()
        new_vectors = []
        for key, vector in added.vectors[kind].items():
            if key in column_of:
                vectors[column_of[key]] = vector.vector
            else:
                column_of[key] = len(ids)
                ids.append(key)
                names.append(vector.name)
                new_vectors.append(vector.vector)
        if new_vectors:
            vectors = np.concatenate([vectors, np.stack(new_vectors)])
        pairs = self._pairs(kind, added, column_of, row_of)
        return build_table(
            ids, names, vectors, pairs_P2=pairs, bank=bank, own_years=self._own_years(kind, ids, bank, row_of)
        )

    def _pairs(
        self, kind: CandidateKind, added: Added, column_of: Mapping[str, int], row_of: Mapping[str, int]
    ) -> NDArray[np.int64]:
        """Papers and candidates; the pairs of a trained paper that was added again are those of the new version."""
        replaced = [self.trained_rows[paper_id] for paper_id in added.papers if paper_id in self.trained_rows]
        pairs = self._model.papers.pairs[kind]
        pairs = pairs[~np.isin(pairs[:, 0], replaced)]
        members = added.members(kind, column_of)
        new = [(row_of[paper_id], column_of[key]) for key, own in members.items() for paper_id in own]
        return np.unique(np.concatenate([pairs, np.array(new, dtype=np.int64)]), axis=0) if new else pairs

    def _own_years(
        self, kind: CandidateKind, ids: list[str], bank: PaperBank, row_of: Mapping[str, int]
    ) -> NDArray[np.int32] | None:
        """Years of citing papers; authors have those of their papers."""
        if kind is not CandidateKind.CITATIONS:
            return None
        known = [int(bank.years[row_of[key]]) if key in row_of else 0 for key in ids]
        return np.array([year or year_of_id(key) or 0 for year, key in zip(known, ids, strict=True)], np.int32)


def _are_same(table: CandidateTable, other: CandidateTable) -> bool:
    """Whether an index of either finds the same; means differ in the last bits with the papers averaged beside."""
    if table.vectors.shape != other.vectors.shape:
        return False
    return np.array_equal(table.vectors, other.vectors) and np.allclose(table.means, other.means, atol=1e-6)


def candidates_of(paper: Paper) -> list[tuple[CandidateKind, str, str]]:
    """Kind, id and name of everybody whom a paper names."""
    authors = [(CandidateKind.AUTHORS, author.key, author.name) for author in paper.authors]
    return authors + [(CandidateKind.CITATIONS, key, "") for key in paper.cited_by]
