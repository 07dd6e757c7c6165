"""Converts papers, authors and options to messages, and messages to rankings."""

from collections.abc import Sequence
from dataclasses import replace

from facets_proto.codec import from_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client import filters
from facets_client.core.requests import check_iterable, join, record_message, request_of
from facets_client.generated.types import NewAuthor, Paper, PaperRankings, Timings
from facets_client.papers.results import BulkCandidates, PaperOptions


def paper_message(paper: Paper) -> pb.Paper:
    """A paper as a message.

    Raises:
        TypeError: It is not a paper, or a field has a value of a wrong type.
        ValueError: A value does not fit its field.
    """
    if not isinstance(paper, Paper):
        raise TypeError(f"papers must be of class Paper, got {type(paper).__name__}")
    return record_message(paper, pb.Paper)


def paper_messages(papers: Sequence[Paper]) -> list[pb.Paper]:
    """Papers as messages; raises the errors of ``paper_message``."""
    check_iterable("papers", papers)
    return [paper_message(paper) for paper in papers]


def new_author_message(author: NewAuthor) -> pb.NewAuthor:
    """An author to add, as a message; raises the errors of ``paper_message``."""
    return record_message(author, pb.NewAuthor, papers=paper_messages(author.papers))


def options_message(options: PaperOptions) -> pb.PaperOptions:
    """Options as a message."""
    candidates = None if options.candidates is None else request_of(pb.CandidateList, ids=options.candidates)
    from_year, to_year = year_range(options.where)
    return record_message(options, pb.PaperOptions, candidates=candidates, from_year=from_year, to_year=to_year)


def year_range(where: filters.Filter | None) -> tuple[int | None, int | None]:
    """The first and the last year that meet a condition; None if it has no such bound.

    Raises:
        ValueError: The condition is about another field, or is not a range of years.
    """
    if where is None:
        return None, None
    first: list[int] = []
    last: list[int] = []
    for condition in where.filters if isinstance(where, filters.AllOf) else (where,):
        match condition:
            case filters.Range("year", gt, gte, lt, lte):
                first += [_year(bound) + step for bound, step in ((gt, 1), (gte, 0)) if bound is not None]
                last += [_year(bound) - step for bound, step in ((lt, 1), (lte, 0)) if bound is not None]
            case filters.Equals("year", value):
                first.append(_year(value))
                last.append(_year(value))
            case _:
                raise ValueError(f"expected a range of years, like Range('year', gte=2015), got {condition}")
    return max(first, default=None), min(last, default=None)


def _year(value: filters.Scalar) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise ValueError(f"year must be compared with a whole number, got {value!r}")
    return int(value)


def bulk_candidates(replies: Sequence[pb.RecommendBulkResponse]) -> BulkCandidates:
    """Joins the replies to the parts of a call, in paper order; each reply names all unknown candidates."""
    parts = [from_message(reply, BulkCandidates, results=_bulk_results(reply)) for reply in replies]
    return replace(join(parts), unknown_candidates=parts[-1].unknown_candidates)


def _bulk_results(reply: pb.RecommendBulkResponse) -> tuple[tuple[tuple[str, float], ...], ...]:
    ids = reply.candidate_ids
    return tuple(
        tuple((ids[row], score) for row, score in zip(result.candidates, result.scores, strict=True))
        for result in reply.results
    )


def paper_rankings(replies: Sequence[pb.RankPapersResponse], *, offset: int | None) -> PaperRankings:
    """Joins the replies to the parts of a call, in the order of the ids.

    Args:
        replies: Replies for a few ids each.
        offset: Position of the request's first paper among the caller's; None: papers of a collection.
    """
    joined = join([from_message(reply, PaperRankings) for reply in replies])
    rankings = (
        tuple(replace(item, position=None if offset is None else (item.position or 0) + offset) for item in ranking)
        for ranking in joined.rankings
    )
    return replace(joined, rankings=tuple(rankings))


def merge_rankings(parts: Sequence[PaperRankings], top_k: int) -> PaperRankings:
    """Merges rankings of different papers for the same ids, best first, ties by position.

    Papers are scored independently, so the overall best are among the best of each part.
    """
    rankings = (
        sorted((item for ranking in same_id for item in ranking), key=lambda item: (-item.score, item.position or 0))
        for same_id in zip(*(part.rankings for part in parts), strict=True)
    )
    return replace(
        parts[-1],
        rankings=tuple(tuple(ranking[:top_k]) for ranking in rankings),
        num_papers=sum(part.num_papers for part in parts),
        timings=sum((part.timings for part in parts), Timings()),
    )
