"""The next state from the last one: rows are written for whoever is concerned by a change, and for nobody else.

Once the rows written since the tables were put together are many, they are put together anew: the index then knows all
candidates again, and rows that are no longer live are gone. The work of that grows with the rows that called for it.
Shape letters: R rows that are written, J rows of a table, A papers, W of documents.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.papers.added import AddedPapers
from facets.papers.candidates import CandidateTable, PaperBank, labels_of, summaries
from facets.papers.growing import GrowingArray, GrowingList
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.state import Candidates, EngineState, citing_name, citing_year
from facets.papers.store import AddedVector

__all__ = ["BankGrowth", "TableGrowth", "live_candidates"]

# From so many new ids on, ranks are made anew for all instead of being found between their neighbours.
_MANY_IDS = 64


class BankGrowth:
    """The papers of one state and of those that follow from it.

    Args:
        bank: The papers of that state.
    """

    def __init__(self, bank: PaperBank) -> None:
        self._ids, self._titles = GrowingList(bank.ids), GrowingList(bank.titles)
        self._years, self._documents = GrowingArray(bank.years), GrowingArray(bank.documents)
        self._first_rows = len(bank.ids)

    def is_due(self, bank: PaperBank, num_papers: int, *, min_indexed: int) -> bool:
        """Whether so many rows are of former versions that the papers should be put together anew."""
        return len(bank.ids) - num_papers > max(min_indexed, self._first_rows // 4)

    def grown(self, bank: PaperBank, papers: Sequence[Paper], documents_AW: NDArray[np.float32]) -> PaperBank:
        """With further papers behind the others, of known ids too."""
        length = len(bank.ids)
        return PaperBank(
            self._ids.extended(length, [paper.id for paper in papers]),
            self._titles.extended(length, [paper.title for paper in papers]),
            self._years.extended(length, np.array([paper.year or 0 for paper in papers], dtype=np.int32)),
            self._documents.extended(length, documents_AW),
        )


class TableGrowth:
    """The candidates of one state and of those that follow from it.

    Args:
        kind: What they are.
        table: The table of that state.
    """

    def __init__(self, kind: CandidateKind, table: CandidateTable) -> None:
        self._kind = kind
        self._ids, self._names = GrowingList(table.ids), GrowingList(table.names)
        self._label_ids = GrowingList(table.label_ids)
        self._vectors, self._means = GrowingArray(table.vectors), GrowingArray(table.means)
        self._papers, self._starts = GrowingArray(table.papers), GrowingArray(table.starts)
        self._first_years, self._last_years = GrowingArray(table.first_years), GrowingArray(table.last_years)
        self._ranks = GrowingArray(table.id_ranks)
        self._sorted_ids = sorted(table.row_of_id)
        self._first_rows, self._first_pairs = table.num_rows, len(table.papers)

    def is_due(self, table: CandidateTable, *, min_indexed: int) -> bool:
        """Whether so much was written that the table should be put together anew."""
        few_rows = max(min_indexed // 16, self._first_rows // 8)
        few_pairs = max(min_indexed, self._first_pairs)
        return (
            table.num_rows - self._first_rows > few_rows
            or len(table.papers) - self._first_pairs > few_pairs
            or self._first_rows < min_indexed <= len(table)
        )

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

        Args:
            table: The latest.
            keys: Distinct ids of the candidates concerned; who is unknown and has no vector is left out.
            vectors: New vectors by id; the others keep theirs.
            added: Whose papers are whose now.
            bank: The papers now.
            row_of_paper: Row of each paper in it.
        """
        chosen = [key for key in keys if key in vectors or key in table.row_of_id]
        if not chosen:
            return table
        old = {key: table.row_of_id[key] for key in chosen if key in table.row_of_id}
        names = [self._name(key, table, vectors, added) for key in chosen]
        papers = [sorted({row_of_paper[paper_id] for paper_id in added.papers_of(self._kind, key)}) for key in chosen]
        papers_P = np.array([row for own in papers for row in own], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum([len(own) for own in papers])]).astype(np.int64)
        means, first_years, last_years = summaries(papers_P, starts, bank)
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
        return CandidateTable(
            self._ids.extended(length, chosen),
            self._names.extended(length, names),
            self._vectors.extended(length, vectors_RD),
            self._means.extended(length, means),
            self._papers.extended(num_papers, papers_P),
            self._starts.extended(length + 1, num_papers + starts[1:]),
            self._first_years.extended(length, first_years),
            self._last_years.extended(length, last_years),
            self._ranked(table, chosen, rows, old),
            live,
            table.row_of_id.updated(rows),
            table.rows_of_name.updated(_rows_of_names(table, rows, names, old)),
            table.labels.extended(label for _, label in labels),
            self._label_ids.extended(len(table.label_ids), [key for key, _ in labels]),
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
            return self._ranks.extended(table.num_rows, ranks_R)
        self._sorted_ids = sorted({*self._sorted_ids, *new})
        ranks_J = np.concatenate([table.id_ranks, ranks_R])
        latest = table.row_of_id.updated(rows)
        ranks_J[[latest[key] for key in self._sorted_ids]] = np.arange(len(self._sorted_ids))
        self._ranks = GrowingArray(ranks_J)
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
        ids, names = [table.ids[row] for row in rows], [table.names[row] for row in rows]
        found[kind] = Candidates(ids, names, table.vectors[rows])
    return found
