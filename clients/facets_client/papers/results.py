"""What recommending authors and citing papers takes and returns: plain frozen dataclasses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from facets_client.core.results import ModelVersion, NearestWord, Timings
from facets_client.core.values import check_sequences
from facets_client.filters import Filter

CandidateKind = Literal["authors", "citations"]


@dataclass(frozen=True, slots=True)
class PaperAuthor:
    """An author of a paper; the id, when there is one, wins over the name."""

    name: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and what is known of it.

    Attributes:
        title: At least one word.
        abstract: Empty when there is none.
        id: Unique in a call; needed to add papers.
        authors: Who wrote it; used when papers are added.
        cited_by: Ids of the papers that cite it; used when papers are added.
        year: Of publication.
        excluded: Ids or names of candidates never recommended for this paper (conflicts of interest).
    """

    title: str
    abstract: str = ""
    id: str = ""
    authors: Sequence[PaperAuthor] = ()
    cited_by: Sequence[str] = ()
    year: int | None = None
    excluded: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_sequences(authors=self.authors, cited_by=self.cited_by, excluded=self.excluded)


@dataclass(frozen=True, slots=True)
class NewAuthor:
    """An author to add: what he or she wrote, in full or by id; at least one paper."""

    author: PaperAuthor
    papers: Sequence[Paper] = ()
    paper_ids: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_sequences(papers=self.papers, paper_ids=self.paper_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperOptions:
    """Which candidates, and how they are scored.

    Attributes:
        top_k: Candidates for each paper.
        exclude: Ids of candidates never recommended.
        candidates: Only these ids; None: all. An empty list gives empty answers.
        where: Condition on the year of a paper of the author, or of the citing paper: ``Range("year", gte=2015)``.
            Candidates of unknown years are left out.
        positive: Ids of candidates whose like is wanted.
        negative: Ids of candidates whose like is not wanted.
        example_weight: What a cosine of 1 to an example counts; None: the server's choice.
        facet_weight: Share of the facets in the score, in [0, 1]; None: tuned for the model.
        evidence: Say why; not for bulk calls.
    """

    top_k: int = 10
    exclude: Sequence[str] = ()
    candidates: Sequence[str] | None = None
    where: Filter | None = None
    positive: Sequence[str] = ()
    negative: Sequence[str] = ()
    example_weight: float | None = None
    facet_weight: float | None = None
    evidence: bool = False

    def __post_init__(self) -> None:
        check_sequences(
            exclude=self.exclude, candidates=self.candidates, positive=self.positive, negative=self.negative
        )


@dataclass(frozen=True, slots=True)
class NearestPaper:
    """A paper of a candidate: written by the author, or cited by the citing paper."""

    id: str
    title: str
    cosine: float  # with the paper that was asked about, in [-1, 1]


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """Why: the facet of the paper that brought the candidate in, and the candidate's papers most like it."""

    facet: int
    nearest_words: tuple[NearestWord, ...]
    nearest_papers: tuple[NearestPaper, ...]


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate for a paper."""

    id: str  # of the author (the name when there is no id) or of the citing paper
    name: str  # name or title; empty when it is not known
    score: float  # what ranks
    facet_score: float  # greatest inner product with a facet, >= 0
    document_score: float  # similarity with the candidate's papers, in [-1, 1]
    evidence: CandidateEvidence | None  # when asked for


@dataclass(frozen=True, slots=True)
class CandidateRankings:
    """Candidates for some papers; entry i belongs to papers[i], best first."""

    results: tuple[tuple[RankedCandidate, ...], ...]
    model: ModelVersion
    timings: Timings


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """Ids and scores alone; entry i belongs to papers[i]: ``(id, score)``, best first."""

    results: tuple[tuple[tuple[str, float], ...], ...]
    unknown_candidates: tuple[str, ...]  # entries of the options' candidates that nobody is known by, the first of them
    num_unknown_candidates: int
    model: ModelVersion
    timings: Timings


@dataclass(frozen=True, slots=True)
class RankedPaper:
    """A paper for an author or a citing paper."""

    id: str
    title: str
    score: float  # what ranks
    facet_score: float  # greatest inner product with a facet, >= 0
    document_score: float  # similarity with the candidate's papers, in [-1, 1]
    position: int | None  # place among the papers given; None for papers of a collection
    evidence: CandidateEvidence | None  # when asked for


@dataclass(frozen=True, slots=True)
class PaperRankings:
    """Papers for some authors or citing papers; entry i belongs to ids[i], best first."""

    rankings: tuple[tuple[RankedPaper, ...], ...]
    num_papers: int  # papers compared
    index_revision: int  # of the collection; 0 for papers of the caller's
    model: ModelVersion
    timings: Timings


@dataclass(frozen=True, slots=True)
class AddedPapers:
    """What adding papers did; durable."""

    num_papers: int
    num_authors: int  # authors whose vector is new or was fitted again
    num_citing_papers: int  # the same for citing papers
    unknown_citations: tuple[str, ...]  # entries of cited_by that are no known paper, the first of them
    num_unknown_citations: int


@dataclass(frozen=True, slots=True)
class AddedAuthors:
    """What adding authors did; durable."""

    num_authors: int
    num_papers: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """An author or a citing paper."""

    id: str
    name: str  # name or title; empty when it is not known


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """Candidates like some texts; entry i belongs to texts[i], closest first."""

    results: tuple[tuple[Candidate, ...], ...]
    num_candidates: int  # candidates of this kind that the model knows
