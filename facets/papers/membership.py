"""Which papers belong to which candidate: pairs from training, and pairs added since.

A candidate is an author or a citing paper; its papers are those it wrote or cites. P is the number of pairs.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from facets.papers.records import CandidateKind, Paper
from facets.papers.trained import TrainedPapers

# By kind and candidate, ids of papers in order, as the keys of a dictionary.
_Members = dict[CandidateKind, dict[str, dict[str, None]]]


class TrainedLookup:
    """Pairs from training, by paper and by candidate.

    Attributes:
        row_of: Row of each paper, by id.
    """

    def __init__(self, papers: TrainedPapers) -> None:
        self._papers = papers
        self.row_of = {paper_id: row for row, paper_id in enumerate(papers.ids)}
        self._column_of = {
            kind: {key: column for column, key in enumerate(papers.column_ids[kind])} for kind in CandidateKind
        }
        self._starts = {
            kind: np.searchsorted(papers.pairs[kind][:, 1], np.arange(len(papers.column_ids[kind]) + 1))
            for kind in CandidateKind
        }

    def papers_of(self, kind: CandidateKind, key: str) -> list[str]:
        """Ids of a candidate's papers; empty for an unknown candidate."""
        column = self._column_of[kind].get(key)
        if column is None:
            return []
        first, last = self._starts[kind][column : column + 2]
        return [self._papers.ids[row] for row in self._papers.pairs[kind][first:last, 0]]

    def candidates_of(self, kind: CandidateKind, paper_id: str) -> list[str]:
        """Ids of a paper's authors or citing papers; empty for an unknown paper."""
        row = self.row_of.get(paper_id)
        if row is None:
            return []
        papers_P, columns_P = self._by_paper[kind]
        first, last = np.searchsorted(papers_P, [row, row + 1])
        return [self._papers.column_ids[kind][column] for column in columns_P[first:last]]

    def words_of(self, paper_id: str) -> NDArray[np.uint16]:
        """Typed word rows of a known paper."""
        row, offsets = self.row_of[paper_id], self._papers.offsets
        return self._papers.rows[offsets[row] : offsets[row + 1]]

    @cached_property
    def _by_paper(self) -> dict[CandidateKind, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """By kind, papers ``[P]``, ascending, and their candidates ``[P]``; only additions need them."""
        sorted_pairs = {}
        for kind in CandidateKind:
            pairs_P2 = self._papers.pairs[kind]
            order = np.argsort(pairs_P2[:, 0], kind="stable")
            sorted_pairs[kind] = pairs_P2[order, 0], pairs_P2[order, 1]
        return sorted_pairs


class AddedPapers:
    """Papers added since training, and their candidates; immutable: ``extended`` returns a new object.

    Attributes:
        papers: Added papers by id, in order of their latest addition.
    """

    def __init__(self, trained: TrainedLookup) -> None:
        self._trained = trained
        self.papers: dict[str, Paper] = {}
        self._named: _Members = {kind: {} for kind in CandidateKind}
        self._given: dict[str, frozenset[str]] = {}  # by author, ids of papers beyond those that name the author
        self._given_to: dict[str, frozenset[str]] = {}  # by paper, the authors it was given to

    def extended(self, papers: Mapping[str, Paper], given: Iterable[tuple[str, str]] = ()) -> "AddedPapers":
        """A copy with more papers and pairs of author and paper id; a known paper id replaces the earlier version."""
        longer = AddedPapers(self._trained)
        longer.papers = {key: paper for key, paper in self.papers.items() if key not in papers} | dict(papers)
        changed: _Members = {kind: {} for kind in CandidateKind}

        def members(kind: CandidateKind, key: str) -> dict[str, None]:
            return changed[kind].setdefault(key, dict(self._named[kind].get(key, {})))

        for paper_id, paper in papers.items():
            if paper_id in self.papers:
                for kind in CandidateKind:
                    for key in candidates_of(kind, self.papers[paper_id]):
                        members(kind, key).pop(paper_id, None)
            for kind in CandidateKind:
                for key in candidates_of(kind, paper):
                    members(kind, key)[paper_id] = None
        longer._named = {kind: self._named[kind] | changed[kind] for kind in CandidateKind}
        longer._given, longer._given_to = dict(self._given), dict(self._given_to)
        for key, paper_id in sorted(given):  # keeps the order of new authors independent of set order
            longer._given[key] = longer._given.get(key, frozenset()) | {paper_id}
            longer._given_to[paper_id] = longer._given_to.get(paper_id, frozenset()) | {key}
        return longer

    def is_known(self, paper_id: str) -> bool:
        """Whether a paper was added or trained on."""
        return paper_id in self.papers or paper_id in self._trained.row_of

    def papers_of(self, kind: CandidateKind, key: str) -> list[str]:
        """Ids of a candidate's papers: trained ones, added ones in order, those given to it by id."""
        added = list(self._named[kind].get(key, ()))
        if kind is CandidateKind.AUTHORS:
            added += sorted(self._given.get(key, frozenset()).difference(added))
        seen = set(added)
        trained = self._trained.papers_of(kind, key)
        return [paper_id for paper_id in trained if paper_id not in seen and paper_id not in self.papers] + added

    def candidates(self, kind: CandidateKind, paper_id: str) -> list[str]:
        """Ids of a paper's candidates: named in its latest version, or given the paper by id."""
        if paper_id in self.papers:
            keys = candidates_of(kind, self.papers[paper_id])
        else:
            keys = self._trained.candidates_of(kind, paper_id)
        return keys + (sorted(self._given_to.get(paper_id, ())) if kind is CandidateKind.AUTHORS else [])

    def given_authors(self) -> Iterable[str]:
        """Authors who were given papers by id."""
        return self._given


def affected_candidates(
    before: AddedPapers, after: AddedPapers, paper_ids: Iterable[str], given_to: Iterable[str]
) -> dict[CandidateKind, list[str]]:
    """By kind, the candidates whose papers or paper texts an addition changes, without duplicates.

    ``paper_ids``: the added papers. ``given_to``: authors who were given papers by id.
    """
    paper_ids = list(paper_ids)
    affected = {}
    for kind in CandidateKind:
        keys = [key for paper_id in paper_ids for key in before.candidates(kind, paper_id)]
        keys += [key for paper_id in paper_ids for key in candidates_of(kind, after.papers[paper_id])]
        keys += sorted(given_to) if kind is CandidateKind.AUTHORS else []
        affected[kind] = list(dict.fromkeys(keys))
    return affected


def candidates_of(kind: CandidateKind, paper: Paper) -> list[str]:
    """Ids of the authors or citing papers that a paper names."""
    return [author.key for author in paper.authors] if kind is CandidateKind.AUTHORS else list(paper.cited_by_ids)
