"""Vectors of authors and citing papers fitted from all of their papers, trained and added, without retraining.

Shape letters: N papers, K facets, D dimensions, P papers of the training, J candidates.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.language.interruption import check_interrupted
from facets.language.tokenizer import grouped
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperFacets
from facets.papers.store import AddedPapers, AddedVector, Change
from facets.papers.trained import TrainedLookup

# A vector is fitted to at most so many papers, the latest ones.
_MAX_FITTED_PAPERS = 128
# Papers whose facets are at hand at once, and as many are kept from call to call: about 20 MB of the shipped model.
_PAPERS_AT_A_TIME = 4096
_FIT_STEPS = 8
_SPREAD_POWER = 0.5
_SPREAD_FLOOR = 0.02  # of the mean variance, for directions that facets hardly use


def fit_vector(
    papers_NKD: NDArray[np.float32], *, length: float, spread_DD: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """The vector of a new author (citing paper) from his or her papers, by the rule of the training.

    ``max_a sum_n max_k a . p_nk`` over all a of the given length: the sum of the facets that the papers offer, each
    its best one, brought to that length; alternated with the choice of the facets until it stands.

    ``papers_NKD``: facets with magnitudes of the papers, at least one. ``length``: that of the trained vectors.
    ``spread_DD``: what the sum is multiplied by in the end (``spread_matrix``); None: nothing. Returns ``[D]`` float32.

    References:
        Chang 2022, eq. 3.12, for one column and facets that are spread evenly.
    """
    # The first choice: the facet nearest to all facets together.
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
    """``C^(-1/2)`` of the second moment ``C`` of facets, ``[D, D]``: takes weight from what all papers share.

    Where facets are not spread evenly, the vector that minimises eq. 3.12 is ``(C + ...)^-1`` times the sum of the
    matched facets. The full inverse trusts rare directions too much; of the powers 0, 1/4, 1/2, 3/4 and 1 the
    half did best on development data.
    """
    if not len(facets_PD):
        return np.eye(facets_PD.shape[1], dtype=np.float32)
    variances, axes = np.linalg.eigh(facets_PD.T @ facets_PD / len(facets_PD))
    variances = np.maximum(variances, 0.0) / max(float(variances.mean()), 1e-12) + _SPREAD_FLOOR
    return ((axes * variances**-_SPREAD_POWER) @ axes.T).astype(np.float32)


class VectorFitter:
    """Fits vectors by the rule of the training; for one caller at a time."""

    def __init__(self, model: PaperModel, trained: TrainedLookup) -> None:
        self._model = model
        self._trained = trained
        self._kept: OrderedDict[str, PaperFacets] = OrderedDict()
        self._lengths = {kind: _length(model.tables.vectors[kind]) for kind in CandidateKind}

    def fit(
        self,
        keys: Mapping[CandidateKind, Sequence[str]],
        added: AddedPapers,
        change: Change,
        *,
        name: Callable[[CandidateKind, str], str],
    ) -> list[AddedVector]:
        """Vectors of candidates after a change, by kind; those without any paper are left out.

        ``keys``: by kind, distinct ids. ``added``: the papers added before. ``change``: what is added now; papers of it
        that were encoded before are encoded again.
        """
        for paper_id in change.papers:
            self._kept.pop(paper_id, None)
        result = []
        for kind in CandidateKind:
            papers = ((key, added.papers_of(kind, key, change)[-_MAX_FITTED_PAPERS:]) for key in keys.get(kind, ()))
            # A few at a time, so that the facets of all their papers have room.
            for group in grouped((one for one in papers if one[1]), _PAPERS_AT_A_TIME, size=lambda one: len(one[1])):
                self._encode([paper_id for _, own in group for paper_id in own], added, change)
                for key, own in group:
                    check_interrupted()
                    vector = self._fitted(kind, own)
                    result.append(AddedVector(kind, key, name(kind, key), vector))
        return result

    def _fitted(self, kind: CandidateKind, papers: Sequence[str]) -> NDArray[np.float32]:
        facets_NKD = np.concatenate([self._kept[paper_id].scaled(kind) for paper_id in papers])
        return fit_vector(facets_NKD, length=self._lengths[kind], spread_DD=self._model.tables.spreads[kind])

    def _encode(self, ids: Sequence[str], added: AddedPapers, change: Change) -> None:
        """Brings papers among those kept; the ones that were used longest ago go."""
        new = [paper_id for paper_id in dict.fromkeys(ids) if paper_id not in self._kept]
        encoded = self._model.encode_papers(self._rows(new, added, change)) if new else None
        for place, paper_id in enumerate(new):
            assert encoded is not None
            one = encoded.part(slice(place, place + 1))
            self._kept[paper_id] = PaperFacets(*(array.copy() for array in one.arrays))
        for paper_id in ids:
            self._kept.move_to_end(paper_id)
        while len(self._kept) > max(_PAPERS_AT_A_TIME, len(set(ids))):
            self._kept.popitem(last=False)

    def _rows(self, ids: Sequence[str], added: AddedPapers, change: Change) -> list[NDArray[np.uint16]]:
        """Typed rows of papers, in order; an added version wins."""
        versions: dict[str, Paper] = {
            paper_id: change.papers.get(paper_id) or added.papers[paper_id]
            for paper_id in ids
            if paper_id in change.papers or paper_id in added.papers
        }
        texts = list(versions.values())
        rows = self._model.paper_rows([paper.title for paper in texts], [paper.abstract for paper in texts])
        rows_of = dict(zip(versions, rows, strict=True))
        return [rows_of[key] if key in rows_of else self._trained.words_of(key) for key in ids]


def _length(vectors_JD: NDArray[np.float32]) -> float:
    return float(np.median(np.linalg.norm(vectors_JD, axis=1))) if len(vectors_JD) else 1.0
