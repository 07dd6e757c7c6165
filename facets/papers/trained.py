"""Who wrote and who cites the papers of the training, looked up from either side.

Shape letters: I papers, J candidates, P pairs.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from facets.papers.inputs import CandidateKind
from facets.papers.tables import TrainedPapers

__all__ = ["TrainedLookup"]


class TrainedLookup:
    """The pairs of the training by paper and by candidate.

    Args:
        papers: The papers of a model.

    Attributes:
        row_of: Row of each paper, by id.
        column_of: By kind, column of each candidate, by id.
    """

    def __init__(self, papers: TrainedPapers) -> None:
        self._papers = papers
        self.row_of = {paper_id: row for row, paper_id in enumerate(papers.ids)}
        self.column_of = {
            kind: {key: column for column, key in enumerate(papers.column_ids[kind])} for kind in CandidateKind
        }
        self._starts = {
            kind: np.searchsorted(papers.pairs[kind][:, 1], np.arange(len(papers.column_ids[kind]) + 1))
            for kind in CandidateKind
        }

    def papers_of(self, kind: CandidateKind, key: str) -> list[str]:
        """Ids of a candidate's papers; none of an unknown one."""
        column = self.column_of[kind].get(key)
        if column is None:
            return []
        first, last = self._starts[kind][column : column + 2]
        return [self._papers.ids[row] for row in self._papers.pairs[kind][first:last, 0]]

    def candidates_of(self, kind: CandidateKind, paper_id: str) -> list[str]:
        """Ids of who wrote, or who cites, a paper; none of an unknown one."""
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
        """By kind, papers ``[P]``, ascending, and their candidates ``[P]``; the first addition needs them."""
        found = {}
        for kind in CandidateKind:
            pairs_P2 = self._papers.pairs[kind]
            order = np.argsort(pairs_P2[:, 0], kind="stable")
            found[kind] = pairs_P2[order, 0], pairs_P2[order, 1]
        return found
