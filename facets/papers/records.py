"""Records of papers: what a caller gives and what comes back.

Shape letters: N papers, K facets, D dimensions, W width of documents, E width of passages, M words, T top_k.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Ints
from facets.errors import ErrorPath, InvalidInputError, path_text

_NEW_ANTHOLOGY = re.compile(r"(19|20)\d\d\.[a-z]")  # 2020.acl-main.1
_OLD_ANTHOLOGY = re.compile(r"[A-Z](\d\d)-\d{4}")  # P06-1057
MAX_TOP_K = 1_000  # results of one paper
WEIGHTED_WORD = np.dtype([("row", np.uint16), ("weight", np.float32)])  # a word of the model and its weight in a paper
_CENTURY = 50  # the Anthology's two-digit years: 52 to 99, then 00 on


class CandidateKind(StrEnum):
    """What is recommended for a paper: its likely authors, or the papers that would cite it."""

    AUTHORS = "authors"
    CITATIONS = "citations"


@dataclass(frozen=True, slots=True)
class Author:
    """An author of a paper."""

    name: str  # display name; matched exactly
    id: str = ""  # the author's own id; takes precedence over the name. Empty: the name is the id.

    @property
    def key(self) -> str:
        """Identity of the author: the id, else the name."""
        return self.id or self.name


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and what is known about it."""

    title: str  # at least one word
    abstract: str = ""
    id: str = ""  # unique among the papers of a call; required by `add_papers`
    authors: tuple[Author, ...] = ()  # used by `add_papers`
    cited_by_ids: tuple[str, ...] = ()  # ids of the papers that cite it; used by `add_papers`
    year: int | None = None  # year of publication; None: unknown
    excluded_ids: tuple[str, ...] = ()  # ids or names of candidates to leave out (conflicts of interest)


