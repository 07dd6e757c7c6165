"""The papers, authors and citing papers that a model knows, and how additions extend them.

Everything here is immutable: an addition makes a new state, so a call works on one state from beginning to end.

Shape letters: I papers, J candidates, D dimensions, W width of documents, E width of passages, M words, P pairs of
candidate and paper, N query papers, C chosen candidates, A added papers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from facets.arrays import Floats, Ints, Ints32, take_groups
from facets.errors import NotFoundError
from facets.index.exact import PackedCodes, coded
from facets.language.interruption import check_interrupted
from facets.language.near_names import NearNames
from facets.language.vectors import StoredRows
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperFacets, PaperOptions, year_of_id
from facets.papers.store import AddedVector

_SIMILARITIES_AT_A_TIME = 16_000_000
_NEAREST_PASSAGES = 3  # papers of an added author that count
_ROWS_AT_A_TIME = 2048  # coded, or decoded, at a time: few enough to fit the CPU cache
_STEPS = 254  # twice the largest code
_ROUNDING = np.float32(1e-5)  # more than the error of a product of floats

# By kind and id of a candidate, rows of its papers in the bank, ascending.
Members = dict[CandidateKind, dict[str, list[int]]]


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Rows of a matrix as bytes, which bound products several times as fast as floats, and bytes of what these leave.

    With both, numbers are exact to 1/64,516 of the largest number of their row.
    """

    codes: NDArray[np.int8]  # `[R, D]`
    rests: NDArray[np.int8]  # `[R, D]`, in steps of 1/254; `[0, D]` if only bounds are needed
    factors: Floats  # `[R]`, of the codes
    norms: Floats  # `[R]`
    error: float  # largest share of the norm of a row that its codes leave

    @classmethod
    def of(cls, rows_RD: Floats | StoredRows, *, exact: bool) -> "CodedRows":
        """Codes some rows; ``exact``: with what the codes leave."""
        parts = []
        for start in range(0, max(1, len(rows_RD)), _ROWS_AT_A_TIME):
            rows = rows_RD[start : start + _ROWS_AT_A_TIME]
            codes, factors = coded(rows)
            left, norms = rows / factors - codes, np.linalg.norm(rows, axis=1)
            errors = np.linalg.norm(left, axis=1) * factors[:, 0] / np.where(norms > 0, norms, 1)
            rests = np.rint(_STEPS * left[: len(rows) * exact])
            error = float(errors.max(initial=0))
            parts.append(cls(codes.astype(np.int8), rests.astype(np.int8), factors[:, 0], norms, error))
        return cls.joined(parts)

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def joined(cls, parts: Sequence["CodedRows"]) -> "CodedRows":
        """The rows of all parts, in this order."""
        names = ("codes", "rests", "factors", "norms")
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**arrays, error=max(part.error for part in parts))

    def products(self, places_P: Ints, vectors_ND: Floats) -> Floats:
        """Products of some rows with vectors, ``[P, N]``."""
        vectors_DN, parts = torch.from_numpy(vectors_ND).T, []
        for start in range(0, max(1, len(places_P)), _ROWS_AT_A_TIME):
            places = torch.from_numpy(places_P[start : start + _ROWS_AT_A_TIME])
            codes, rests, factors = (
                torch.from_numpy(values).index_select(0, places) for values in (self.codes, self.rests, self.factors)
            )
            rows_PD = codes.float().mul_(_STEPS).add_(rests)
            parts.append((rows_PD @ vectors_DN).mul_((factors / _STEPS)[:, None]))
        products: Floats = torch.cat(parts).numpy()
        return products

    def bounds(self, vectors_KD: Floats) -> Floats:
        """Upper bounds ``[R]`` of the largest product of each row with one of the vectors, and near it."""
        codes, scale = coded(vectors_KD.reshape(1, -1))  # one scale for all, so that the largest product is known
        products_RK = PackedCodes(codes.reshape(vectors_KD.shape)).times(self.codes)
        bounds_R: Floats = reduce(np.maximum, products_RK.T).astype(np.float32)
        bounds_R *= self.factors * scale[0]
        error = np.linalg.norm(vectors_KD - (codes * scale).reshape(vectors_KD.shape), axis=1).max()
        bounds_R += self.norms * (error + self.error * (np.linalg.norm(vectors_KD, axis=1).max() + error))
        bounds_R += _ROUNDING
        return bounds_R


