"""Ranked candidates and papers as replies, where these are not records of the library."""

from collections.abc import Sequence

import numpy as np
from facets_proto.codec import message_of, to_message
from facets_proto.v1 import papers_pb2 as pb

from facets.model.contract import ModelInfo
from facets.papers.records import AddResult, BulkCandidates
from facets_server.papers.ranking import Ranked
from facets_server.runtime.call_context import CallContext

_MOST_UNKNOWN = 100  # unknown names that are returned; the others are counted


def bulk_to_message(
    parts: Sequence[BulkCandidates], unknown: Sequence[str], model: ModelInfo, call: CallContext
) -> pb.RecommendBulkResponse:
    """Candidates of the papers of all parts, in order; each id is sent once."""
    places: dict[str, int] = {}
    results = []
    for part in parts:
        used = np.unique(part.rows[part.rows >= 0])
        place_of = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int64)
        for row in used:
            place_of[row] = places.setdefault(part.candidate_ids[int(row)], len(places))
        for rows, scores in zip(part.rows, part.scores, strict=True):
            is_there = rows >= 0
            results.append((place_of[rows[is_there]], scores[is_there]))
    return message_of(
        pb.RecommendBulkResponse,
        candidate_ids=list(places),
        results=results,
        unknown_candidates=unknown[:_MOST_UNKNOWN],
        num_unknown_candidates=len(unknown),
        model=model,
        timings=call,
    )


def rankings_to_message(
    ranked: Ranked, model: ModelInfo, call: CallContext, *, is_collection: bool
) -> pb.RankPapersResponse:
    """Papers in the order of the authors or citing papers.

    Args:
        ranked: What was found.
        model: What found it.
        call: For its times.
        is_collection: Whether the papers are a collection's, so that their positions mean nothing to the caller.
    """
    return message_of(
        pb.RankPapersResponse,
        rankings=[
            [
                to_message(
                    item,
                    pb.RankedPaper,
                    id=ranked.ids[item.position],
                    title=ranked.titles[item.position],
                    position=0 if is_collection else item.position,
                )
                for item in ranking
            ]
            for ranking in ranked.rankings
        ],
        num_papers=len(ranked.ids),
        index_revision=ranked.index_revision,
        model=model,
        timings=call,
    )


def added_papers_to_message(result: AddResult, model: ModelInfo, call: CallContext) -> pb.AddPapersResponse:
    """What is durable now."""
    return to_message(
        result,
        pb.AddPapersResponse,
        unknown_citations=result.unknown_citations[:_MOST_UNKNOWN],
        num_unknown_citations=len(result.unknown_citations),
        model=model,
        timings=call,
    )
