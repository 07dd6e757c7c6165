"""Converts papers and authors to messages, and messages to rankings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from facets_proto.codec import from_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client.core.requests import check_iterable, join, record_message
from facets_client.generated.types import ModelVersion, NewAuthor, Paper, PaperRankings, Timings

_DEFAULT_TOP_K = 10  # the server's, for a request in parts


def paper_message(paper: Paper) -> pb.Paper:
    """A paper as a message; TypeError or ValueError names the field whose value does not fit."""
    if not isinstance(paper, Paper):
        raise TypeError(f"papers must be of class Paper, got {type(paper).__name__}")
    return record_message(paper, pb.Paper)


def paper_messages(papers: Sequence[Paper]) -> list[pb.Paper]:
    """Papers as messages; raises the errors of ``paper_message``."""
    check_iterable("papers", papers)
    return [paper_message(paper) for paper in papers]


def new_author_message(author: NewAuthor) -> pb.NewAuthor:
    """An author to add, as a message; raises the errors of ``paper_message``."""
    if not isinstance(author, NewAuthor):
        raise TypeError(f"authors must be of class NewAuthor, got {type(author).__name__}")
    return record_message(author, pb.NewAuthor, papers=paper_messages(author.papers))


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """Ids and scores only: entry i of ``results`` has ``(id, score)`` of each candidate for papers[i], best first."""

    results: tuple[tuple[tuple[str, float], ...], ...]
    unknown_candidates: tuple[str, ...]  # the first entries of the option ``candidates`` that are unknown
    num_unknown_candidates: int
    model: ModelVersion
    timings: Timings


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
    """Joins the replies for a few ids each; ``offset`` is the position of the request's first paper, if it has any."""
    joined = join([from_message(reply, PaperRankings) for reply in replies])
    rankings = (
        tuple(replace(item, position=None if offset is None else (item.position or 0) + offset) for item in ranking)
        for ranking in joined.rankings
    )
    return replace(joined, rankings=tuple(rankings))


def merge_rankings(parts: Sequence[PaperRankings], top_k: int | None) -> PaperRankings:
    """Merges rankings of different papers for the same ids, best first, ties by position."""
    rankings = []
    for same_id in zip(*(part.rankings for part in parts), strict=True):
        items = sorted(chain.from_iterable(same_id), key=lambda item: (-item.score, item.position or 0))
        rankings.append(tuple(items[: _DEFAULT_TOP_K if top_k is None else top_k]))
    return replace(join(parts, added=("num_papers",)), rankings=tuple(rankings))
