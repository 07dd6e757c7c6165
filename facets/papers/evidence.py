"""Why a candidate was found: the facet that brought it in, the words near that facet, and its papers most like it.

Shape letters: K facets, D dimensions, V words, W of documents.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.papers.candidates import CandidateTable, PaperBank
from facets.papers.contract import PaperEncoder
from facets.papers.results import CandidateEvidence

__all__ = ["EvidenceFinder"]

_NEAREST_WORDS = 8
_NEAREST_PAPERS = 3


class EvidenceFinder:
    """Finds the evidence of one paper and one candidate at a time.

    Args:
        model: Gives the words and their place in the space of the facets.
    """

    def __init__(self, model: PaperEncoder) -> None:
        self._model = model

    def evidence(
        self,
        table: CandidateTable,
        bank: PaperBank,
        row: int,
        *,
        facets_KD: NDArray[np.float32],
        document_W: NDArray[np.float32],
    ) -> CandidateEvidence:
        """The evidence of a candidate.

        Args:
            table: The candidates.
            bank: Their papers.
            row: Of the candidate.
            facets_KD: The paper's facets with their magnitudes.
            document_W: It as a document.
        """
        facet = int((facets_KD @ table.vectors[row]).argmax())
        words = self._model.words.vocabulary.words
        cosines_V = self._word_facets @ unit_rows(facets_KD[facet : facet + 1])[0]
        best = np.argsort(-cosines_V, kind="stable")[:_NEAREST_WORDS]
        papers = table.papers_of(row)
        likeness = bank.documents[papers] @ document_W
        nearest = np.argsort(-likeness, kind="stable")[:_NEAREST_PAPERS]
        return CandidateEvidence(
            facet,
            tuple((words[word], float(cosines_V[word])) for word in best),
            tuple((bank.ids[papers[n]], bank.titles[papers[n]], float(likeness[n])) for n in nearest),
        )

    @cached_property
    def _word_facets(self) -> NDArray[np.float32]:
        """Unit word vectors in the space of the facets (H of eq. B.4), ``[V, D]``; zero for stop words."""
        facets_VD = unit_rows(self._model.words_as_facets())
        facets_VD[self._model.words.vocabulary.is_stop[:-1]] = 0.0
        return facets_VD
