"""Fits vectors of authors and citing papers to all of their papers, trained and added, without retraining.

Shape letters: N papers, K facets, D dimensions, P papers of the training.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.language.interruption import check_interrupted
from facets.language.tokenizer import grouped
from facets.papers.membership import AddedPapers, TrainedLookup
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, PaperFacets
from facets.papers.store import AddedVector

_MAX_FITTED_PAPERS = 128  # a vector is fitted to at most this many of a candidate's latest papers
_MAX_KEPT_PAPERS = 4096  # encoded papers kept for later additions: about 20 MB with the shipped model
_FIT_STEPS = 8
_SPREAD_POWER = 0.5
_SPREAD_FLOOR = 0.02  # share of the mean variance, for directions that facets hardly use


def fit_vector(
    papers_NKD: NDArray[np.float32], *, length: float, spread_DD: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Vector of a new author or citing paper, by the same rule as in training.

    Maximises ``sum_n max_k a . p_nk`` over all vectors a of the given length. Alternates between choosing the best
    facet of each paper and scaling the sum of the chosen facets to that length, until the choice stays the same.

    Args:
        papers_NKD: Facets with magnitudes, at least one paper.
        length: Length of the vector, equal to that of the trained vectors.
        spread_DD: Matrix applied to the sum at the end (``spread_matrix``); None: the identity.

    Returns:
        ``[D]`` float32.

    References:
        Chang 2022, eq. 3.12, for one column and facets that are spread evenly.
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
    if spread_DD is not None:
        vector_D = spread_DD @ vector_D
    norm = float(np.linalg.norm(vector_D))
    return (vector_D * (length / norm) if norm > 0 else vector_D).astype(np.float32)


def spread_matrix(facets_PD: NDArray[np.float32]) -> NDArray[np.float32]:
    """``C^(-1/2)`` of the second moment ``C`` of facets, ``[D, D]``: reduces the weight of what all papers share.

    Where facets are not spread evenly, the minimum of eq. 3.12 is ``(C + ...)^-1`` times the sum of the matched facets.
    The full inverse trusts rare directions too much: of the powers 0, 1/4, 1/2, 3/4 and 1, 1/2 did best on
    development data.
    """
    if not len(facets_PD):
        return np.eye(facets_PD.shape[1], dtype=np.float32)
    variances, axes = np.linalg.eigh(facets_PD.T @ facets_PD / len(facets_PD))
    variances = np.maximum(variances, 0.0) / max(float(variances.mean()), 1e-12) + _SPREAD_FLOOR
    return ((axes * variances**-_SPREAD_POWER) @ axes.T).astype(np.float32)


class VectorFitter:
    """Fits vectors of candidates; for one caller at a time. Keeps recently encoded papers."""

    def __init__(self, model: PaperModel, trained: TrainedLookup) -> None:
        self._model = model
        self._trained = trained
        self._encoded: dict[str, PaperFacets] = {}
        self._lengths = {kind: _median_length(model.tables.vectors[kind]) for kind in CandidateKind}

    def fit(
        self,
        candidates: Mapping[CandidateKind, Sequence[str]],
        added: AddedPapers,
        *,
        changed: Sequence[str] = (),
        name: Callable[[CandidateKind, str], str],
    ) -> list[AddedVector]:
        """Vectors of candidates; candidates without papers are left out.

        Args:
            candidates: Ids by kind.
            added: All added papers.
            changed: Ids of papers whose text is new.
            name: Returns the name of a candidate.
        """
        for paper_id in changed:
            self._encoded.pop(paper_id, None)
        vectors = []
        for kind in CandidateKind:
            papers = ((key, added.papers_of(kind, key)[-_MAX_FITTED_PAPERS:]) for key in candidates.get(kind, ()))
            with_papers = (pair for pair in papers if pair[1])
            for group in grouped(with_papers, _MAX_KEPT_PAPERS, size=lambda pair: len(pair[1])):
                self._encode([paper_id for _, paper_ids in group for paper_id in paper_ids], added)
                for key, paper_ids in group:
                    check_interrupted()
                    facets_NKD = np.concatenate([self._encoded[paper_id].scaled(kind) for paper_id in paper_ids])
                    spread_DD = self._model.tables.spreads[kind]
                    vector_D = fit_vector(facets_NKD, length=self._lengths[kind], spread_DD=spread_DD)
                    vectors.append(AddedVector(kind, key, name(kind, key), vector_D))
        return vectors

    def _encode(self, ids: Sequence[str], added: AddedPapers) -> None:
        """Encodes the papers that are not cached yet."""
        if len(self._encoded.keys() | ids) > _MAX_KEPT_PAPERS:
            self._encoded.clear()
        missing = [paper_id for paper_id in dict.fromkeys(ids) if paper_id not in self._encoded]
        if not missing:
            return
        texts = [added.papers[paper_id] for paper_id in missing if paper_id in added.papers]
        text_rows = iter(self._model.paper_rows([p.title for p in texts], [p.abstract for p in texts]))
        rows = [next(text_rows) if p in added.papers else self._trained.words_of(p) for p in missing]
        encoded = self._model.encode_papers(rows)
        for row, paper_id in enumerate(missing):
            paper = encoded.part(slice(row, row + 1))
            self._encoded[paper_id] = PaperFacets(*(array.copy() for array in paper.arrays))


def _median_length(vectors_JD: NDArray[np.float32]) -> float:
    return float(np.median(np.linalg.norm(vectors_JD, axis=1))) if len(vectors_JD) else 1.0
