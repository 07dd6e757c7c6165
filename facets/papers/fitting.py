"""Vectors of authors and citing papers fitted from all of their papers, trained and added, without retraining."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from facets.papers.contract import PaperEncoder
from facets.papers.inputs import CandidateKind
from facets.papers.scoring import fit_vector
from facets.papers.state import Added
from facets.papers.store import AddedVector

__all__ = ["Affected", "VectorFitter"]

# A vector is fitted to at most so many papers, the latest ones.
_MAX_FITTED_PAPERS = 128

Affected = Mapping[CandidateKind, Mapping[str, str]]
"""By kind, id and name of the candidates whose papers changed."""


class VectorFitter:
    """Fits vectors by the rule of the training.

    Args:
        model: The model.
        trained_rows: Row of each trained paper, by id.
    """

    def __init__(self, model: PaperEncoder, trained_rows: Mapping[str, int]) -> None:
        self._model = model
        self._trained_rows = trained_rows

    def fit(self, affected: Affected, added: Added) -> list[AddedVector]:
        """Vectors of the affected candidates, by kind and id; those without any paper are left out."""
        papers = {
            kind: {key: own[-_MAX_FITTED_PAPERS:] for key, own in self._papers_of(kind, keys, added).items() if own}
            for kind, keys in affected.items()
        }
        ids = sorted({paper_id for of_kind in papers.values() for own in of_kind.values() for paper_id in own})
        if not ids:
            return []
        place = {paper_id: number for number, paper_id in enumerate(ids)}
        encoded = self._model.encode_papers([self._rows_of(paper_id, added) for paper_id in ids])
        result = []
        for kind, of_kind in papers.items():
            scaled_NKD = encoded.scaled(kind)
            length = _length(self._model.tables.vectors[kind])
            spread_DD = self._model.tables.spreads[kind]
            names = self._names(kind, affected[kind], added)
            for key in sorted(of_kind):
                facets_NKD = scaled_NKD[[place[paper_id] for paper_id in of_kind[key]]]
                result.append(
                    AddedVector(kind, key, names[key], fit_vector(facets_NKD, length=length, spread_DD=spread_DD))
                )
        return result

    def _papers_of(self, kind: CandidateKind, keys: Mapping[str, str], added: Added) -> dict[str, list[str]]:
        """Trained papers of each candidate, less those that were added again since, then added ones."""
        members = added.members(kind, keys)
        trained = self._model.papers
        column_of = {key: column for column, key in enumerate(trained.column_ids[kind])}
        pairs = trained.pairs[kind]
        for key, own in members.items():
            if key in column_of:
                ids = [trained.ids[row] for row in pairs[pairs[:, 1] == column_of[key], 0]]
                own[:0] = [paper_id for paper_id in ids if paper_id not in added.papers and paper_id not in own]
        return members

    def _names(self, kind: CandidateKind, keys: Mapping[str, str], added: Added) -> dict[str, str]:
        """The given name of an author, the title of a citing paper, else the trained name, else nothing."""
        trained = dict(zip(self._model.papers.column_ids[kind], self._model.papers.column_names[kind], strict=True))
        if kind is CandidateKind.AUTHORS:
            return {key: name or trained.get(key, "") for key, name in keys.items()}
        titles = {key: added.papers[key].title for key in keys if key in added.papers}
        return {key: titles.get(key) or trained.get(key, "") for key in keys}

    def _rows_of(self, paper_id: str, added: Added) -> NDArray[np.uint16]:
        if paper_id in added.papers:
            paper = added.papers[paper_id]
            return self._model.paper_rows([paper.title], [paper.abstract])[0]
        row = self._trained_rows[paper_id]
        offsets = self._model.papers.offsets
        return self._model.papers.rows[offsets[row] : offsets[row + 1]]


def _length(vectors_JD: NDArray[np.float32]) -> float:
    """The one length of all trained vectors."""
    return float(np.median(np.linalg.norm(vectors_JD, axis=1))) if len(vectors_JD) else 1.0
