"""Vectors of authors and citing papers fitted from all of their papers, trained and added, without retraining."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.papers.added import AddedPapers, Change
from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.results import PaperFacets
from facets.papers.scoring import fit_vector
from facets.papers.store import AddedVector
from facets.papers.trained import TrainedLookup

__all__ = ["VectorFitter"]

# A vector is fitted to at most so many papers, the latest ones.
_MAX_FITTED_PAPERS = 128
# Papers whose facets are at hand at once, and as many are kept from call to call: about 20 MB of the shipped model.
_PAPERS_AT_A_TIME = 4096


class VectorFitter:
    """Fits vectors by the rule of the training; for one caller at a time.

    Args:
        model: The model.
        trained: Its papers.
    """

    def __init__(self, model: PaperEncoder, trained: TrainedLookup) -> None:
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

        Args:
            keys: By kind, distinct ids.
            added: The papers added before.
            change: What is added now; papers of it that were encoded before are encoded again.
            name: What a candidate is called.
        """
        for paper_id in change.papers:
            self._kept.pop(paper_id, None)
        result = []
        for kind in CandidateKind:
            papers = {key: added.papers_of(kind, key, change)[-_MAX_FITTED_PAPERS:] for key in keys.get(kind, ())}
            for group in _groups({key: own for key, own in papers.items() if own}):
                self._encode([paper_id for own in group.values() for paper_id in own], added, change)
                for key, own in group.items():
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


def _groups(papers: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Sequence[str]]]:
    """Candidates a few at a time, so that the facets of all their papers have room."""
    group: dict[str, Sequence[str]] = {}
    total = 0
    for key, own in papers.items():
        if group and total + len(own) > _PAPERS_AT_A_TIME:
            yield group
            group, total = {}, 0
        group[key] = own
        total += len(own)
    if group:
        yield group


def _length(vectors_JD: NDArray[np.float32]) -> float:
    """The one length of all trained vectors."""
    return float(np.median(np.linalg.norm(vectors_JD, axis=1))) if len(vectors_JD) else 1.0
