"""Recommended candidates, ranked papers and additions as replies."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from facets_proto.v1 import papers_pb2

from facets.model.contract import ModelInfo
from facets.papers.records import AddResult, BulkCandidates, CandidateEvidence, RankedCandidate, RankedPaper
from facets_server.papers.ranking import Ranked
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.replies import nearest_to_proto, timings_to_proto, version_to_proto

__all__ = [
    "added_authors_to_proto",
    "added_papers_to_proto",
    "bulk_to_proto",
    "candidates_to_proto",
    "found_to_proto",
    "rankings_to_proto",
]

ReplyT = TypeVar("ReplyT", papers_pb2.RecommendAuthorsResponse, papers_pb2.RecommendCitationsResponse)

_MOST_UNKNOWN = 100  # unknown names that are returned; the others are counted


def candidates_to_proto(
    reply: type[ReplyT], results: Sequence[Sequence[RankedCandidate]], model: ModelInfo, call: CallContext
) -> ReplyT:
    """Candidates in the order of the papers, as the reply of the rpc that asked for them."""
    return reply(
        results=[
            papers_pb2.CandidateRanking(candidates=[_ranked_candidate(item) for item in items]) for items in results
        ],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _ranked_candidate(item: RankedCandidate) -> papers_pb2.RankedCandidate:
    return papers_pb2.RankedCandidate(
        id=item.id,
        name=item.name,
        score=item.score,
        facet_score=item.facet_score,
        document_score=item.document_score,
        evidence=_evidence(item.evidence),
    )


def _evidence(evidence: CandidateEvidence | None) -> papers_pb2.CandidateEvidence | None:
    if evidence is None:
        return None
    return papers_pb2.CandidateEvidence(
        facet=evidence.facet,
        nearest_words=nearest_to_proto(evidence.nearest_words),
        nearest_papers=[
            papers_pb2.NearestPaper(id=paper_id, title=title, cosine=cosine)
            for paper_id, title, cosine in evidence.nearest_papers
        ],
    )


def bulk_to_proto(
    parts: Sequence[BulkCandidates], unknown: Sequence[str], model: ModelInfo, call: CallContext
) -> papers_pb2.RecommendBulkResponse:
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
            results.append(
                papers_pb2.BulkResult(candidates=place_of[rows[is_there]].tolist(), scores=scores[is_there].tolist())
            )
    return papers_pb2.RecommendBulkResponse(
        candidate_ids=list(places),
        results=results,
        unknown_candidates=unknown[:_MOST_UNKNOWN],
        num_unknown_candidates=len(unknown),
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def rankings_to_proto(
    ranked: Ranked, model: ModelInfo, call: CallContext, *, is_collection: bool
) -> papers_pb2.RankPapersResponse:
    """Papers in the order of the authors or citing papers.

    Args:
        ranked: What was found.
        model: What found it.
        call: For its times.
        is_collection: Whether the papers are a collection's, so that their positions mean nothing to the caller.
    """
    return papers_pb2.RankPapersResponse(
        rankings=[
            papers_pb2.PaperRanking(
                papers=[_ranked_paper(item, ranked, position=0 if is_collection else item.row) for item in ranking]
            )
            for ranking in ranked.rankings
        ],
        num_papers=len(ranked.ids),
        index_revision=ranked.index_revision,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _ranked_paper(item: RankedPaper, ranked: Ranked, *, position: int) -> papers_pb2.RankedPaper:
    return papers_pb2.RankedPaper(
        id=ranked.ids[item.row],
        title=ranked.titles[item.row],
        score=item.score,
        facet_score=item.facet_score,
        document_score=item.document_score,
        evidence=_evidence(item.evidence),
        position=position,
    )


def added_papers_to_proto(result: AddResult, model: ModelInfo, call: CallContext) -> papers_pb2.AddPapersResponse:
    """What is durable now."""
    return papers_pb2.AddPapersResponse(
        num_papers=result.papers,
        num_authors=result.authors,
        num_citing_papers=result.citing_papers,
        unknown_citations=result.unknown_citations[:_MOST_UNKNOWN],
        num_unknown_citations=len(result.unknown_citations),
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def added_authors_to_proto(result: AddResult, model: ModelInfo, call: CallContext) -> papers_pb2.AddAuthorsResponse:
    """What is durable now."""
    return papers_pb2.AddAuthorsResponse(
        num_papers=result.papers,
        num_authors=result.authors,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def found_to_proto(
    found: Sequence[Sequence[tuple[str, str]]], num_candidates: int, model: ModelInfo, call: CallContext
) -> papers_pb2.FindCandidatesResponse:
    """Candidates in the order of the texts."""
    return papers_pb2.FindCandidatesResponse(
        results=[
            papers_pb2.FoundCandidates(
                candidates=[papers_pb2.Candidate(id=candidate, name=name) for candidate, name in candidates]
            )
            for candidates in found
        ],
        num_candidates=num_candidates,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )
