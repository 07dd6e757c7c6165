"""What the clients do with papers, their authors and who cites them (see ``core/operations.py``)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from facets_proto.codec import from_message, to_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client import filters
from facets_client.core.commands import Operation, move_indices
from facets_client.core.operations import RoomOperations, from_filter, join, least, text_bytes, with_evidence
from facets_client.core.types import ModelVersion, Timings
from facets_client.core.values import check_sequences, check_text, enum_name, unsigned
from facets_client.errors import FacetsClientError
from facets_client.filters import Filter
from facets_client.papers.types import (
    AddedAuthors,
    AddedPapers,
    Author,
    CandidateKind,
    CandidateRankings,
    FoundCandidates,
    NewAuthor,
    Paper,
    PaperRankings,
)

# Papers of one bulk request: few enough to be answered within a timeout, enough to look candidates up rarely.
_BULK_PAPERS = 128
_PAPER_COUNTS = ("num_papers", "num_authors", "num_citing_papers", "num_unknown_citations")
_MAX_YEAR = 2**31 - 1

RequestT = TypeVar("RequestT", pb.RecommendAuthorsRequest, pb.RecommendCitationsRequest)
ResponseT = TypeVar("ResponseT", pb.RecommendAuthorsResponse, pb.RecommendCitationsResponse)


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperOptions:
    """Which candidates, and how they are scored.

    Attributes:
        top_k: Candidates for each paper.
        excluded_ids: Ids of candidates never recommended.
        candidates: Only these ids; None: all. An empty list gives empty answers.
        where: Condition on the year of a paper of the author, or of the citing paper: ``Range("year", gte=2015)``.
            Candidates of unknown years are left out.
        positive_ids: Ids of candidates whose like is wanted.
        negative_ids: Ids of candidates whose like is not wanted.
        example_weight: What a cosine of 1 to an example counts; None: the server's choice.
        facet_weight: Share of the facets in the score, in [0, 1]; None: tuned for the model.
        evidence: Say why; not for bulk calls.
        diversify: How much the candidates shall differ, in [0, 1]: above 0 those of one group come apart; not for bulk
            calls.
    """

    top_k: int = 10
    excluded_ids: Sequence[str] = ()
    candidates: Sequence[str] | None = None
    where: Filter | None = None
    positive_ids: Sequence[str] = ()
    negative_ids: Sequence[str] = ()
    example_weight: float | None = None
    facet_weight: float | None = None
    evidence: bool = False
    diversify: float = 0.0

    def __post_init__(self) -> None:
        check_sequences(
            excluded_ids=self.excluded_ids,
            candidates=self.candidates,
            positive_ids=self.positive_ids,
            negative_ids=self.negative_ids,
        )


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """Ids and scores alone; entry i belongs to papers[i]: ``(id, score)``, best first."""

    results: tuple[tuple[tuple[str, float], ...], ...]
    unknown_candidates: tuple[str, ...]  # entries of the options' candidates that nobody is known by, the first of them
    num_unknown_candidates: int
    model: ModelVersion
    timings: Timings


class PaperOperations(RoomOperations):
    """RecommendationService."""

    def recommend_authors(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> Operation[CandidateRankings]:
        """The authors that each paper suits best.

        Args:
            papers: At least one.
            options: Which authors, and how they are scored; None: ten, all authors, the server's weights.
            model: Name; empty: the server's default model of papers.

        Returns:
            Entry i belongs to papers[i]; empty when no author is left.
        """
        request, response = pb.RecommendAuthorsRequest, pb.RecommendAuthorsResponse
        return (yield from self._recommend(request, response, papers, options, model))

    def recommend_citations(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> Operation[CandidateRankings]:
        """The papers that would most likely cite each paper.

        Args:
            papers: At least one.
            options: Which citing papers, and how they are scored; None: ten, all of them, the server's weights.
            model: Name; empty: the server's default model of papers.

        Returns:
            Entry i belongs to papers[i]; empty when no citing paper is left.
        """
        request, response = pb.RecommendCitationsRequest, pb.RecommendCitationsResponse
        return (yield from self._recommend(request, response, papers, options, model))

    def _recommend(
        self,
        request: type[RequestT],
        response: type[ResponseT],
        papers: Sequence[Paper],
        options: PaperOptions | None,
        model: str,
    ) -> Operation[CandidateRankings]:
        options = options or PaperOptions()
        wanted = _from_options(options)
        messages = [from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: request(papers=messages[part], model=model, options=wanted),
            response,
            max_items=lambda limits: least(
                limits.max_texts_per_request, with_evidence(limits, evidence=options.evidence, top_k=options.top_k)
            ),
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return join([from_message(part, CandidateRankings) for part in parts])

    def recommend_bulk(
        self,
        kind: CandidateKind,
        papers: Sequence[Paper],
        options: PaperOptions | None = None,
        *,
        model: str = "",
    ) -> Operation[BulkCandidates]:
        """Ids and scores alone, for thousands of papers against thousands of candidates.

        Args:
            kind: ``authors`` or ``citations``.
            papers: Any number, in requests of 128.
            options: As for ``recommend_authors``.
            model: Name; empty: the server's default model of papers.
        """
        number = _kind_name(kind)
        wanted = _from_options(options or PaperOptions())
        messages = [from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: pb.RecommendBulkRequest(kind=number, papers=messages[part], model=model, options=wanted),
            pb.RecommendBulkResponse,
            max_items=lambda limits: least(_BULK_PAPERS, limits.max_texts_per_request),
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return _to_bulk(parts)

    def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        *,
        collection: str = "",
        papers: Sequence[Paper] | None = None,
        top_k: int = 10,
        where: Filter | None = None,
        excluded_ids: Sequence[str] = (),
        facet_weight: float | None = None,
        evidence: bool = False,
        min_revision: int = 0,
        model: str = "",
    ) -> Operation[PaperRankings]:
        """Papers for authors or citing papers, best first.

        Args:
            kind: What the ids are: ``authors`` or ``citations``.
            ids: At least one; NotFoundError with near ones when one is unknown.
            collection: Where the papers are; a document's payload has ``title``, ``abstract`` and ``year``, or its
                text begins with a line that is the title.
            papers: Instead, papers of the caller's.
            top_k: Papers for each id.
            where: Condition on the payload of documents; on papers of the caller's one on the year alone, e.g.
                ``Range("year", gte=2015)``.
            excluded_ids: Ids of papers never listed.
            facet_weight: Share of the facets in the score, in [0, 1]; None: tuned for the model.
            evidence: Say why.
            min_revision: Read only this revision of the collection or a later one; 0: any.
            model: Name; empty: the server's default model of papers.
        """
        if bool(collection) == (papers is not None):
            raise ValueError("expected collection or papers, got " + ("both" if collection else "neither"))
        for name in (*ids, *excluded_ids):
            check_text(name)
        wanted = pb.RankPapersRequest(
            kind=_kind_name(kind),
            model=model,
            top_k=unsigned(top_k, "top_k"),
            excluded_ids=excluded_ids,
            facet_weight=facet_weight,
            evidence=evidence,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
        )
        if papers is not None:
            if where is not None:
                from_year, to_year = _from_years(where)
                wanted.MergeFrom(pb.RankPapersRequest(from_year=from_year, to_year=to_year))
            return _merged_rankings((yield from self._rank_given(wanted, ids, papers)), top_k)
        wanted.collection = collection
        condition = from_filter(where)
        if condition is not None:
            wanted.where.CopyFrom(condition)
        return _to_rankings((yield from self._rank(wanted, ids)), is_collection=True)

    def _rank_given(
        self, wanted: pb.RankPapersRequest, ids: Sequence[str], papers: Sequence[Paper]
    ) -> Operation[list[PaperRankings]]:
        """Ranks the caller's papers, some at a time."""
        messages = [from_paper(paper) for paper in papers]
        found: list[PaperRankings] = []
        # Papers are scored one by one: the best of all are the best among the best of each request.
        for part in (
            yield from self._requests.cut(
                "papers",
                [message.ByteSize() for message in messages],
                max_items=lambda limits: limits.max_texts_per_request,
                model=wanted.model,
                repeated_bytes=wanted.ByteSize() + sum(text_bytes(name) + 4 for name in ids),
            )
        ):
            wanted.papers.CopyFrom(pb.PaperList(papers=messages[part]))
            try:
                replies = yield from self._rank(wanted, ids)
            except FacetsClientError as error:
                move_indices(error, "papers", part.start)
                raise
            found.append(_to_rankings(replies, is_collection=False, offset=part.start))
        return found

    def _rank(self, wanted: pb.RankPapersRequest, ids: Sequence[str]) -> Operation[list[pb.RankPapersResponse]]:
        """Asks for a few ids at a time."""

        def request(part: slice) -> pb.RankPapersRequest:
            made = pb.RankPapersRequest(ids=ids[part])
            made.MergeFrom(wanted)
            return made

        return (
            yield from self._requests.call_parts(
                "ids",
                [text_bytes(name) for name in ids],
                request,
                pb.RankPapersResponse,
                max_items=lambda limits: least(
                    limits.max_queries_per_search, with_evidence(limits, evidence=wanted.evidence, top_k=wanted.top_k)
                ),
                model=wanted.model,
                repeated_bytes=wanted.ByteSize(),
            )
        )

    def add_papers(self, papers: Sequence[Paper], *, model: str = "") -> Operation[AddedPapers]:
        """Adds papers with their authors and citing papers, without training; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.
        """
        messages = [from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: pb.AddPapersRequest(papers=messages[part], model=model),
            pb.AddPapersResponse,
            max_items=lambda limits: limits.max_documents_per_upsert,
            model=model,
        )
        return join([from_message(part, AddedPapers) for part in parts], added=_PAPER_COUNTS)

    def add_authors(self, authors: Sequence[NewAuthor], *, model: str = "") -> Operation[AddedAuthors]:
        """Adds authors by what they wrote, without training; durable on return, as ``add_papers``."""
        messages = [from_new_author(author) for author in authors]
        most = max((len(author.papers) for author in authors), default=0) or 1
        parts = yield from self._requests.call_parts(
            "authors",
            [message.ByteSize() for message in messages],
            lambda part: pb.AddAuthorsRequest(authors=messages[part], model=model),
            pb.AddAuthorsResponse,
            # So few that their papers are within the limit, too.
            max_items=lambda limits: least(
                max(1, (limits.max_texts_per_request or most) // most), limits.max_documents_per_upsert
            ),
            model=model,
        )
        return join([from_message(part, AddedAuthors) for part in parts], added=("num_authors", "num_papers"))

    def find_candidates(
        self, kind: CandidateKind, texts: Sequence[str], *, top_k: int = 10, model: str = ""
    ) -> Operation[FoundCandidates]:
        """Authors or citing papers by ids or names that need not be quite right, closest first.

        Args:
            kind: ``authors`` or ``citations``.
            texts: Ids or names as somebody remembers them.
            top_k: Most candidates for each text.
            model: Name; empty: the server's default model of papers.
        """
        for text in texts:
            check_text(text)
        number, most = _kind_name(kind), unsigned(top_k, "top_k")
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: pb.FindCandidatesRequest(kind=number, texts=texts[part], top_k=most, model=model),
            pb.FindCandidatesResponse,
            max_items=lambda limits: limits.max_queries_per_search,
            model=model,
        )
        return join([from_message(part, FoundCandidates) for part in parts])


