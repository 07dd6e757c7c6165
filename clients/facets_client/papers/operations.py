"""What the clients do about papers, their authors and who cites them, written once (see ``commands.py``)."""

from collections.abc import Sequence
from typing import Any

from facets_proto.v1.papers_pb2 import RankPapersRequest, RankPapersResponse

from facets_client import filters
from facets_client.core import rpc
from facets_client.core.batching import text_bytes
from facets_client.core.commands import Operation, call_part, check_sequence, move_indices
from facets_client.core.operations import Operations
from facets_client.core.results import Limits
from facets_client.errors import FacetsClientError
from facets_client.papers import convert, results

__all__ = ["RecommendationOperations"]

# Papers of one bulk request: few enough to be answered within a timeout, enough to look candidates up rarely.
_BULK_PAPERS = 128


class RecommendationOperations:
    """The operations of RecommendationService; inputs are cut with the help of the other operations."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def recommend(
        self,
        kind: results.CandidateKind,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None,
        *,
        model: str,
    ) -> Operation[results.Recommendations]:
        """Candidates for papers."""
        options = options or results.RecommendationOptions()
        told = convert.from_options(options)

        def max_papers(limits: Limits) -> int:
            if not (options.evidence and limits.max_evidence_hits):
                return limits.max_texts_per_request
            with_evidence = max(1, limits.max_evidence_hits // max(1, options.top_k))
            return min(limits.max_texts_per_request or with_evidence, with_evidence)

        check_sequence("papers", papers)
        messages = [convert.from_paper(paper) for paper in papers]
        sizes = [message.ByteSize() for message in messages]
        called: rpc.Rpc[Any, Any] = rpc.RECOMMEND_AUTHORS if kind == "authors" else rpc.RECOMMEND_CITATIONS
        parts = []
        for part in (
            yield from self._operations.cut("papers", sizes, model, max_papers, repeated_bytes=told.ByteSize())
        ):
            request = convert.recommend_request(kind, messages[part], told, model=model)
            parts.append((yield from call_part(called, request, field="papers", offset=part.start)))
        return convert.to_recommendations(parts)

    def recommend_bulk(
        self,
        kind: results.CandidateKind,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None,
        *,
        model: str,
    ) -> Operation[results.BulkRecommendations]:
        """Ids and scores for papers."""
        convert.kind_number(kind)
        told = convert.from_options(options or results.RecommendationOptions())
        check_sequence("papers", papers)
        messages = [convert.from_paper(paper) for paper in papers]
        sizes = [message.ByteSize() for message in messages]
        parts = []
        for part in (
            yield from self._operations.cut(
                "papers",
                sizes,
                model,
                lambda limits: min(_BULK_PAPERS, limits.max_texts_per_request or _BULK_PAPERS),
                repeated_bytes=told.ByteSize(),
            )
        ):
            request = convert.bulk_request(kind, messages[part], told, model=model)
            parts.append((yield from call_part(rpc.RECOMMEND_BULK, request, field="papers", offset=part.start)))
        return convert.to_bulk(parts)

    def rank_papers(
        self,
        kind: results.CandidateKind,
        ids: Sequence[str],
        *,
        collection: str,
        papers: Sequence[results.Paper] | None,
        top_k: int,
        where: filters.Filter | None,
        from_year: int | None,
        to_year: int | None,
        exclude: Sequence[str],
        facet_weight: float | None,
        evidence: bool,
        min_revision: int,
        model: str,
    ) -> Operation[results.PaperRankings]:
        """Papers for authors or citing papers."""
        for name, items in (("ids", ids), ("exclude", exclude), ("papers", papers or ())):
            check_sequence(name, items)
        if bool(collection) == (papers is not None):
            raise ValueError("expected collection or papers, got " + ("both" if collection else "neither"))
        if papers is None:
            request = convert.rank_request(
                kind,
                ids,
                collection=collection,
                papers=None,
                model=model,
                top_k=top_k,
                where=where,
                from_year=from_year,
                to_year=to_year,
                exclude=exclude,
                facet_weight=facet_weight,
                evidence=evidence,
                min_revision=min_revision,
            )
            return convert.to_rankings((yield from self._rank(request)), is_collection=True)
        messages = [convert.from_paper(paper) for paper in papers]
        found: list[results.PaperRankings] = []
        # Papers are scored one by one: the best of all are the best among the best of each request.
        for part in (
            yield from self._operations.cut(
                "papers",
                [message.ByteSize() for message in messages],
                model,
                lambda limits: limits.max_texts_per_request,
                repeated_bytes=sum(text_bytes(name) + 4 for name in (*ids, *exclude)),
            )
        ):
            request = convert.rank_request(
                kind,
                ids,
                collection="",
                papers=messages[part],
                model=model,
                top_k=top_k,
                where=where,
                from_year=from_year,
                to_year=to_year,
                exclude=exclude,
                facet_weight=facet_weight,
                evidence=evidence,
                min_revision=min_revision,
            )
            try:
                replies = yield from self._rank(request)
            except FacetsClientError as error:
                move_indices(error, "papers", part.start)
                raise
            found.append(convert.to_rankings(replies, is_collection=False, offset=part.start))
        return convert.merged_rankings(found, top_k)

    def _rank(self, request: RankPapersRequest) -> Operation[list[RankPapersResponse]]:
        """Asks for a few ids at a time."""
        ids = list(request.ids)

        def max_ids(limits: Limits) -> int:
            if not (request.evidence and limits.max_evidence_hits):
                return limits.max_queries_per_search
            with_evidence = max(1, limits.max_evidence_hits // max(1, request.top_k))
            return min(limits.max_queries_per_search or with_evidence, with_evidence)

        replies = []
        sizes = [text_bytes(name) for name in ids]
        repeated = request.ByteSize() - sum(sizes)
        for part in (yield from self._operations.cut("ids", sizes, request.model, max_ids, repeated_bytes=repeated)):
            some = convert.with_ids(request, ids[part])
            replies.append((yield from call_part(rpc.RANK_PAPERS, some, field="ids", offset=part.start)))
        return replies

    def add_papers(self, papers: Sequence[results.Paper], *, model: str) -> Operation[results.AddedPapers]:
        """Papers, request by request."""
        check_sequence("papers", papers)
        messages = [convert.from_paper(paper) for paper in papers]
        sizes = [message.ByteSize() for message in messages]
        parts = []
        for part in (
            yield from self._operations.cut("papers", sizes, model, lambda limits: limits.max_documents_per_upsert)
        ):
            request = convert.add_papers_request(messages[part], model=model)
            parts.append((yield from call_part(rpc.ADD_PAPERS, request, field="papers", offset=part.start)))
        return convert.to_added_papers(parts)

    def add_authors(self, authors: Sequence[results.NewAuthor], *, model: str) -> Operation[results.AddedAuthors]:
        """Authors, request by request."""
        check_sequence("authors", authors)
        messages = [convert.from_new_author(author) for author in authors]
        sizes = [message.ByteSize() for message in messages]
        most = max((len(author.papers) for author in authors), default=0) or 1

        def max_authors(limits: Limits) -> int:
            # So few that their papers are within the limit, too.
            by_papers = max(1, (limits.max_texts_per_request or most) // most)
            return min(by_papers, limits.max_documents_per_upsert or by_papers)

        parts = []
        for part in (yield from self._operations.cut("authors", sizes, model, max_authors)):
            request = convert.add_authors_request(messages[part], model=model)
            parts.append((yield from call_part(rpc.ADD_AUTHORS, request, field="authors", offset=part.start)))
        return convert.to_added_authors(parts)

    def find_candidates(
        self, kind: results.CandidateKind, texts: Sequence[str], *, top_k: int, model: str
    ) -> Operation[results.FoundCandidates]:
        """Candidates like texts."""
        check_sequence("texts", texts)
        sizes = [text_bytes(text) for text in texts]
        parts = []
        for part in (
            yield from self._operations.cut("texts", sizes, model, lambda limits: limits.max_queries_per_search)
        ):
            request = convert.find_request(kind, texts[part], top_k=top_k, model=model)
            parts.append((yield from call_part(rpc.FIND_CANDIDATES, request, field="texts", offset=part.start)))
        return convert.to_found(parts)
