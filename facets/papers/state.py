"""What is known of papers at one moment: the trained tables with all that was added since, put together from the start.

Shape letters: J candidates, P pairs, A added papers, D dimensions, W of documents.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facets.papers.added import AddedPapers
from facets.papers.candidate_index import CandidateIndex
from facets.papers.candidates import CandidateTable, PaperBank, build_table
from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.records import year_of_id
from facets.papers.store import AddedVector
from facets.papers.trained import TrainedLookup

__all__ = ["Candidates", "EngineState", "StateBuilder", "citing_name", "citing_year"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of a kind: ``J`` distinct ids, ``J`` names, vectors ``[J, D]``."""

    ids: Sequence[str]
    names: Sequence[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EngineState:
    """Tables, papers and indexes at one moment; a call works on one state from beginning to end.

    Attributes:
        bank: The papers.
        tables: By kind.
        indexes: By kind, of large tables; they know the first rows of the table.
    """

    bank: PaperBank
    tables: dict[CandidateKind, CandidateTable]
    indexes: dict[CandidateKind, CandidateIndex] = field(repr=False)

    def index(self, kind: CandidateKind) -> CandidateIndex | None:
        """The index of a large table; None: compare everything."""
        return self.indexes.get(kind)


class StateBuilder:
    """Puts the trained tables and what was added together, all of it anew.

    Args:
        model: The model.
        trained: Its papers.
        min_indexed: Tables of fewer candidates get no index.
    """

    def __init__(self, model: PaperEncoder, trained: TrainedLookup, *, min_indexed: int) -> None:
        self._model = model
        self._trained = trained
        self._min_indexed = min_indexed
        self._trained_documents = model.trained_documents()

    def trained_candidates(self, vectors: Iterable[AddedVector]) -> dict[CandidateKind, Candidates]:
        """Candidates of the training and those with a vector of their own, which takes a trained one's place."""
        own: dict[CandidateKind, dict[str, AddedVector]] = {kind: {} for kind in CandidateKind}
        for vector in vectors:
            own[vector.kind][vector.id] = vector
        return {kind: self._candidates(kind, own[kind]) for kind in CandidateKind}

    def build(
        self, added: AddedPapers, candidates: Mapping[CandidateKind, Candidates], documents_AW: NDArray[np.float32]
    ) -> EngineState:
        """The state with all additions.

        Args:
            added: The added papers.
            candidates: By kind.
            documents_AW: Of the added papers, in their order.
        """
        bank = self._bank(list(added.papers.values()), documents_AW)
        row_of = {paper_id: row for row, paper_id in enumerate(bank.ids)}  # an added version wins
        tables = {kind: self._table(kind, added, candidates[kind], bank, row_of) for kind in CandidateKind}
        indexes = {kind: CandidateIndex(table) for kind, table in tables.items() if len(table) >= self._min_indexed}
        return EngineState(bank, tables, indexes)

    def _candidates(self, kind: CandidateKind, own: Mapping[str, AddedVector]) -> Candidates:
        trained, column_of = self._model.papers, self._trained.column_of[kind]
        vectors_JD = self._model.tables.vectors[kind].copy()
        known = [vector for key, vector in own.items() if key in column_of]
        new = [vector for key, vector in own.items() if key not in column_of]
        names = list(trained.column_names[kind])
        for vector in known:
            names[column_of[vector.id]] = vector.name or names[column_of[vector.id]]
        if known:
            vectors_JD[[column_of[vector.id] for vector in known]] = np.stack([vector.vector for vector in known])
        if new:
            vectors_JD = np.concatenate([vectors_JD, np.stack([vector.vector for vector in new])])
        ids = [*trained.column_ids[kind], *(vector.id for vector in new)]
        return Candidates(ids, [*names, *(vector.name for vector in new)], vectors_JD)

    def _bank(self, added: list[Paper], documents_AW: NDArray[np.float32]) -> PaperBank:
        trained = self._model.papers
        years = np.array([paper.year or 0 for paper in added], dtype=np.int32)
        return PaperBank(
            [*trained.ids, *(paper.id for paper in added)],
            [*trained.titles, *(paper.title for paper in added)],
            np.concatenate([trained.years, years]),
            np.concatenate([self._trained_documents, documents_AW]),
        )

    def _table(
        self,
        kind: CandidateKind,
        added: AddedPapers,
        candidates: Candidates,
        bank: PaperBank,
        row_of: Mapping[str, int],
    ) -> CandidateTable:
        ids, names, own_years = candidates.ids, candidates.names, None
        if kind is CandidateKind.CITATIONS:
            names = [citing_name(key, name, added.papers) for key, name in zip(ids, names, strict=True)]
            own_years = np.array([citing_year(key, bank, row_of) for key in ids], dtype=np.int32)
        pairs = self._pairs(kind, added, ids, row_of)
        return build_table(ids, names, candidates.vectors, pairs_P2=pairs, bank=bank, own_years=own_years)

    def _pairs(
        self, kind: CandidateKind, added: AddedPapers, ids: Sequence[str], row_of: Mapping[str, int]
    ) -> NDArray[np.int64]:
        """Papers and candidates; the pairs of a trained paper that was added again are those of the new version."""
        replaced = [self._trained.row_of[paper_id] for paper_id in added.papers if paper_id in self._trained.row_of]
        place_of = {key: place for place, key in enumerate(ids)}
        trained_ids, pairs = self._model.papers.column_ids[kind], self._model.papers.pairs[kind]
        places = np.array([place_of[key] for key in trained_ids], dtype=np.int64)
        pairs = np.stack([pairs[:, 0], places[pairs[:, 1]]], axis=1)[~np.isin(pairs[:, 0], replaced)]
        changed = [key for key in added.candidates(kind) if key in place_of]
        new = [(row_of[paper_id], place_of[key]) for key in changed for paper_id in added.papers_of(kind, key)]
        return np.unique(np.concatenate([pairs, np.array(new, dtype=np.int64)]), axis=0) if new else pairs


def citing_name(key: str, name: str, papers: Mapping[str, Paper]) -> str:
    """The title of a citing paper, once it was added; else the name that it had."""
    return papers[key].title if key in papers else name


def citing_year(key: str, bank: PaperBank, row_of: Mapping[str, int]) -> int:
    """The year of a citing paper, 0 when unknown."""
    return (int(bank.years[row_of[key]]) if key in row_of else 0) or year_of_id(key) or 0