def _kind_name(kind: CandidateKind) -> str:
    return enum_name("CANDIDATE_KIND", kind, CandidateKind, name="kind")


def from_paper(paper: Paper) -> pb.Paper:
    """A paper as a message.

    Raises:
        TypeError: It is no paper.
        ValueError: A text is no Unicode, or the year is none.
    """
    if not isinstance(paper, Paper):
        raise TypeError(f"papers must be of class Paper, got {type(paper).__name__}")
    for text in (paper.title, paper.abstract, paper.id, *paper.cited_by_ids, *paper.excluded_ids):
        check_text(text)
    for author in paper.authors:
        _check_author(author)
    _check_year(paper.year)
    return to_message(paper, pb.Paper)


def _check_author(author: Author) -> None:
    check_text(author.name)
    check_text(author.id)


def from_new_author(author: NewAuthor) -> pb.NewAuthor:
    """An author to add, as a message."""
    _check_author(author.author)
    return to_message(author, pb.NewAuthor, papers=[from_paper(paper) for paper in author.papers])


def _from_options(options: PaperOptions) -> pb.PaperOptions:
    """Options as a message."""
    for name in (*options.excluded_ids, *(options.candidates or ()), *options.positive_ids, *options.negative_ids):
        check_text(name)
    from_year, to_year = (None, None) if options.where is None else _from_years(options.where)
    return pb.PaperOptions(
        top_k=unsigned(options.top_k, "top_k"),
        excluded_ids=options.excluded_ids,
        candidates=None if options.candidates is None else pb.CandidateList(ids=options.candidates),
        from_year=from_year,
        to_year=to_year,
        positive_ids=options.positive_ids,
        negative_ids=options.negative_ids,
        example_weight=options.example_weight,
        facet_weight=options.facet_weight,
        evidence=options.evidence,
        diversify=options.diversify,
    )