@dataclass(frozen=True, slots=True)
class NewAuthor:
    """An author to add after training; the vector is fitted to the author's papers."""

    author: Author  # name and optional id
    papers: tuple[Paper, ...] = ()  # papers of the author; at least one here or in `paper_ids`
    paper_ids: tuple[str, ...] = ()  # ids of further papers, which must be known already


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperOptions:
    """Filters and scoring options of a call."""

    top_k: int = 10  # most results per paper, 1 to `MAX_TOP_K`
    excluded_ids: Sequence[str] = ()  # candidates to leave out; unknown ids are ignored
    candidates: Sequence[str] | None = None  # ids to choose from; None: all
    # Earliest year of an author's last paper, or of a citing paper; leaves out unknown years.
    from_year: int | None = None
    to_year: int | None = None  # latest year of an author's first paper, or of a citing paper
    facet_weight: float | None = None  # share of the facets in the score, in [0, 1]; None: tuned for the model
    evidence: bool = False  # say why each candidate is recommended; takes a few milliseconds per paper
    diversify: float = 0.0  # in [0, 1]: how much candidates that share papers with a better one move down

    def __post_init__(self) -> None:
        check_top_k(self.top_k)
        for name in ("facet_weight", "diversify"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InvalidInputError(f"must be in [0, 1], got {value}", path=name)
        if self.from_year is not None and self.to_year is not None and self.from_year > self.to_year:
            raise InvalidInputError(f"must be <= to_year, got {self.from_year} > {self.to_year}", path="from_year")
        for name in ("excluded_ids", "candidates"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a sequence of ids, got one str")


def check_top_k(top_k: int) -> None:
    """Raises InvalidInputError unless a number of results is in range."""
    if not 1 <= top_k <= MAX_TOP_K:
        raise InvalidInputError(f"must be 1 to {MAX_TOP_K}, got {top_k}", path="top_k")


def check_papers(papers: Sequence[Paper], path: ErrorPath = ("papers",)) -> None:
    """Checks that every paper has a title; ``path`` says where the papers are in the caller's input."""
    if isinstance(papers, str):
        raise TypeError(f"{path_text(path)} must be a sequence of Paper, got one str")
    for number, paper in enumerate(papers):
        where = (*path, number)
        if not isinstance(paper, Paper):
            raise TypeError(f"{path_text(where)} must be a Paper, got {type(paper).__name__}")
        if not paper.title or paper.title.isspace():
            raise InvalidInputError("has no words, expected at least one", path=(*where, "title"))


def check_distinct(keys: Iterable[str], items: str, name: str) -> None:
    """Checks that the keys of items, fields called ``name``, are distinct or empty."""
    seen: set[str] = set()
    for number, key in enumerate(keys):
        if key and key in seen:
            raise InvalidInputError(f"must be distinct, got {key!r} twice", path=(items, number, name))
        seen.add(key)


def check_added_papers(papers: Sequence[Paper]) -> None:
    """Checks that papers to add have a title, a distinct id, and authors with an id or a name."""
    check_papers(papers)
    for number, paper in enumerate(papers):
        if not paper.id:
            raise InvalidInputError("is empty, expected an id", path=("papers", number, "id"))
        for place, author in enumerate(paper.authors):
            _check_author(author, ("papers", number, "authors", place))
    check_distinct((paper.id for paper in papers), "papers", "id")


def check_new_authors(authors: Sequence[NewAuthor]) -> None:
    """Checks that authors are distinct, have an id or a name, and papers with titles."""
    for place, new in enumerate(authors):
        _check_author(new.author, ("authors", place, "author"))
        if not new.papers and not new.paper_ids:
            raise InvalidInputError("has no items, expected at least one", path=("authors", place, "papers"))
        check_papers(new.papers, ("authors", place, "papers"))
    check_distinct((new.author.key for new in authors), "authors", "author")


def _check_author(author: Author, path: ErrorPath) -> None:
    if not author.key.strip():
        raise InvalidInputError("has neither id nor name, expected one", path=path)


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """Why a candidate is recommended."""

    facet: int  # the paper's facet with the largest inner product with the candidate, in `[0, K)`
    nearest_words: tuple[tuple[str, float], ...] = ()  # words nearest to that facet, and cosines; best first
    # The candidate's papers (for a citing paper: papers that it cites) most like the paper: id, title, cosine.
    nearest_papers: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate for a paper."""

    id: str  # id of the author (else the name) or of the citing paper
    name: str  # name of the author, title of the citing paper; empty: unknown
    score: float  # ranks the candidates, higher is better: a mixture of the next two; added authors' is rescaled
    facet_score: float  # eq. 3.13, `max(0, max_k a^T p_k)`, >= 0
    document_score: float  # similarity of the paper with the candidate's papers, in [-1, 1]
    evidence: CandidateEvidence | None = None  # only on request
    confidence: float | None = None  # that the paper lies in the candidate's field, in [0, 1]; None: no curve


@dataclass(frozen=True, slots=True)
class RankedPaper:
    """A paper for an author or a citing paper; scores as in ``RankedCandidate``."""

    position: int  # position among the given papers
    id: str
    score: float
    facet_score: float
    document_score: float
    evidence: CandidateEvidence | None = None


@dataclass(frozen=True, slots=True)
class PaperFacets:
    """Encoded papers, so that a collection that is ranked often needs encoding only once."""

    facets: Floats  # `[N, K, D]` float32, p_k of eq. 3.15 without magnitudes
    author_magnitudes: Floats  # `[N, K]` float32, rho
    citation_magnitudes: Floats  # `[N, K]` float32, tau
    # `[N, W]` float32, vectors for comparing papers: weighted word averages (eq. B.4), zero without a known word,
    # joined with a sentence vector if the model has them. Inner products are cosines.
    documents: Floats
    # For comparing with the papers of added authors; empty, `[N, 0]`, where that is not needed:
    passages: Floats  # `[N, E]` float32, unit vectors of title and abstract
    words: NDArray[np.void]  # `[N, M]` of `WEIGHTED_WORD`, unit vectors of their words

    def __len__(self) -> int:
        return len(self.facets)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays, in the order of the fields."""
        numbers = self.facets, self.author_magnitudes, self.citation_magnitudes
        return *numbers, self.documents, self.passages, self.words

    def part(self, rows: "slice | Ints") -> "PaperFacets":
        """Some of the papers."""
        return PaperFacets(*(array[rows] for array in self.arrays))

    def scaled(self, kind: CandidateKind) -> Floats:
        """``[N, K, D]``: facets times the magnitudes for authors or for citations (eq. 3.15)."""
        magnitudes = self.author_magnitudes if kind is CandidateKind.AUTHORS else self.citation_magnitudes
        return self.facets * magnitudes[:, :, None]


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """The best candidates of many papers as arrays."""

    candidate_ids: Sequence[str]  # ids that `rows` points into
    rows: Ints  # `[N, T]` int64, best first, ties by id; -1 where no candidate is left
    scores: Floats  # `[N, T]` float32; `-inf` where no candidate is left


@dataclass(frozen=True, slots=True)
class AddResult:
    """Result of an addition; everything in it is durable."""

    num_papers: int = 0  # papers stored
    num_authors: int = 0  # authors whose vector is new or was refitted
    num_citing_papers: int = 0  # citing papers whose vector is new or was refitted
    unknown_citations: tuple[str, ...] = ()  # in `cited_by_ids`, but no known papers; they still are citing papers


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
