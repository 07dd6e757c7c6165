"""Tables of authors and of citing papers: their vectors, papers, years and names; how additions extend them.

A table is immutable: an addition makes a new one, so a call works on one state from beginning to end. A changed
candidate or paper gets a new row after the others, and its former row is dead. The two large arrays, vectors and
documents, are shared between states: new rows are written after those that earlier states use.

Shape letters: I papers, J rows of candidates, D dimensions, W width of documents, P pairs, N query papers, C chosen
candidates, A added papers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from facets.language.near_names import NearNames
from facets.papers.membership import AddedPapers
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, year_of_id
from facets.papers.store import AddedVector

_SIMILARITIES_AT_A_TIME = 16_000_000
_GATHERED_SHARE = 8  # the papers of chosen candidates are copied when they are at most an eighth of all
_GROWTH = 1.5  # factor by which a full array is enlarged


@dataclass(frozen=True, slots=True)
class PaperBank:
    """All papers that candidates wrote or cite."""

    ids: NDArray[np.object_]  # `[I]` str
    titles: NDArray[np.object_]  # `[I]` str
    years: NDArray[np.int32]  # `[I]` int32, 0: unknown
    documents: NDArray[np.float32]  # `[I, W]` float32, vectors for comparing papers; see `PaperFacets`


@dataclass(frozen=True, kw_only=True)
class CandidateTable:
    """All candidates of one kind."""

    ids: NDArray[np.object_]  # `[J]` str
    names: NDArray[np.object_]  # `[J]` str, names or titles
    vectors: NDArray[np.float32]  # `[J, D]` float32
    papers: NDArray[np.int64]  # `[P]` int64, rows in the bank; candidate j has `papers[starts[j]:starts[j + 1]]`
    starts: NDArray[np.int64]  # `[J + 1]` int64
    first_years: NDArray[np.int32]  # `[J]` int32, 0: unknown
    last_years: NDArray[np.int32]  # `[J]` int32, 0: unknown
    live: NDArray[np.bool_]  # `[J]`, False where a later row has replaced this one
    row_of_id: Mapping[str, int] = field(repr=False)  # live rows

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.row_of_id)

    @property
    def num_rows(self) -> int:
        """J, dead rows included."""
        return len(self.ids)

    @property
    def live_rows(self) -> NDArray[np.int64]:
        """One row per candidate, ascending."""
        return np.flatnonzero(self.live)

    @cached_property
    def id_ranks(self) -> NDArray[np.int64]:
        """``[J]``: position of each id in alphabetical order; decides ties."""
        ranks = np.empty(self.num_rows, dtype=np.int64)
        ranks[np.argsort(self.ids, kind="stable")] = np.arange(self.num_rows)
        return ranks

    @cached_property
    def rows_of_name(self) -> dict[str, list[int]]:
        """Live rows of each name; several candidates may share one."""
        rows: dict[str, list[int]] = {}
        for row in self.live_rows.tolist():
            if self.names[row]:
                rows.setdefault(self.names[row], []).append(row)
        return rows

    @cached_property
    def _labels(self) -> tuple[NearNames, NDArray[np.int64]]:
        """All names, plus ids that differ from the name, and the live row of each."""
        labels = [(self.names[row], row) for row in self.live_rows.tolist()]
        labels += [(self.ids[row], row) for row in self.live_rows.tolist() if self.ids[row] != self.names[row]]
        labels.sort(key=lambda label: label[1])  # ties are broken by row order
        return NearNames([label for label, _ in labels]), np.array([row for _, row in labels], dtype=np.int64)

    def rows(self, ids_or_names: Sequence[str]) -> NDArray[np.int64]:
        """Rows of ids, or of names where no such id exists; unknown ones are left out."""
        rows: set[int] = set()
        for text in ids_or_names:
            row = self.row_of_id.get(text)
            rows.update(self.rows_of_name.get(text, ()) if row is None else [row])
        return np.array(sorted(rows), dtype=np.int64)

    def papers_of(self, row: int) -> NDArray[np.int64]:
        """Rows of a candidate's papers in the bank."""
        return self.papers[self.starts[row] : self.starts[row + 1]]

    def year_mask(self, from_year: int | None, to_year: int | None) -> NDArray[np.bool_]:
        """``[J]``: candidates whose first and last year meet the range."""
        mask = self.last_years > 0
        if from_year is not None:
            mask &= self.last_years >= from_year
        if to_year is not None:
            mask &= self.first_years <= to_year
        return mask

    def document_scores(
        self, documents_NW: NDArray[np.float32], rows_C: NDArray[np.int64], bank: PaperBank, *, mode: str
    ) -> NDArray[np.float32]:
        """Greatest (``max``) or mean (``average``) cosine of each paper with the papers of each chosen candidate.

        Returns ``[N, C]``; 0 for candidates without papers.
        """
        counts_C = self.starts[rows_C + 1] - self.starts[rows_C]
        result = np.zeros((len(rows_C), len(documents_NW)), dtype=np.float32)
        filled = np.flatnonzero(counts_C)
        counts = counts_C[filled]
        first_pairs = np.cumsum(counts) - counts
        pairs = np.repeat(self.starts[rows_C[filled]] - first_pairs, counts) + np.arange(int(counts.sum()))
        papers_P, documents_IW = self.papers[pairs], bank.documents
        # Copying many papers takes longer than comparing all of them.
        if _GATHERED_SHARE * len(papers_P) < len(documents_IW):
            papers_P, documents_IW = np.arange(len(papers_P)), documents_IW[papers_P]
        combine = np.maximum if mode == "max" else np.add
        step = max(1, _SIMILARITIES_AT_A_TIME // max(1, len(papers_P), len(documents_IW)))
        for first in range(0, len(documents_NW) if len(filled) else 0, step):
            cosines_IN = documents_IW @ documents_NW[first : first + step].T
            result[filled, first : first + step] = combine.reduceat(cosines_IN[papers_P], first_pairs, axis=0)
        if mode != "max":
            result /= np.maximum(counts_C, 1)[:, None]
        return np.ascontiguousarray(result.T)

    def find(self, text: str, top_k: int) -> list[tuple[str, str]]:
        """Ids and names most similar to a text, best first."""
        labels, rows = self._labels
        # A candidate may have two labels.
        similar = dict.fromkeys(int(rows[label]) for label in labels.find(text, top_k=2 * top_k))
        return [(self.ids[row], self.names[row]) for row in list(similar)[:top_k]]


@dataclass(frozen=True, slots=True)
class EngineState:
    """All papers and candidates at one moment."""

    bank: PaperBank
    tables: Mapping[CandidateKind, CandidateTable]
    row_of_paper: Mapping[str, int]  # row of the latest version of each paper

    @property
    def num_dead(self) -> int:
        """Rows and pairs that later ones have replaced."""
        dead = len(self.bank.ids) - len(self.row_of_paper)
        for table in self.tables.values():
            dead += table.num_rows - len(table) + int(np.diff(table.starts)[~table.live].sum())
        return dead


def trained_state(model: PaperModel) -> EngineState:
    """The papers and candidates that a model was trained on."""
    papers = model.papers
    bank = PaperBank(_objects(papers.ids), _objects(papers.titles), papers.years, model.trained_documents())
    row_of_paper = {paper_id: row for row, paper_id in enumerate(papers.ids)}
    tables = {}
    for kind in CandidateKind:
        ids, own_years = papers.column_ids[kind], None
        if kind is CandidateKind.CITATIONS:
            own_years = np.array([_citing_year(key, bank, row_of_paper) for key in ids], dtype=np.int32)
        tables[kind] = build_table(
            ids,
            papers.column_names[kind],
            model.tables.vectors[kind],
            pairs_P2=papers.pairs[kind],
            bank=bank,
            own_years=own_years,
        )
    return EngineState(bank, tables, row_of_paper)


def build_table(
    ids: Sequence[str],
    names: Sequence[str],
    vectors: NDArray[np.float32],
    *,
    pairs_P2: NDArray[np.int64],
    bank: PaperBank,
    own_years: NDArray[np.int32] | None = None,
) -> CandidateTable:
    """Makes a table from pairs of papers and candidates.

    Args:
        ids: ``J`` distinct ids.
        names: ``J`` names.
        vectors: ``[J, D]``.
        pairs_P2: Rows of papers in the bank, and of candidates.
        bank: The papers.
        own_years: Years of the candidates themselves (citing papers); None: taken from their papers (authors).
    """
    order = np.lexsort((pairs_P2[:, 0], pairs_P2[:, 1]))
    papers, candidates = pairs_P2[order, 0], pairs_P2[order, 1]
    starts = np.searchsorted(candidates, np.arange(len(ids) + 1)).astype(np.int64)
    first_years, last_years = _years_of(papers, starts, bank) if own_years is None else (own_years, own_years)
    return CandidateTable(
        ids=_objects(ids),
        names=_objects(names),
        vectors=np.ascontiguousarray(vectors, dtype=np.float32),
        papers=papers,
        starts=starts,
        first_years=first_years,
        last_years=last_years,
        live=np.ones(len(ids), dtype=np.bool_),
        row_of_id={key: row for row, key in enumerate(ids)},
    )


class GrowingRows:
    """An array that grows by rows; arrays returned earlier stay unchanged.

    ``rows``: the first rows, used without copying.
    """

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self._room = rows

    def extended(self, length: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The first ``length`` rows, then these. Later rows, left by a failed addition, are overwritten."""
        total = length + len(rows)
        if total > len(self._room):
            room = np.empty((max(total, int(_GROWTH * length)), *self._room.shape[1:]), dtype=self._room.dtype)
            room[:length] = self._room[:length]
            self._room = room
        self._room[length:total] = rows
        return self._room[:total]


class StateGrowth:
    """Extends a state, and its successors, by additions; for one caller at a time."""

    def __init__(self, state: EngineState) -> None:
        self._documents = GrowingRows(state.bank.documents)
        self._vectors = {kind: GrowingRows(table.vectors) for kind, table in state.tables.items()}

    def grown(
        self,
        state: EngineState,
        papers: Sequence[Paper],
        documents_AW: NDArray[np.float32],
        *,
        affected: Mapping[CandidateKind, Sequence[str]],
        vectors: Iterable[AddedVector],
        added: AddedPapers,
    ) -> EngineState:
        """The next state.

        Args:
            state: The latest state.
            papers: The added papers; a paper with a known id replaces the earlier one.
            documents_AW: The documents of these papers.
            affected: By kind, ids of candidates that get a new row, if they are in the table or have a new vector.
            vectors: New vectors; other candidates keep theirs.
            added: All added papers, including these.
        """
        bank, first = state.bank, len(state.bank.ids)
        bank = PaperBank(
            np.concatenate([bank.ids, _objects([paper.id for paper in papers])]),
            np.concatenate([bank.titles, _objects([paper.title for paper in papers])]),
            np.concatenate([bank.years, np.array([paper.year or 0 for paper in papers], dtype=np.int32)]),
            self._documents.extended(first, documents_AW),
        )
        row_of_paper = {**state.row_of_paper, **{paper.id: first + row for row, paper in enumerate(papers)}}
        new_vectors: dict[CandidateKind, dict[str, AddedVector]] = {kind: {} for kind in CandidateKind}
        for vector in vectors:
            new_vectors[vector.kind][vector.id] = vector
        keys = {kind: dict.fromkeys(affected[kind]) for kind in CandidateKind}
        # A citing paper that was itself added now has a title and a year.
        keys[CandidateKind.CITATIONS] |= dict.fromkeys(paper.id for paper in papers)
        next_state = EngineState(bank, {}, row_of_paper)
        tables = {
            kind: self._grown_table(kind, state.tables[kind], keys[kind], new_vectors[kind], added, next_state)
            for kind in CandidateKind
        }
        return EngineState(bank, tables, row_of_paper)

    def _grown_table(
        self,
        kind: CandidateKind,
        table: CandidateTable,
        affected: Iterable[str],
        vectors: Mapping[str, AddedVector],
        added: AddedPapers,
        state: EngineState,
    ) -> CandidateTable:
        keys = [key for key in affected if key in vectors or key in table.row_of_id]
        if not keys:
            return table
        old_rows = {key: table.row_of_id[key] for key in keys if key in table.row_of_id}
        names = [
            (vectors[key].name if key in vectors else "") or (table.names[old_rows[key]] if key in old_rows else "")
            for key in keys
        ]
        papers = [sorted({state.row_of_paper[p] for p in added.papers_of(kind, key)}) for key in keys]
        papers_P = np.array([row for rows in papers for row in rows], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows in papers])]).astype(np.int64)
        if kind is CandidateKind.CITATIONS:
            names = [added.papers[key].title if key in added.papers else n for key, n in zip(keys, names, strict=True)]
            years = np.array([_citing_year(key, state.bank, state.row_of_paper) for key in keys], dtype=np.int32)
            first_years, last_years = years, years
        else:
            first_years, last_years = _years_of(papers_P, starts, state.bank)
        first_row = table.num_rows
        rows = {key: first_row + number for number, key in enumerate(keys)}
        live = np.concatenate([table.live, np.ones(len(keys), dtype=np.bool_)])
        live[list(old_rows.values())] = False
        vectors_RD = np.stack([vectors[k].vector if k in vectors else table.vectors[old_rows[k]] for k in keys])
        return CandidateTable(
            ids=np.concatenate([table.ids, _objects(keys)]),
            names=np.concatenate([table.names, _objects(names)]),
            vectors=self._vectors[kind].extended(first_row, vectors_RD),
            papers=np.concatenate([table.papers, papers_P]),
            starts=np.concatenate([table.starts, len(table.papers) + starts[1:]]),
            first_years=np.concatenate([table.first_years, first_years]),
            last_years=np.concatenate([table.last_years, last_years]),
            live=live,
            row_of_id={**table.row_of_id, **rows},
        )


def _citing_year(key: str, bank: PaperBank, row_of_paper: Mapping[str, int]) -> int:
    """The year of a citing paper, 0 when unknown."""
    return (int(bank.years[row_of_paper[key]]) if key in row_of_paper else 0) or year_of_id(key) or 0


def _years_of(
    papers_P: NDArray[np.int64], starts: NDArray[np.int64], bank: PaperBank
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First and last year ``[J]`` of the papers of each candidate, 0 when unknown."""
    first_years, last_years = np.zeros((2, len(starts) - 1), dtype=np.int32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        years = bank.years[papers_P]
        last_years[filled] = np.maximum.reduceat(years, starts[filled])
        first_years[filled] = np.minimum.reduceat(np.where(years > 0, years, np.int32(9999)), starts[filled])
    return first_years, last_years


def _objects(texts: Sequence[str]) -> NDArray[np.object_]:
    return np.array(texts, dtype=np.object_)