def _from_years(where: filters.Filter) -> tuple[int | None, int | None]:
    """A condition on the year as the first and the last one; None where it has no such end.

    Raises:
        ValueError: It is about something else, or no plain range of years.
    """
    lowest: list[int] = []
    highest: list[int] = []
    for condition in where.filters if isinstance(where, filters.AllOf) else (where,):
        match condition:
            case filters.Range("year", gt, gte, lt, lte):
                lowest += [_bound(bound) + step for bound, step in ((gt, 1), (gte, 0)) if bound is not None]
                highest += [_bound(bound) - step for bound, step in ((lt, 1), (lte, 0)) if bound is not None]
            case filters.Equals("year", value):
                lowest.append(_bound(value))
                highest.append(_bound(value))
            case _:
                raise ValueError(f"expected a range of years, like Range('year', gte=2015), got {condition}")
    return max(lowest, default=None), min(highest, default=None)


def _bound(value: filters.Scalar) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise ValueError(f"year must be compared with a whole number, got {value!r}")
    _check_year(int(value))
    return int(value)


def _check_year(value: int | None) -> None:
    if value is not None and not -_MAX_YEAR <= value <= _MAX_YEAR:
        raise ValueError(f"year must be a year, got {value}")


def _to_bulk(parts: Sequence[pb.RecommendBulkResponse]) -> BulkCandidates:
    """The replies to the parts of a call as one result, in the order of the papers; each names all unknown ones."""
    found = [from_message(part, BulkCandidates, results=_bulk_results(part)) for part in parts]
    return replace(join(found), unknown_candidates=found[-1].unknown_candidates)


