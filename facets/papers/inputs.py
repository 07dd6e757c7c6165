"""What is asked about papers: the papers themselves, their authors, and how candidates are filtered and scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from facets.errors import ErrorPath, InvalidInputError, path_text

__all__ = ["MAX_EXAMPLE_WEIGHT", "Author", "CandidateKind", "NewAuthor", "Paper", "PaperOptions", "check_papers"]


MAX_EXAMPLE_WEIGHT = 1_000.0  # far more than any score; a sum with it stays a finite float32


class CandidateKind(StrEnum):
    """What is recommended for a paper: who would write it, or which papers would cite it."""

    AUTHORS = "authors"
    CITATIONS = "citations"


@dataclass(frozen=True, slots=True)
class Author:
    """An author of a paper.

    Attributes:
        name: As it is to be shown; names are matched as given, letter for letter.
        id: The author's own id, when there is one; it wins over the name. Empty: the name is the id.
    """

    name: str
    id: str = ""

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
    """An author to add after training; the vector is fitted from what he or she wrote.

    Attributes:
        author: Name and optional id.
        papers: What was written, at least one.
        paper_ids: Further papers, by id, that are known already (trained on or added).
    """

    author: Author
    papers: tuple[Paper, ...] = ()
    paper_ids: tuple[str, ...] = ()


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

    def __post_init__(self) -> None:
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
