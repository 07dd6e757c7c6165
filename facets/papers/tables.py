"""The table of recommended authors, and that of citing papers: vectors, the papers they belong to, years, names.

Tables are never changed, only replaced: arrays, lists and mappings grow by the rows added, while snapshots of a moment
stay as they are. A snapshot is a view of the first rows; rows are written behind it, where nobody looks yet. One writer
at a time, and what is extended is the latest snapshot that readers were given: rows of a change that failed are written
over.
Shape letters: I papers, J candidates, D dimensions, W of documents, P pairs, N query papers, C chosen candidates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.language.near_names import NearNames

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_SIMILARITIES_AT_A_TIME = 16_000_000
_GATHERED_SHARE = 8  # papers of chosen candidates are copied where they are at most an eighth of all
_GROWTH = 1.5  # of the room, when it is used up: a row is moved a bounded number of times
_MIN_FOLDED = 256
_FOLDED_SHARE = 8  # a layer of an eighth of the mapping becomes part of it


class GrowingArrays:
    """Arrays that grow by rows; those given before do not change.

    Args:
        arrays: Their first rows, by name; taken over, not copied.
    """

    def __init__(self, **arrays: NDArray[Any]) -> None:
        self._rooms = arrays

    def extended(self, length: int, **rows: NDArray[Any]) -> dict[str, Any]:
        """By name, the first ``length`` rows of an array and then these, ``[length + R, ...]``."""
        return {name: self._extended(name, length, own) for name, own in rows.items()}

    def _extended(self, name: str, length: int, rows: NDArray[Any]) -> NDArray[Any]:
        room, total = self._rooms[name], length + len(rows)
        if total > len(room):
            room = np.empty((max(total, int(_GROWTH * length)), *room.shape[1:]), dtype=room.dtype)
            room[:length] = self._rooms[name][:length]
            self._rooms[name] = room
        room[length:total] = rows
        return room[:total]


class LayeredMap(Mapping[KeyT, ValueT]):
    """A mapping that is never changed, only replaced; most of it is shared with the one that it replaces."""

    def __init__(self, base: dict[KeyT, ValueT], changes: dict[KeyT, ValueT] | None = None) -> None:
        self._base = base
        self._changes = changes or {}
        self._length = len(base) + sum(key not in base for key in self._changes)

    def updated(self, changes: Mapping[KeyT, ValueT]) -> "LayeredMap[KeyT, ValueT]":
        """With other values of some keys."""
        merged = {**self._changes, **changes}
        if len(merged) > max(_MIN_FOLDED, len(self._base) // _FOLDED_SHARE):
            return LayeredMap({**self._base, **merged})
        return LayeredMap(self._base, merged)

    def __getitem__(self, key: KeyT) -> ValueT:
        return self._changes[key] if key in self._changes else self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._changes or key in self._base

    def __iter__(self) -> Iterator[KeyT]:
        yield from self._base
        yield from (key for key in self._changes if key not in self._base)

    def __len__(self) -> int:
        return self._length


@dataclass(frozen=True, slots=True)
class PaperBank:
    """The papers that authors wrote and that are cited."""

    ids: NDArray[np.object_]  # `[I]` texts
    titles: NDArray[np.object_]  # `[I]` texts
    years: NDArray[np.int32]  # `[I]` int32, 0 when unknown
    documents: NDArray[np.float32]  # `[I, W]` float32, what papers are compared by: see `PaperFacets`


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateTable:
    """All candidates of a kind; never changed, only replaced.

    Whoever changes gets a new row behind all others, and the old one is no longer live; so a table shares all rows with
    the table that it replaces.
    """

    ids: NDArray[np.object_]  # `[J]` texts, one a row
    names: NDArray[np.object_]  # `[J]` names or titles
    vectors: NDArray[np.float32]  # `[J, D]` float32
    papers: NDArray[np.int64]  # `[P]` int64, papers of candidate `j` are `papers[starts[j]:starts[j + 1]]`
    starts: NDArray[np.int64]  # `[J + 1]` int64
    first_years: NDArray[np.int32]  # `[J]` int32, 0 when unknown
    last_years: NDArray[np.int32]  # `[J]` int32, 0 when unknown
    id_ranks: NDArray[np.float64]  # `[J]` float64, in the order of the ids, for ties
    live: NDArray[np.bool_]  # `[J]`: False for rows that a later row of the same id has taken the place of
    row_of_id: LayeredMap[str, int] = field(repr=False)  # id -> live row
    rows_of_name: LayeredMap[str, tuple[int, ...]] = field(repr=False)  # name -> live rows
    labels: NearNames = field(repr=False)  # names, and ids that are no names
    label_ids: NDArray[np.object_] = field(repr=False)  # the id that each label belongs to

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.row_of_id)

    @property
    def num_rows(self) -> int:
        """J, rows that are no longer live included."""
        return len(self.ids)

    @property
    def live_rows(self) -> NDArray[np.int64]:
        """One row a candidate, ascending."""
        return np.flatnonzero(self.live)

    def rows(self, ids_or_names: Sequence[str]) -> NDArray[np.int64]:
        """Rows of known ids; a text that is no id may be a name; what is neither is passed over."""
        found: list[int] = []
        for text in ids_or_names:
            row = self.row_of_id.get(text)
            found += self.rows_of_name.get(text, ()) if row is None else [row]
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

    def document_scores(
        self, documents_NW: NDArray[np.float32], rows_C: NDArray[np.int64], bank: PaperBank, *, mode: str
    ) -> NDArray[np.float32]:
        """Greatest (``max``) or mean (``average``) cosine of each paper with the papers of each chosen candidate.

        Returns ``[N, C]``; 0 without papers.
        """
        counts_C = self.starts[rows_C + 1] - self.starts[rows_C]
        result = np.zeros((len(rows_C), len(documents_NW)), dtype=np.float32)
        chosen = np.flatnonzero(counts_C)
        counts = counts_C[chosen]
        places = np.cumsum(counts) - counts
        pairs = np.repeat(self.starts[rows_C[chosen]] - places, counts) + np.arange(int(counts.sum()))
        papers_P, documents_IW = self.papers[pairs], bank.documents
        # Of many papers a copy takes more than comparing all.
        if _GATHERED_SHARE * len(papers_P) < len(documents_IW):
            papers_P, documents_IW = np.arange(len(papers_P)), documents_IW[papers_P]
        combine = np.maximum if mode == "max" else np.add
        step = max(1, _SIMILARITIES_AT_A_TIME // max(1, len(papers_P), len(documents_IW)))
        for first in range(0, len(documents_NW) if len(chosen) else 0, step):
            cosines_IN = documents_IW @ documents_NW[first : first + step].T
            result[chosen, first : first + step] = combine.reduceat(cosines_IN[papers_P], places, axis=0)
        if mode != "max":
            result /= np.maximum(counts_C, 1)[:, None]
        return np.ascontiguousarray(result.T)

    def find(self, text: str, top_k: int) -> list[tuple[str, str]]:
        """Ids and names most like a text, best first."""
        found: dict[str, str] = {}
        for place in self.labels.find(text, top_k=2 * top_k):  # a name and an id may be the same candidate's
            key = self.label_ids[place]
            name = self.names[self.row_of_id[key]]
            if self.labels.name(place) in (key, name):  # else a former name
                found[key] = name
        return list(found.items())[:top_k]


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
    first_years, last_years = years_of(papers, starts, bank) if own_years is None else (own_years, own_years)
    id_ranks = np.empty(num, dtype=np.float64)
    id_ranks[sorted(range(num), key=ids.__getitem__)] = np.arange(num)
    rows_of_name: dict[str, tuple[int, ...]] = {}
    for row, name in enumerate(names):
        if name:
            rows_of_name[name] = (*rows_of_name.get(name, ()), row)
    labels = [label for key, name in zip(ids, names, strict=True) for label in labels_of(key, name)]
    return CandidateTable(
        ids=objects(ids),
        names=objects(names),
        vectors=np.ascontiguousarray(vectors, dtype=np.float32),
        papers=papers,
        starts=starts,
        first_years=first_years,
        last_years=last_years,
        id_ranks=id_ranks,
        live=np.ones(num, dtype=np.bool_),
        row_of_id=LayeredMap({key: row for row, key in enumerate(ids)}),
        rows_of_name=LayeredMap(rows_of_name),
        labels=NearNames([label for _, label in labels]),
        label_ids=objects([key for key, _ in labels]),
    )


def objects(texts: Sequence[str]) -> NDArray[np.object_]:
    """Texts as an array of objects, ``[len(texts)]``."""
    return np.array(texts, dtype=np.object_)


def years_of(
    papers_P: NDArray[np.int64], starts: NDArray[np.int64], bank: PaperBank
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First and last year ``[J]`` of the papers of each candidate, 0 when unknown; arguments as in the table."""
    first_years, last_years = np.zeros((2, len(starts) - 1), dtype=np.int32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        years = bank.years[papers_P]
        last_years[filled] = np.maximum.reduceat(years, starts[filled])
        first_years[filled] = np.minimum.reduceat(np.where(years > 0, years, np.int32(9999)), starts[filled])
    return first_years, last_years


def labels_of(key: str, name: str) -> list[tuple[str, str]]:
    """What a candidate may be found by: id and label, for the name and for an id that is another text."""
    return [(key, name)] if key == name else [(key, name), (key, key)]