@dataclass(frozen=True, slots=True)
class PaperBank:
    """All papers that candidates wrote or cite: those of the training, then added ones in the order of addition.

    A new version of a paper has a row of its own; no candidate refers to the former row.
    """

    ids: NDArray[np.object_]  # `[I]` str
    titles: NDArray[np.object_]  # `[I]` str
    abstracts: NDArray[np.object_]  # `[I]` str, empty for papers of the training
    years: Ints32  # `[I]` int32, 0: unknown
    documents: CodedRows  # `[I, W]`, vectors for comparing papers; see `PaperFacets`
    # Of the added papers, the last of the bank; see `PaperFacets`.
    passages: Floats  # `[A, E]` float32
    words: NDArray[np.void]  # `[A, M]` of `WEIGHTED_WORD`

    @property
    def num_trained(self) -> int:
        """Number of papers of the training, which come first."""
        return len(self.documents) - len(self.passages)


@dataclass(frozen=True)
class CandidateTable:
    """All candidates of one kind."""

    ids: NDArray[np.object_]  # `[J]` str, distinct
    names: NDArray[np.object_]  # `[J]` str, names or titles
    vectors: Floats | StoredRows  # `[J, D]`; floats once candidates were added
    papers: Ints  # `[P]` int64, rows in the bank; candidate j has `papers[starts[j]:starts[j + 1]]`
    starts: Ints  # `[J + 1]` int64
    years: Ints32  # `[J, 2]` int32, first and last year, 0: unknown

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row_of_id(self) -> dict[str, int]:
        """Row of each id."""
        return {key: row for row, key in enumerate(self.ids.tolist())}

    @cached_property
    def rows_of_name(self) -> dict[str, list[int]]:
        """Rows of each name; several candidates may share one."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names.tolist()):
            if name:
                rows.setdefault(name, []).append(row)
        return rows

    @cached_property
    def id_ranks(self) -> Ints:
        """``[J]``: position of each id in alphabetical order; decides ties."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[np.argsort(self.ids, kind="stable")] = np.arange(len(self))
        return ranks

    @cached_property
    def _labels(self) -> tuple[NearNames, list[int]]:
        """All names, plus ids that differ from the name, and the row of each."""
        labels = [
            (text, row)
            for row, (key, name) in enumerate(zip(self.ids, self.names, strict=True))
            for text in dict.fromkeys((name, key))
        ]
        return NearNames([text for text, _ in labels]), [row for _, row in labels]

    @cached_property
    def coded(self) -> CodedRows:
        """``vectors`` as bytes."""
        return CodedRows.of(self.vectors, exact=False)

    def rows(self, ids_or_names: Sequence[str]) -> Ints:
        """Rows of ids, or of names where no such id exists, ascending; unknown ones are left out."""
        rows: set[int] = set()
        for text in ids_or_names:
            row = self.row_of_id.get(text)
            rows.update(self.rows_of_name.get(text, ()) if row is None else [row])
        return np.array(sorted(rows), dtype=np.int64)

    def papers_of(self, row: int) -> Ints:
        """Rows of a candidate's papers in the bank."""
        return self.papers[self.starts[row] : self.starts[row + 1]]

    def row_of(self, kind: CandidateKind, key: str) -> int:
        """Row of an id, or of a name that only one candidate has.

        Raises NotFoundError if none or several have it; the message lists similar names, or the ids.
        """
        rows = self.rows([key])
        if len(rows) == 1:
            return int(rows[0])
        resource = "author" if kind is CandidateKind.AUTHORS else "citing_paper"
        thing = resource.replace("_", " ")
        if len(rows):
            ids = ", ".join(repr(self.ids[row]) for row in rows[:5])
            message = f"{thing} {key!r} is the name of several, expected one of the ids {ids}"
        else:
            near = ", ".join(repr(candidate_id) for candidate_id, _ in self.find(key, 5)) or "no similar name"
            message = f"no {thing} {key!r}; nearest: {near}"
        raise NotFoundError(message, resource_type=resource, resource_name=key)

    def allowed(self, options: PaperOptions) -> Ints:
        """Rows of the candidates that pass the filters, ascending."""
        mask = np.full(len(self), options.candidates is None)
        mask[self.rows(options.candidates or ())] = True
        mask[self.rows(options.excluded_ids)] = False
        first_years, last_years = self.years.T
        if options.from_year is not None or options.to_year is not None:
            mask &= last_years > 0
        if options.from_year is not None:
            mask &= last_years >= options.from_year
        if options.to_year is not None:
            mask &= first_years <= options.to_year
        return np.flatnonzero(mask)

    def document_bounds(self, document_W: Floats, bank: PaperBank) -> Floats:
        """Upper bounds of the document scores of all candidates, ``[J]``."""
        bounds_I = bank.documents.bounds(document_W[None])
        bounds_P, starts = torch.from_numpy(bounds_I[self.papers]), torch.from_numpy(self.starts)
        bounds_J: Floats = torch.segment_reduce(bounds_P, "max", offsets=starts, initial=0, unsafe=True).numpy()
        return bounds_J

    def document_scores(self, documents_NW: Floats, rows_C: Ints, bank: PaperBank) -> Floats:
        """Greatest cosine with a candidate's papers, ``[N, C]``; 0 without papers."""
        result = np.zeros((len(rows_C), len(documents_NW)), dtype=np.float32)
        pairs, starts_C1 = take_groups(self.starts, rows_C)
        filled = np.flatnonzero(np.diff(starts_C1))
        papers_U, places_P = np.unique(self.papers[pairs], return_inverse=True)
        step = max(1, _SIMILARITIES_AT_A_TIME // max(1, len(pairs)))
        for first in range(0, len(documents_NW) if len(filled) else 0, step):
            check_interrupted()
            cosines_UN = bank.documents.products(papers_U, documents_NW[first : first + step])
            result[filled, first : first + step] = np.maximum.reduceat(cosines_UN[places_P], starts_C1[filled], axis=0)
        return np.ascontiguousarray(result.T)

    def added(self, rows_C: Ints, bank: PaperBank) -> Ints:
        """Positions of the candidates of whom all papers were added after training, and can be compared as passages."""
        if not bank.passages.size:
            return np.empty(0, dtype=np.int64)
        filled = np.flatnonzero(self.starts[rows_C + 1] > self.starts[rows_C])
        firsts = self.papers[self.starts[rows_C[filled]]]  # a candidate's papers are in ascending order
        return filled[firsts >= bank.num_trained]

    def added_scores(self, papers: PaperFacets, rows_C: Ints, bank: PaperBank, *, words_share: float) -> Floats:
        """Mean of the three greatest similarities with the papers of added candidates, ``[N, C]`` in [-1, 1].

        ``words_share``: weight of the cosine of words in a similarity; the cosine of passages has the rest.
        """
        pairs, starts_C1 = take_groups(self.starts, rows_C)
        counts_C = np.diff(starts_C1)
        papers_U, places_P = np.unique(self.papers[pairs] - bank.num_trained, return_inverse=True)
        passages_UE, words_UM = (1.0 - words_share) * bank.passages[papers_U], bank.words[papers_U]
        result = np.empty((len(papers), len(rows_C)), dtype=np.float32)
        step = max(1, _SIMILARITIES_AT_A_TIME // max(1, len(places_P)))
        for first in range(0, len(papers), step):
            part = slice(first, first + step)
            similar_NU = papers.passages[part] @ passages_UE.T
            for similar_U, words_M in zip(similar_NU, papers.words[part], strict=True):
                check_interrupted()
                weights_V = np.zeros(np.iinfo(np.uint16).max + 1, dtype=np.float32)
                weights_V[words_M["row"]] = words_share * words_M["weight"]
                similar_U += np.einsum("um,um->u", weights_V[words_UM["row"]], words_UM["weight"])
            for count in np.unique(counts_C):  # candidates with equally many papers form an array
                check_interrupted()
                alike = np.flatnonzero(counts_C == count)
                similar_NCP = similar_NU.take(places_P[starts_C1[alike, None] + np.arange(count)], axis=1)
                used = min(count, _NEAREST_PASSAGES)
                similar_NCP.partition(count - used, axis=2)
                nearest_NCP = np.sort(similar_NCP[..., -used:], axis=2)  # summed in one order, so that equals tie
                result[part, alike] = nearest_NCP.astype(np.float64).mean(axis=2)
        return result

    def find(self, text: str, top_k: int) -> list[tuple[str, str]]:
        """Ids and names most similar to a text, best first."""
        labels, rows = self._labels
        similar = dict.fromkeys(rows[label] for label in labels.find(text, top_k=2 * top_k))
        return [(self.ids[row], self.names[row]) for row in list(similar)[:top_k]]


@dataclass(frozen=True, slots=True)
class EngineState:
    """All papers and candidates at one moment."""

    bank: PaperBank
    tables: Mapping[CandidateKind, CandidateTable]
    row_of_paper: Mapping[str, int]  # row of the latest version of each paper

    def papers_of(self, kind: CandidateKind, key: str) -> list[int]:
        """Rows of a candidate's papers; empty for an unknown candidate."""
        row = self.tables[kind].row_of_id.get(key)
        return [] if row is None else self.tables[kind].papers_of(row).tolist()

    def compares_passages(self, kind: CandidateKind, rows_C: Ints) -> bool:
        """Whether one of some candidates is an author added after training."""
        return kind is CandidateKind.AUTHORS and len(self.tables[kind].added(rows_C, self.bank)) > 0

    @classmethod
    def trained(cls, model: PaperModel) -> "EngineState":
        """The papers and candidates that a model was trained on."""
        papers = model.papers
        titles, no_abstracts = _objects(papers.titles), _objects([""] * len(papers.ids))
        added = model.passage_vectors([], []), model.weighted_words([])
        documents = CodedRows.of(model.trained_documents(), exact=True)
        bank = PaperBank(_objects(papers.ids), titles, no_abstracts, papers.years, documents, *added)
        state = EngineState(bank, {}, {paper_id: row for row, paper_id in enumerate(papers.ids)})
        tables = {}
        for kind in CandidateKind:
            pairs_P2 = papers.pairs[kind]
            papers_P, candidates_P = pairs_P2.T[:, np.lexsort(pairs_P2.T)]
            starts = np.searchsorted(candidates_P, np.arange(len(papers.column_ids[kind]) + 1))
            names, vectors_JD = papers.column_names[kind], model.tables.vectors[kind]
            tables[kind] = state._table(kind, papers.column_ids[kind], names, vectors_JD, papers_P, starts)
        return EngineState(bank, tables, state.row_of_paper)

    def with_papers(
        self, papers: Sequence[Paper], documents_AW: Floats, passages_AE: Floats, words_AM: NDArray[np.void]
    ) -> "EngineState":
        """A state with more papers, or new versions, at the end of the bank; the arrays are theirs.

        Its candidates are unchanged; see ``changed_members`` and ``with_candidates``.
        """
        bank, first = self.bank, len(self.bank.ids)
        bank = PaperBank(
            np.concatenate([bank.ids, _objects([paper.id for paper in papers])]),
            np.concatenate([bank.titles, _objects([paper.title for paper in papers])]),
            np.concatenate([bank.abstracts, _objects([paper.abstract for paper in papers])]),
            np.concatenate([bank.years, np.array([paper.year or 0 for paper in papers], dtype=np.int32)]),
            CodedRows.joined([bank.documents, CodedRows.of(documents_AW, exact=True)]),
            np.concatenate([bank.passages, passages_AE]),
            np.concatenate([bank.words, words_AM]),
        )
        rows = {paper.id: first + number for number, paper in enumerate(papers)}
        return EngineState(bank, self.tables, {**self.row_of_paper, **rows})

    def changed_members(
        self, after: "EngineState", papers: Sequence[Paper], given: Iterable[tuple[str, str]]
    ) -> dict[CandidateKind, dict[str, list[int]]]:
        """The candidates whose papers change up to ``after``, which has ``papers`` as well, by kind and id.

        ``given``: pairs of author and paper id, beyond the authors that papers name.
        """
        replaced = {self.row_of_paper[paper.id] for paper in papers if paper.id in self.row_of_paper}
        members: dict[CandidateKind, dict[str, list[int]]] = {}
        for kind in CandidateKind:
            table = self.tables[kind]
            pairs = [(key, paper.id) for paper in papers for key in paper.cited_by_ids]
            if kind is CandidateKind.AUTHORS:
                pairs = [(author.key, paper.id) for paper in papers for author in paper.authors]
                pairs += sorted(pair for pair in given if pair[1] in after.row_of_paper)
            lost_P = np.isin(table.papers, list(replaced)) if replaced else np.zeros(0, dtype=np.bool_)
            losers = table.ids[np.searchsorted(table.starts, np.flatnonzero(lost_P), side="right") - 1]
            rows = {key: set(self.papers_of(kind, key)) - replaced for key in chain(losers, (key for key, _ in pairs))}
            for key, paper_id in pairs:
                rows[key].add(after.row_of_paper[paper_id])
            members[kind] = {key: sorted(own) for key, own in rows.items()}
        return members

    def with_candidates(
        self, members: Members, vectors: Sequence[AddedVector], papers: Sequence[Paper]
    ) -> "EngineState":
        """A state with changed candidates: their papers, and vectors where there are new ones.

        Candidates without a vector are left out. ``papers``: added ones; those that cite have a title and year now.
        """
        tables = dict(self.tables)
        for kind, table in self.tables.items():
            new, old = {vector.id: vector for vector in vectors if vector.kind is kind}, table.row_of_id
            keys = [*members[kind], *new, *(paper.id for paper in papers if kind is CandidateKind.CITATIONS)]
            keys = [key for key in dict.fromkeys(keys) if key in new or key in old]
            if not keys:
                continue
            names = [new[key].name if key in new else table.names[old[key]] for key in keys]
            if kind is CandidateKind.CITATIONS:
                rows = [self.row_of_paper.get(key) for key in keys]
                names = [n if row is None else self.bank.titles[row] for n, row in zip(names, rows, strict=True)]
            vectors_RD = np.stack([new[key].vector if key in new else table.vectors[old[key]] for key in keys])
            papers_R = [members[kind][key] if key in members[kind] else self.papers_of(kind, key) for key in keys]
            papers_P = np.array(list(chain.from_iterable(papers_R)), dtype=np.int64)
            changed = self._table(kind, keys, names, vectors_RD, papers_P, np.cumsum([0, *map(len, papers_R)]))
            tables[kind] = _spliced(table, [old[key] for key in keys if key in old], changed)
        return EngineState(self.bank, tables, self.row_of_paper)

    def _table(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        names: Sequence[str],
        vectors_JD: Floats | StoredRows,
        papers_P: Ints,
        starts: Ints,
    ) -> CandidateTable:
        """A table with the years of its candidates: of their papers for authors, their own for citing papers."""
        years = np.zeros((len(ids), 2), dtype=np.int32)
        if kind is CandidateKind.CITATIONS:
            rows = [self.row_of_paper.get(key) for key in ids]
            own = [0 if row is None else int(self.bank.years[row]) for row in rows]
            years[:] = np.array([year or year_of_id(key) or 0 for year, key in zip(own, ids, strict=True)])[:, None]
        elif len(filled := np.flatnonzero(np.diff(starts))):
            years_P = self.bank.years[papers_P]
            years[filled, 0] = np.minimum.reduceat(np.where(years_P > 0, years_P, 9999), starts[filled])
            years[filled, 1] = np.maximum.reduceat(years_P, starts[filled])
        return CandidateTable(_objects(ids), _objects(names), vectors_JD, papers_P, starts, years)


def _spliced(table: CandidateTable, without: Sequence[int], new: CandidateTable) -> CandidateTable:
    """A table without some rows, followed by another one."""
    stays_J = np.ones(len(table), dtype=np.bool_)
    stays_J[without] = False
    counts_J = np.diff(table.starts)
    return CandidateTable(
        np.concatenate([table.ids[stays_J], new.ids]),
        np.concatenate([table.names[stays_J], new.names]),
        np.concatenate([table.vectors[stays_J], new.vectors[:]]),
        np.concatenate([table.papers[np.repeat(stays_J, counts_J)], new.papers]),
        np.cumsum([0, *counts_J[stays_J], *np.diff(new.starts)]),
        np.concatenate([table.years[stays_J], new.years]),
    )


def _objects(texts: Sequence[str]) -> NDArray[np.object_]:
    return np.array(texts, dtype=np.object_)