def _bulk_results(part: pb.RecommendBulkResponse) -> tuple[tuple[tuple[str, float], ...], ...]:
    ids = part.candidate_ids
    return tuple(
        tuple((ids[place], score) for place, score in zip(result.candidates, result.scores, strict=True))
        for result in part.results
    )


def _to_rankings(parts: Sequence[pb.RankPapersResponse], *, is_collection: bool, offset: int = 0) -> PaperRankings:
    """The replies to the parts of a call as one result, in the order of the ids.

    Args:
        parts: Replies for a few ids each.
        is_collection: Whether positions mean nothing.
        offset: Place of the first paper of the request among the caller's.
    """
    found = join([from_message(part, PaperRankings) for part in parts])
    placed = (
        tuple(replace(item, position=None if is_collection else (item.position or 0) + offset) for item in ranking)
        for ranking in found.rankings
    )
    return replace(found, rankings=tuple(placed))


def _merged_rankings(parts: Sequence[PaperRankings], top_k: int) -> PaperRankings:
    """Rankings of different papers for the same ids as one, best first, ties by position."""
    rankings = (
        sorted((item for ranking in same for item in ranking), key=lambda item: (-item.score, item.position or 0))
        for same in zip(*(part.rankings for part in parts), strict=True)
    )
    return replace(
        parts[-1],
        rankings=tuple(tuple(ranking[:top_k]) for ranking in rankings),
        num_papers=sum(part.num_papers for part in parts),
        timings=sum((part.timings for part in parts), Timings()),
    )
