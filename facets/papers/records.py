"""What is asked about papers and what comes back: plain frozen values.

Shape letters: N papers, K facets, D dimensions, W of documents, T top_k.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from facets.errors import ErrorPath, InvalidInputError, path_text

_NEW_ANTHOLOGY = re.compile(r"(19|20)\d\d\.[a-z]")  # 2020.acl-main.1
_OLD_ANTHOLOGY = re.compile(r"[A-Z](\d\d)-\d{4}")  # P06-1057
_CENTURY = 50  # the Anthology's two-digit years: 52 to 99, then 00 on
MAX_EXAMPLE_WEIGHT = 1_000.0  # far more than any score; a sum with it stays a finite float32


class CandidateKind(StrEnum):
    """What is recommended for a paper: who would write it, or which papers would cite it."""

    AUTHORS = "authors"
    CITATIONS = "citations"


@dataclass(frozen=True, slots=True)
class Author:
    """An author of a paper."""

    name: str  # as it is to be shown; names are matched as given, letter for letter
    id: str = ""  # the author's own id, when there is one; it wins over the name. Empty: the name is the id.

    @property
    def key(self) -> str:
        """What two mentions of the same person have in common: the id, else the name."""
        return self.id or self.name


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its text, and what is known of it.

    Attributes:
        title: At least one word.
        abstract: May be empty; then the title stands alone.
        id: Unique among the papers of a call; needed by ``add_papers`` and ``rank_papers`` only.
        authors: Who wrote it; used by ``add_papers``.
        cited_by_ids: Ids of the papers that cite it; used by ``add_papers``.
        year: Of publication; None when unknown.
        excluded_ids: Candidates never recommended for this paper (conflicts of interest); ids or names.
    """

    title: str
    abstract: str = ""
    id: str = ""
    authors: tuple[Author, ...] = ()
    cited_by_ids: tuple[str, ...] = ()
    year: int | None = None
    excluded_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewAuthor:
    """An author to add after training; the vector is fitted from what he or she wrote."""

    author: Author  # name and optional id
    papers: tuple[Paper, ...] = ()  # what was written, at least one
    paper_ids: tuple[str, ...] = ()  # further papers, by id, that are known already (trained on or added)


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperOptions:
    """How candidates are filtered and scored; the same for every paper of a call.

    Attributes:
        top_k: Most results a paper, at least 1; fewer come back when fewer candidates are left.
        excluded_ids: Ids of candidates never recommended; unknown ids are ignored, an empty list excludes nobody.
        candidates: Ids to choose from, None for all known; an empty list gives empty answers.
        from_year: Authors: with a paper of this year or later. Citing papers: published in or after. None: any.
        to_year: Likewise, up to this year. With either bound, candidates of unknown year are left out.
        positive_ids: Ids of candidates whose like is wanted: those near one of them in the space of candidates rise.
        negative_ids: Ids of candidates whose like is not wanted.
        example_weight: What a cosine of 1 to an example adds to (takes from) a score, in [0, 1000].
        facet_weight: Share of the facets in the hybrid score, in [0, 1]: 1 is facets only, 0 document similarity
            only, None the weight tuned for the model.
        evidence: Also say why, at the cost of some milliseconds a paper.
        diversify: How much the candidates shall differ, in [0, 1]; above 0 they are not in the order of scores: who
            shares papers with one above (authors), or cites the same (citing papers), comes later.

    Raises:
        InvalidInputError: A value breaks its rule.
    """

    top_k: int = 10
    excluded_ids: Sequence[str] = ()
    candidates: Sequence[str] | None = None
    from_year: int | None = None
    to_year: int | None = None
    positive_ids: Sequence[str] = ()
    negative_ids: Sequence[str] = ()
    example_weight: float = 0.25
    facet_weight: float | None = None
    evidence: bool = False
    diversify: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.diversify <= 1:
            raise InvalidInputError(f"must be in [0, 1], got {self.diversify}", path="diversify")
        if self.top_k < 1:
            raise InvalidInputError(f"must be >= 1, got {self.top_k}", path="top_k")
        if self.facet_weight is not None and not 0 <= self.facet_weight <= 1:
            raise InvalidInputError(f"must be in [0, 1], got {self.facet_weight}", path="facet_weight")
        if not 0 <= self.example_weight <= MAX_EXAMPLE_WEIGHT:
            rule = f"must be in [0, {MAX_EXAMPLE_WEIGHT:g}], got {self.example_weight}"
            raise InvalidInputError(rule, path="example_weight")
        if self.from_year is not None and self.to_year is not None and self.from_year > self.to_year:
            raise InvalidInputError(f"must be <= to_year, got {self.from_year} > {self.to_year}", path="from_year")
        for name in ("excluded_ids", "candidates", "positive_ids", "negative_ids"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a sequence of ids, got one str")


def check_papers(papers: Sequence[Paper], path: ErrorPath = ("papers",)) -> None:
    """Refuses papers without a title.

    Raises:
        InvalidInputError: Names the first such paper in ``field``.
        TypeError: ``papers`` is a string or holds something else.
    """
    if isinstance(papers, str):
        raise TypeError(f"{path_text(path)} must be a sequence of Paper, got one str")
    for number, paper in enumerate(papers):
        if not isinstance(paper, Paper):
            raise TypeError(f"{path_text((*path, number))} must be a Paper, got {type(paper).__name__}")
        if not paper.title or paper.title.isspace():
            where = (*path, number, "title")
            raise InvalidInputError("has no words, expected at least one", path=where)


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """Why a candidate was recommended."""

    facet: int  # number of the paper's facet that brought the candidate in, from 0; the one of the best inner product
    # Words nearest to that facet with their cosine in [-1, 1], best first.
    nearest_words: tuple[tuple[str, float], ...] = ()
    # Papers of the candidate most like the paper: id, title, cosine in [-1, 1], best first. For a citing paper these
    # are papers that it cites.
    nearest_papers: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate for a paper."""

    id: str  # of the author (id, else name) or of the citing paper
    name: str  # the author's name; the citing paper's title, empty when it is not known
    score: float  # the score that ranks, higher is better; hybrid of the next two
    facet_score: float  # eq. 3.13, `max(0, max_k a^T p_k)`, >= 0
    document_score: float  # greatest cosine of the paper with one of the candidate's papers, in [-1, 1]
    evidence: CandidateEvidence | None = None  # only when asked for
    # How probable it is that the paper lies in the candidate's field at all, in [0, 1]; never above that of a candidate
    # above. None where the model has no curve for it, or the papers were encoded before.
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class RankedPaper:
    """A paper for an author or a citing paper."""

    position: int  # its place among the papers given
    id: str  # its id
    score: float  # as in `RankedCandidate`
    facet_score: float  # as in `RankedCandidate`
    document_score: float  # as in `RankedCandidate`
    evidence: CandidateEvidence | None = None  # only when asked for


@dataclass(frozen=True, slots=True)
class PaperFacets:
    """Encoded papers, so that a collection need not be encoded again for every query."""

    facets: NDArray[np.float32]  # `[N, K, D]` float32, the `p_k` of eq. 3.15 without magnitudes
    author_magnitudes: NDArray[np.float32]  # `[N, K]` float32, rho
    citation_magnitudes: NDArray[np.float32]  # `[N, K]` float32, tau
    # `[N, W]` float32, weighted averages of all words (eq. B.4), mapped as facets map theirs, zero without a known
    # word; beside them a sentence vector where the model has them. Inner products are cosines.
    documents: NDArray[np.float32]

    def __len__(self) -> int:
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
    """The best candidates of many papers, as arrays: a whole conference in two matrices."""

    candidate_ids: Sequence[str]  # ids that `rows` points into
    rows: NDArray[np.int64]  # `[N, T]` int64, best first, ties by id; -1 where no candidate is left
    scores: NDArray[np.float32]  # `[N, T]` float32; `-inf` where no candidate is left


@dataclass(frozen=True, slots=True)
class AddResult:
    """What an addition did; everything in it was durable when it came back."""

    num_papers: int = 0  # papers stored
    num_authors: int = 0  # authors whose vector is new or was fitted again
    num_citing_papers: int = 0  # citing papers whose vector is new or was fitted again
    # Entries of `cited_by_ids` that are no known paper; they still count as citing papers.
    unknown_citations: tuple[str, ...] = field(default=())


def year_of_id(paper_id: str) -> int | None:
    """The year in an id of the ACL Anthology, else None.

    Example:
        >>> year_of_id("P06-1057"), year_of_id("2020.acl-main.1"), year_of_id("abc")
        (2006, 2020, None)
    """
    if _NEW_ANTHOLOGY.match(paper_id):
        return int(paper_id[:4])
    if match := _OLD_ANTHOLOGY.fullmatch(paper_id):
        short = int(match.group(1))
        return short + (1900 if short >= _CENTURY else 2000)
    return None
