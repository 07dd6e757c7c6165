"""Papers: likely authors and citing papers of a paper that has no citations yet (Chang 2022, section 3.4)."""

from facets.papers.engine import PaperEngine
from facets.papers.records import (
    AddResult,
    Author,
    BulkCandidates,
    CandidateEvidence,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
)

__all__ = [
    "AddResult",
    "Author",
    "BulkCandidates",
    "CandidateEvidence",
    "CandidateKind",
    "NewAuthor",
    "Paper",
    "PaperEngine",
    "PaperFacets",
    "PaperOptions",
    "RankedCandidate",
    "RankedPaper",
]
