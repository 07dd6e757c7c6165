"""Papers and options as messages; replies about papers, their authors and the papers that cite them."""

from collections.abc import Sequence
from dataclasses import replace

from facets_proto.v1 import papers_pb2 as pb

from facets_client import filters
from facets_client.core.convert import to_model_version, to_words, total_timings
from facets_client.core.results import Timings
from facets_client.core.values import check_text, unsigned
from facets_client.papers import results

_KINDS = {"authors": pb.CANDIDATE_KIND_AUTHORS, "citations": pb.CANDIDATE_KIND_CITATIONS}
_MAX_YEAR = 2**31 - 1


def kind_number(kind: results.CandidateKind) -> pb.CandidateKind:
    """The number of a kind.

    Raises:
        ValueError: There is no such kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be authors or citations, got {kind!r}")
    return _KINDS[kind]


def from_paper(paper: results.Paper) -> pb.Paper:
    """A paper as a message.

    Raises:
        TypeError: It is no paper.
        ValueError: A text is no Unicode, or the year is none.
    """
    if not isinstance(paper, results.Paper):
        raise TypeError(f"papers must be of class Paper, got {type(paper).__name__}")
    for text in (paper.title, paper.abstract, paper.id, *paper.cited_by, *paper.excluded):
        check_text(text)
    return pb.Paper(
        title=paper.title,
        abstract=paper.abstract,
        id=paper.id,
        authors=[_from_author(author) for author in paper.authors],
        cited_by_ids=paper.cited_by,
        year=_year(paper.year, "year"),
        excluded_ids=paper.excluded,
    )


def _from_author(author: results.PaperAuthor) -> pb.PaperAuthor:
    check_text(author.name)
    check_text(author.id)
    return pb.PaperAuthor(name=author.name, id=author.id)


def from_new_author(author: results.NewAuthor) -> pb.NewAuthor:
    """An author to add, as a message."""
    return pb.NewAuthor(
        author=_from_author(author.author),
        papers=[from_paper(paper) for paper in author.papers],
        paper_ids=author.paper_ids,
    )


def from_options(options: results.PaperOptions) -> pb.PaperOptions:
    """Options as a message."""
    for name in (*options.exclude, *(options.candidates or ()), *options.positive, *options.negative):
        check_text(name)
    return pb.PaperOptions(
        top_k=unsigned(options.top_k, "top_k"),
        excluded_ids=options.exclude,
        candidates=None if options.candidates is None else pb.CandidateList(ids=options.candidates),
        years=None if options.where is None else from_years(options.where),
        positive_ids=options.positive,
        negative_ids=options.negative,
        example_weight=options.example_weight,
        facet_weight=options.facet_weight,
        evidence=options.evidence,
    )


def from_years(where: filters.Filter) -> pb.YearRange:
    """A condition on the year as a message.

    Raises:
        ValueError: It is about something else, or no plain range of years.
    """
    made = pb.YearRange()
    for condition in where.filters if isinstance(where, filters.AllOf) else (where,):
        match condition:
            case filters.Range("year", gt, gte, lt, lte):
                lowest = [_bound(gt) + 1] if gt is not None else []
                lowest += [_bound(gte)] if gte is not None else []
                highest = [_bound(lt) - 1] if lt is not None else []
                highest += [_bound(lte)] if lte is not None else []
            case filters.Equals("year", value):
                lowest = highest = [_bound(value)]
            case _:
                raise ValueError(f"expected a range of years, like Range('year', gte=2015), got {condition}")
        if lowest:
            made.from_year = max(lowest + ([made.from_year] if made.HasField("from_year") else []))
        if highest:
            made.to_year = min(highest + ([made.to_year] if made.HasField("to_year") else []))
    return made


def _bound(value: filters.Scalar) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise ValueError(f"year must be compared with a whole number, got {value!r}")
    return _year(int(value), "year") or 0


def _year(value: int | None, name: str) -> int | None:
    if value is not None and not -_MAX_YEAR <= value <= _MAX_YEAR:
        raise ValueError(f"{name} must be a year, got {value}")
    return value


def to_candidate_rankings(
    parts: Sequence[pb.RecommendAuthorsResponse | pb.RecommendCitationsResponse],
) -> results.CandidateRankings:
    """The replies to the parts of a call as one result, in the order of the papers."""
    return results.CandidateRankings(
        results=tuple(
            tuple(_to_ranked_candidate(item) for item in result.candidates) for part in parts for result in part.results
        ),
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def _to_ranked_candidate(item: pb.RankedCandidate) -> results.RankedCandidate:
    return results.RankedCandidate(
        id=item.id,
        name=item.name,
        score=item.score,
        facet_score=item.facet_score,
        document_score=item.document_score,
        evidence=_to_evidence(item.evidence) if item.HasField("evidence") else None,
    )


def _to_evidence(item: pb.CandidateEvidence) -> results.CandidateEvidence:
    return results.CandidateEvidence(
        facet=item.facet,
        nearest_words=to_words(item.nearest_words),
        nearest_papers=tuple(results.NearestPaper(p.id, p.title, p.cosine) for p in item.nearest_papers),
    )


def _to_bulk_results(part: pb.RecommendBulkResponse) -> list[tuple[tuple[str, float], ...]]:
    ids = part.candidate_ids
    return [
        tuple((ids[place], score) for place, score in zip(result.candidates, result.scores, strict=True))
        for result in part.results
    ]


def to_bulk(parts: Sequence[pb.RecommendBulkResponse]) -> results.BulkCandidates:
    """The replies to the parts of a call as one result, in the order of the papers."""
    return results.BulkCandidates(
        results=tuple(result for part in parts for result in _to_bulk_results(part)),
        unknown_candidates=tuple(parts[-1].unknown_candidates),
        num_unknown_candidates=parts[-1].num_unknown_candidates,
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def to_rankings(
    parts: Sequence[pb.RankPapersResponse], *, is_collection: bool, offset: int = 0
) -> results.PaperRankings:
    """The replies to the parts of a call as one result, in the order of the ids.

    Args:
        parts: Replies for a few ids each.
        is_collection: Whether positions mean nothing.
        offset: Place of the first paper of the request among the caller's.
    """
    return results.PaperRankings(
        rankings=tuple(
            tuple(_to_ranked(item, None if is_collection else item.position + offset) for item in ranking.papers)
            for part in parts
            for ranking in part.rankings
        ),
        num_papers=parts[-1].num_papers,
        index_revision=parts[-1].index_revision,
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def merged_rankings(parts: Sequence[results.PaperRankings], top_k: int) -> results.PaperRankings:
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


def _to_ranked(item: pb.RankedPaper, position: int | None) -> results.RankedPaper:
    return results.RankedPaper(
        id=item.id,
        title=item.title,
        score=item.score,
        facet_score=item.facet_score,
        document_score=item.document_score,
        position=position,
        evidence=_to_evidence(item.evidence) if item.HasField("evidence") else None,
    )


def to_added_papers(parts: Sequence[pb.AddPapersResponse]) -> results.AddedPapers:
    """What the parts of a call did, added up."""
    return results.AddedPapers(
        num_papers=sum(part.num_papers for part in parts),
        num_authors=sum(part.num_authors for part in parts),
        num_citing_papers=sum(part.num_citing_papers for part in parts),
        unknown_citations=tuple(name for part in parts for name in part.unknown_citations),
        num_unknown_citations=sum(part.num_unknown_citations for part in parts),
    )


def to_added_authors(parts: Sequence[pb.AddAuthorsResponse]) -> results.AddedAuthors:
    """What the parts of a call did, added up."""
    return results.AddedAuthors(sum(part.num_authors for part in parts), sum(part.num_papers for part in parts))


def to_found(parts: Sequence[pb.FindCandidatesResponse]) -> results.FoundCandidates:
    """The replies to the parts of a call as one result, in the order of the texts."""
    return results.FoundCandidates(
        results=tuple(
            tuple(results.Candidate(item.id, item.name) for item in result.candidates)
            for part in parts
            for result in part.results
        ),
        num_candidates=parts[-1].num_candidates,
    )
