"""Fits vectors of authors and citing papers to all of their papers, trained and added, without retraining.

Shape letters: N papers, K facets, D dimensions.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from facets.language.interruption import check_interrupted
from facets.language.tokenizer import grouped
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, PaperFacets
from facets.papers.tables import PaperBank

_MAX_FITTED_PAPERS = 128  # a vector is fitted to at most this many of a candidate's latest papers
_MAX_KEPT_PAPERS = 4096  # encoded papers kept for later additions: about 20 MB with the shipped model
_FIT_STEPS = 8


def fit_vector(
    papers_NKD: NDArray[np.float32], *, length: float, spread_DD: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Vector of a new author or citing paper, by the same rule as in training.

    Maximises ``sum_n max_k a . p_nk`` over all vectors a of the given length (Chang 2022, eq. 3.12, for one column and
    facets that are spread evenly). Alternates between choosing the best facet of each paper and scaling the sum of the
    chosen facets to that length, until the choice stays the same. ``spread_DD`` is applied last, see ``PaperTables``.
    """
    # The first choice: the facets nearest to the sum of all facets.
    vector_D = papers_NKD.sum(axis=(0, 1), dtype=np.float64)
    chosen_N = np.full(len(papers_NKD), -1)
    for _ in range(_FIT_STEPS):
        best_N = (papers_NKD @ vector_D).argmax(axis=1)
        if (best_N == chosen_N).all():
            break
        chosen_N = best_N
        vector_D = papers_NKD[np.arange(len(papers_NKD)), chosen_N].sum(axis=0, dtype=np.float64)
    vector_D = spread_DD @ vector_D
    norm = float(np.linalg.norm(vector_D))
    return (vector_D * (length / norm) if norm > 0 else vector_D).astype(np.float32)


class VectorFitter:
    """Fits vectors of candidates; for one caller at a time. Keeps recently encoded papers."""

    def __init__(self, model: PaperModel) -> None:
        self._model = model
        lengths = {kind: np.linalg.norm(model.tables.vectors[kind], axis=1) for kind in CandidateKind}
        self._lengths = {kind: float(np.median(own)) if len(own) else 1.0 for kind, own in lengths.items()}
        self._encoded: dict[int, tuple[str, str, PaperFacets]] = {}  # by row of the bank, with title and abstract

    def fit(
        self, kind: CandidateKind, members: Mapping[str, Sequence[int]], bank: PaperBank
    ) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yields id and vector ``[D]`` of candidates, given the rows of their papers; leaves out those without."""
        papers = ((key, rows[-_MAX_FITTED_PAPERS:]) for key, rows in members.items() if rows)
        for group in grouped(papers, _MAX_KEPT_PAPERS, size=lambda pair: len(pair[1])):
            self._encode({row for _, rows in group for row in rows}, bank)
            for key, rows in group:
                check_interrupted()
                facets_NKD = np.concatenate([self._encoded[row][2].scaled(kind) for row in rows])
                spread_DD = self._model.tables.spreads[kind]
                yield key, fit_vector(facets_NKD, length=self._lengths[kind], spread_DD=spread_DD)

    def _encode(self, rows: Set[int], bank: PaperBank) -> None:
        """Encodes the papers that are not kept yet; a failed addition may have left others under their rows."""
        if len(self._encoded.keys() | rows) > _MAX_KEPT_PAPERS:
            self._encoded.clear()
        texts = {row: (bank.titles[row], bank.abstracts[row]) for row in sorted(rows)}
        missing = {row: text for row, text in texts.items() if self._encoded.get(row, ("", ""))[:2] != text}
        if not missing:
            return
        trained = self._model.papers
        added = [text for row, text in missing.items() if row >= len(trained.ids)]
        read = iter(self._model.paper_rows([title for title, _ in added], [abstract for _, abstract in added]))
        words = [trained.words_of(row) if row < len(trained.ids) else next(read) for row in missing]
        encoded = self._model.encode_papers(words)
        for number, (row, text) in enumerate(missing.items()):
            paper = encoded.part(slice(number, number + 1))
            self._encoded[row] = (*text, PaperFacets(*(array.copy() for array in paper.arrays)))
