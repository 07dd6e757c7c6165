"""Authors or citing papers as arrays: vectors, the papers they belong to, years, names.

Shape letters: I papers, J candidates, D dimensions, W of word averages, P pairs, N query papers, C chosen candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facets.text.near_names import NearNames

__all__ = ["CandidateTable", "PaperBank", "build_table"]

_SIMILARITIES_AT_A_TIME = 16_000_000


@dataclass(frozen=True, slots=True)
class PaperBank:
    """The papers that authors wrote and that are cited.

    Attributes:
        ids: ``I`` ids.
        titles: ``I`` titles.
        years: ``[I]`` int32, 0 when unknown.
        averages: ``[I, W]`` float32, unit word averages.
    """

    ids: Sequence[str]
    titles: Sequence[str]
    years: NDArray[np.int32]
    averages: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """All candidates of a kind; never changed, only replaced.

    Attributes:
        ids: ``J`` ids.
        names: ``J`` names or titles.
        vectors: ``[J, D]`` float32.
        means: ``[J, W]`` float32, mean of the word averages of the candidate's papers: an inner product with a unit
            average is the average cosine.
        papers: ``[P]`` int64, papers of candidate ``j`` are ``papers[starts[j]:starts[j + 1]]``.
        starts: ``[J + 1]`` int64.
        first_years: ``[J]`` int32, 0 when unknown.
        last_years: ``[J]`` int32, 0 when unknown.
        id_ranks: ``[J]`` int64, place of each id among the sorted ids, for ties.
        row_of_id: Id -> row.
        rows_of_name: Name -> rows.
        labels: All names, then the ids that are no names.
        label_rows: The row of each label.
    """

    ids: Sequence[str]
    names: Sequence[str]
    vectors: NDArray[np.float32]
    means: NDArray[np.float32]
    papers: NDArray[np.int64]
    starts: NDArray[np.int64]
    first_years: NDArray[np.int32]
    last_years: NDArray[np.int32]
    id_ranks: NDArray[np.int64]
    row_of_id: dict[str, int] = field(repr=False)
    rows_of_name: dict[str, list[int]] = field(repr=False)
    labels: NearNames = field(repr=False)
    label_rows: Sequence[int] = field(repr=False)

    def __len__(self) -> int:
        """J."""
        return len(self.ids)

    def rows(self, ids_or_names: Sequence[str]) -> NDArray[np.int64]:
        """Rows of known ids; a text that is no id may be a name; what is neither is passed over."""
        found: list[int] = []
        for text in ids_or_names:
            row = self.row_of_id.get(text)
            found += self.rows_of_name.get(text, []) if row is None else [row]
        return np.array(sorted(set(found)), dtype=np.int64)

    def papers_of(self, row: int) -> NDArray[np.int64]:
        """Rows of a candidate's papers in the bank."""
        return self.papers[self.starts[row] : self.starts[row + 1]]

    def year_mask(self, from_year: int | None, to_year: int | None) -> NDArray[np.bool_]:
        """``[J]``: candidates with a known paper of these years, as far as first and last year show."""
        mask = self.last_years > 0
        if from_year is not None:
            mask &= self.last_years >= from_year
        if to_year is not None:
            mask &= self.first_years <= to_year
        return mask

    def greatest_cosines(
        self, averages_NW: NDArray[np.float32], rows_C: NDArray[np.int64], bank: PaperBank
    ) -> NDArray[np.float32]:
        """Greatest cosine of each paper with a paper of each chosen candidate, ``[N, C]``; 0 without papers."""
        counts_C = self.starts[rows_C + 1] - self.starts[rows_C]
        result = np.zeros((len(rows_C), len(averages_NW)), dtype=np.float32)
        step = max(1, _SIMILARITIES_AT_A_TIME // max(1, len(averages_NW)))
        bounds = np.cumsum(counts_C)
        first = 0
        while first < len(rows_C):
            before = bounds[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(bounds, before + step, side="right")))
            chosen = np.flatnonzero(counts_C[first:last]) + first
            if len(chosen):
                counts = counts_C[chosen]
                places = np.cumsum(counts) - counts
                pairs = np.repeat(self.starts[rows_C[chosen]] - places, counts) + np.arange(int(counts.sum()))
                cosines = bank.averages[self.papers[pairs]] @ averages_NW.T
                result[chosen] = np.maximum.reduceat(cosines, places, axis=0)
            first = last
        return np.ascontiguousarray(result.T)

    def find(self, text: str, top_k: int) -> list[tuple[str, str]]:
        """Ids and names most like a text, best first."""
        places = self.labels.find(text, top_k=2 * top_k)  # a name and an id may be the same candidate's
        rows = list(dict.fromkeys(self.label_rows[place] for place in places))
        return [(self.ids[row], self.names[row]) for row in rows[:top_k]]


def build_table(
    ids: Sequence[str],
    names: Sequence[str],
    vectors: NDArray[np.float32],
    *,
    pairs_P2: NDArray[np.int64],
    bank: PaperBank,
    own_years: NDArray[np.int32] | None = None,
) -> CandidateTable:
    """Sorts pairs of papers and candidates into a table.

    Args:
        ids: ``J`` distinct ids.
        names: ``J`` names.
        vectors: ``[J, D]``.
        pairs_P2: Paper of the bank, candidate.
        bank: The papers.
        own_years: Years of the candidates themselves (citing papers); None: from their papers (authors).
    """
    num = len(ids)
    order = np.lexsort((pairs_P2[:, 0], pairs_P2[:, 1]))
    papers, columns = pairs_P2[order, 0], pairs_P2[order, 1]
    starts = np.searchsorted(columns, np.arange(num + 1)).astype(np.int64)
    counts = np.diff(starts)
    means = np.zeros((num, bank.averages.shape[1]), dtype=np.float32)
    first_years = np.zeros(num, dtype=np.int32)
    last_years = np.zeros(num, dtype=np.int32)
    filled = np.flatnonzero(counts)
    if len(filled):
        places = starts[filled]
        means[filled] = np.add.reduceat(bank.averages[papers], places, axis=0) / counts[filled, None]
        years = bank.years[papers]
        last_years[filled] = np.maximum.reduceat(years, places)
        first_years[filled] = np.minimum.reduceat(np.where(years > 0, years, np.int32(9999)), places)
    if own_years is not None:
        first_years = last_years = own_years
    id_ranks = np.empty(num, dtype=np.int64)
    id_ranks[sorted(range(num), key=ids.__getitem__)] = np.arange(num)
    odd = [row for row in range(num) if ids[row] != names[row]]
    rows_of_name: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name:
            rows_of_name.setdefault(name, []).append(row)
    return CandidateTable(
        ids,
        names,
        np.ascontiguousarray(vectors, dtype=np.float32),
        means,
        papers,
        starts,
        first_years,
        last_years,
        id_ranks,
        {key: row for row, key in enumerate(ids)},
        rows_of_name,
        NearNames([*names, *(ids[row] for row in odd)]),
        [*range(num), *odd],
    )
