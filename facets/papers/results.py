"""What comes back about papers: plain frozen values.

Shape letters: N papers, K facets, D dimensions, W of documents, T top_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facets.papers.inputs import CandidateKind

__all__ = ["AddResult", "BulkCandidates", "CandidateEvidence", "PaperFacets", "RankedCandidate", "RankedPaper"]


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """Why a candidate was recommended.

    Attributes:
        facet: Number of the paper's facet that brought the candidate in, from 0; the one of the best inner product.
        nearest_words: Words nearest to that facet with their cosine in [-1, 1], best first.
        nearest_papers: Papers of the candidate most like the paper: id, title, cosine in [-1, 1], best first.
            For a citing paper these are papers that it cites.
    """

    facet: int
    nearest_words: tuple[tuple[str, float], ...] = ()
    nearest_papers: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate for a paper.

    Attributes:
        id: Of the author (id, else name) or of the citing paper.
        name: The author's name; the citing paper's title, empty when it is not known.
        score: The score that ranks, higher is better; hybrid of the next two.
        facet_score: eq. 3.13, ``max(0, max_k a^T p_k)``, >= 0.
        document_score: Greatest cosine of the paper with one of the candidate's papers, in [-1, 1].
        evidence: Only when asked for.
    """

    id: str
    name: str
    score: float
    facet_score: float
    document_score: float
    evidence: CandidateEvidence | None = None


@dataclass(frozen=True, slots=True)
class RankedPaper:
    """A paper for an author or a citing paper.

    Attributes:
        row: Its place among the papers given.
        id: Its id.
        score: As in ``RankedCandidate``.
        facet_score: As in ``RankedCandidate``.
        document_score: As in ``RankedCandidate``.
        evidence: Only when asked for.
    """

    row: int
    id: str
    score: float
    facet_score: float
    document_score: float
    evidence: CandidateEvidence | None = None


@dataclass(frozen=True, slots=True)
class PaperFacets:
    """Encoded papers, so that a collection need not be encoded again for every query.

    Attributes:
        facets: ``[N, K, D]`` float32, the ``p_k`` of eq. 3.15 without magnitudes.
        author_magnitudes: ``[N, K]`` float32, rho.
        citation_magnitudes: ``[N, K]`` float32, tau.
        documents: ``[N, W]`` float32, weighted averages of all words (eq. B.4), mapped as facets map theirs, zero
            without a known word; beside them a sentence vector where the model has them. Inner products are cosines.
    """

    facets: NDArray[np.float32]
    author_magnitudes: NDArray[np.float32]
    citation_magnitudes: NDArray[np.float32]
    documents: NDArray[np.float32]

    def __len__(self) -> int:
        """N."""
        return len(self.facets)

    @property
    def arrays(self) -> tuple[NDArray[np.float32], ...]:
        """The arrays, in their order."""
        return self.facets, self.author_magnitudes, self.citation_magnitudes, self.documents

    def part(self, places: "slice | NDArray[np.int64]") -> "PaperFacets":
        """Some of the papers."""
        return PaperFacets(*(array[places] for array in self.arrays))

    def scaled(self, kind: CandidateKind) -> NDArray[np.float32]:
        """``[N, K, D]``: the facets with the magnitudes for authors or for citations (eq. 3.15)."""
        magnitudes = self.author_magnitudes if kind is CandidateKind.AUTHORS else self.citation_magnitudes
        return self.facets * magnitudes[:, :, None]


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """The best candidates of many papers, as arrays: a whole conference in two matrices.

    Attributes:
        candidate_ids: Ids that ``rows`` points into.
        rows: ``[N, T]`` int64, best first, ties by id; -1 where no candidate is left.
        scores: ``[N, T]`` float32; ``-inf`` where no candidate is left.
    """

    candidate_ids: Sequence[str]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AddResult:
    """What an addition did; everything in it was durable when it came back.

    Attributes:
        papers: Papers stored.
        authors: Authors whose vector is new or was fitted again.
        citing_papers: Citing papers whose vector is new or was fitted again.
        unknown_citations: Entries of ``cited_by_ids`` that are no known paper; they still count as citing papers.
    """

    papers: int = 0
    authors: int = 0
    citing_papers: int = 0
    unknown_citations: tuple[str, ...] = field(default=())
