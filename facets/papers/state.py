"""What is known of papers at one moment: put together from the start, or grown from the last one.

After an addition rows are written for whoever is concerned by it, and for nobody else. Once the rows written since the
tables were put together are many, they are put together anew, and rows that are no longer
live are gone. The work of that grows with the rows that called for it.
Shape letters: R rows that are written, J rows of a table or candidates, P pairs, A added papers, D dimensions,
W of documents.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, year_of_id
from facets.papers.store import AddedPapers, AddedVector
from facets.papers.tables import CandidateTable, GrowingArrays, PaperBank, build_table, labels_of, objects, years_of
from facets.papers.trained import TrainedLookup


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of a kind: ``J`` distinct ids, ``J`` names, vectors ``[J, D]``."""

    ids: Sequence[str]
    names: Sequence[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EngineState:
    """Tables and papers at one moment; a call works on one state from beginning to end."""

    bank: PaperBank  # the papers
    tables: dict[CandidateKind, CandidateTable]  # by kind


class StateBuilder:
    """Puts the trained tables and what was added together, all of it anew."""

    def __init__(self, model: PaperModel, trained: TrainedLookup) -> None:
        self._model = model
        self._trained = trained

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

        ``candidates``: by kind. ``documents_AW``: of the added papers, in their order.
        """
        bank = self._bank(list(added.papers.values()), documents_AW)
        row_of = {paper_id: row for row, paper_id in enumerate(bank.ids)}  # an added version wins
        tables = {kind: self._table(kind, added, candidates[kind], bank, row_of) for kind in CandidateKind}
        return EngineState(bank, tables)

    def _candidates(self, kind: CandidateKind, own: Mapping[str, AddedVector]) -> Candidates:
        trained, column_of = self._model.papers, self._trained.column_of[kind]
        vectors_JD = self._model.tables.vectors[kind]
        known = [vector for key, vector in own.items() if key in column_of]
        new = [vector for key, vector in own.items() if key not in column_of]
        names = list(trained.column_names[kind])
        for vector in known:
            names[column_of[vector.id]] = vector.name or names[column_of[vector.id]]
        if known:
            vectors_JD = vectors_JD.copy()
            vectors_JD[[column_of[vector.id] for vector in known]] = np.stack([vector.vector for vector in known])
        if new:
            vectors_JD = np.concatenate([vectors_JD, np.stack([vector.vector for vector in new])])
        ids = [*trained.column_ids[kind], *(vector.id for vector in new)]
        return Candidates(ids, [*names, *(vector.name for vector in new)], vectors_JD)

    def _bank(self, added: list[Paper], documents_AW: NDArray[np.float32]) -> PaperBank:
        trained = self._model.papers
        years = np.array([paper.year or 0 for paper in added], dtype=np.int32)
        documents_NW = self._model.trained_documents()
        return PaperBank(
            objects([*trained.ids, *(paper.id for paper in added)]),
            objects([*trained.titles, *(paper.title for paper in added)]),
            np.concatenate([trained.years, years]),
            np.concatenate([documents_NW, documents_AW]) if added else documents_NW,
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


# The arrays of a table that grow, each by rows of its own; ranks may be made anew.
_GROWING = ("ids", "names", "vectors", "first_years", "last_years", "papers", "starts", "label_ids")
# From so many new ids on, ranks are made anew for all instead of being found between their neighbours.
_MANY_IDS = 64


class BankGrowth:
    """The papers of one state and of those that follow from it.

    Args:
        bank: The papers of that state.
    """

    def __init__(self, bank: PaperBank) -> None:
        self._rows = GrowingArrays(ids=bank.ids, titles=bank.titles, years=bank.years, documents=bank.documents)
        self._first_rows = len(bank.ids)

    def is_due(self, bank: PaperBank, num_papers: int, *, rebuilt_after: int) -> bool:
        """Whether so many rows are of former versions that the papers should be put together anew."""
        return len(bank.ids) - num_papers > max(rebuilt_after, self._first_rows // 4)

    def grown(self, bank: PaperBank, papers: Sequence[Paper], documents_AW: NDArray[np.float32]) -> PaperBank:
        """With further papers behind the others, of known ids too."""
        rows = self._rows.extended(
            len(bank.ids),
            ids=objects([paper.id for paper in papers]),
            titles=objects([paper.title for paper in papers]),
            years=np.array([paper.year or 0 for paper in papers], dtype=np.int32),
            documents=documents_AW,
        )
        return PaperBank(**rows)


class TableGrowth:
    """The candidates of one state and of those that follow from it.

    ``table``: the table of that state.
    """

    def __init__(self, kind: CandidateKind, table: CandidateTable) -> None:
        self._kind = kind
        self._arrays = GrowingArrays(**{name: getattr(table, name) for name in _GROWING})
        self._ranks = GrowingArrays(id_ranks=table.id_ranks)
        self._sorted_ids = sorted(table.row_of_id)
        self._first_rows, self._first_pairs = table.num_rows, len(table.papers)

    def is_due(self, table: CandidateTable, *, rebuilt_after: int) -> bool:
        """Whether so much was written that the table should be put together anew."""
        few_rows = max(rebuilt_after // 16, self._first_rows // 8)
        few_pairs = max(rebuilt_after, self._first_pairs)
        return table.num_rows - len(table) > few_rows or len(table.papers) - self._first_pairs > few_pairs

    def grown(
        self,
        table: CandidateTable,
        keys: Iterable[str],
        *,
        vectors: Mapping[str, AddedVector],
        added: AddedPapers,
        bank: PaperBank,
        row_of_paper: Mapping[str, int],
    ) -> CandidateTable:
        """The table with new rows for some candidates.

        ``keys``: distinct ids of the candidates concerned; who is unknown and has no vector is left out. ``vectors``:
        new vectors by id; the others keep theirs.
        """
        chosen = [key for key in keys if key in vectors or key in table.row_of_id]
        if not chosen:
            return table
        old = {key: table.row_of_id[key] for key in chosen if key in table.row_of_id}
        names = [self._name(key, table, vectors, added) for key in chosen]
        papers = [sorted({row_of_paper[paper_id] for paper_id in added.papers_of(self._kind, key)}) for key in chosen]
        papers_P = np.array([row for own in papers for row in own], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum([len(own) for own in papers])]).astype(np.int64)
        first_years, last_years = years_of(papers_P, starts, bank)
        if self._kind is CandidateKind.CITATIONS:
            own_years = [citing_year(key, bank, row_of_paper) for key in chosen]
            first_years = last_years = np.array(own_years, dtype=np.int32)
        length, num_papers = table.num_rows, len(table.papers)
        live = np.ones(length + len(chosen), dtype=np.bool_)
        live[:length] = table.live
        live[list(old.values())] = False
        rows = {key: length + place for place, key in enumerate(chosen)}
        labels = self._new_labels(table, chosen, names, old)
        vectors_RD = np.stack([vectors[key].vector if key in vectors else table.vectors[old[key]] for key in chosen])
        extended = self._arrays.extended
        return replace(
            table,
            **extended(length, ids=objects(chosen), names=objects(names), vectors=vectors_RD),
            **extended(length, first_years=first_years, last_years=last_years),
            **extended(num_papers, papers=papers_P),
            **extended(length + 1, starts=num_papers + starts[1:]),
            **extended(len(table.label_ids), label_ids=objects([key for key, _ in labels])),
            id_ranks=self._ranked(table, chosen, rows, old),
            live=live,
            row_of_id=table.row_of_id.updated(rows),
            rows_of_name=table.rows_of_name.updated(_rows_of_names(table, rows, names, old)),
            labels=table.labels.extended(label for _, label in labels),
        )

    def _name(self, key: str, table: CandidateTable, vectors: Mapping[str, AddedVector], added: AddedPapers) -> str:
        name = vectors[key].name if key in vectors else table.names[table.row_of_id[key]]
        return citing_name(key, name, added.papers) if self._kind is CandidateKind.CITATIONS else name

    def _new_labels(
        self, table: CandidateTable, keys: Sequence[str], names: Sequence[str], old: Mapping[str, int]
    ) -> list[tuple[str, str]]:
        """Labels that the candidates did not have."""
        labels = []
        for key, name in zip(keys, names, strict=True):
            known = labels_of(key, table.names[old[key]]) if key in old else []
            labels += [label for label in labels_of(key, name) if label not in known]
        return labels

    def _ranked(
        self, table: CandidateTable, keys: Sequence[str], rows: Mapping[str, int], old: Mapping[str, int]
    ) -> NDArray[np.float64]:
        """Ranks with those of the new rows: a new id gets one between those of its neighbours."""
        ranks_R = np.zeros(len(keys))
        known = {key: float(table.id_ranks[row]) for key, row in old.items()}
        new = [key for key in keys if key not in old]
        for key in new if len(new) < _MANY_IDS else ():
            known[key] = self._between(key, table, known)
            insort(self._sorted_ids, key)
        if len(new) < _MANY_IDS and all(map(np.isfinite, known.values())):
            ranks_R[:] = [known[key] for key in keys]
            return self._ranks.extended(table.num_rows, id_ranks=ranks_R)["id_ranks"]
        self._sorted_ids = sorted({*self._sorted_ids, *new})
        ranks_J = np.concatenate([table.id_ranks, ranks_R])
        latest = table.row_of_id.updated(rows)
        ranks_J[[latest[key] for key in self._sorted_ids]] = np.arange(len(self._sorted_ids))
        self._ranks = GrowingArrays(id_ranks=ranks_J)
        return ranks_J

    def _between(self, key: str, table: CandidateTable, known: Mapping[str, float]) -> float:
        """A rank between those of an id's neighbours; infinite when there is none."""
        place = bisect_left(self._sorted_ids, key)
        below, above = self._sorted_ids[max(0, place - 1) : place], self._sorted_ids[place : place + 1]
        low, high = (
            [known[own] if own in known else float(table.id_ranks[table.row_of_id[own]]) for own in near]
            for near in (below, above)
        )
        if not low or not high:
            return low[0] + 1 if low else high[0] - 1 if high else 0.0
        middle = (low[0] + high[0]) / 2
        return middle if low[0] < middle < high[0] else np.inf


def _rows_of_names(
    table: CandidateTable, rows: Mapping[str, int], names: Sequence[str], old: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Rows of the names that the candidates had and have."""
    changed: dict[str, tuple[int, ...]] = {}
    for (key, row), name in zip(rows.items(), names, strict=True):
        if key in old:
            former = table.names[old[key]]
            known = changed.get(former, table.rows_of_name.get(former, ()))
            changed[former] = tuple(other for other in known if other != old[key])
        if name:
            changed[name] = (*changed.get(name, table.rows_of_name.get(name, ())), row)
    return changed


def live_candidates(state: EngineState) -> dict[CandidateKind, Candidates]:
    """By kind, the candidates of a state, without rows that are no longer live."""
    found = {}
    for kind, table in state.tables.items():
        rows = table.live_rows
        found[kind] = Candidates(table.ids[rows].tolist(), table.names[rows].tolist(), table.vectors[rows])
    return found
