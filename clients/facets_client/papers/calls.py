"""Methods of the clients about papers, their authors and the papers that cite them."""

from collections.abc import Sequence
from typing import Any

from facets_proto.codec import from_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client.core.calls import AsyncCalls
from facets_client.core.requests import (
    check_iterable,
    join,
    max_with_evidence,
    moved_indices,
    record_message,
    request_from,
    request_of,
)
from facets_client.filters import Filter, filter_message
from facets_client.generated.types import (
    AddedAuthors,
    AddedPapers,
    CandidateKind,
    CandidateRankings,
    FoundCandidates,
    NewAuthor,
    Paper,
    PaperOptions,
    PaperRankings,
)
from facets_client.papers.messages import (
    BulkCandidates,
    bulk_candidates,
    merge_rankings,
    new_author_message,
    paper_messages,
    paper_rankings,
)

# Papers per bulk request: few enough for the timeout, enough to look up candidates rarely.
_BULK_PAPERS = 128


class AsyncPaperCalls(AsyncCalls):
    """Methods of RecommendationService."""

    async def recommend_authors(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> CandidateRankings:
        """The authors that fit each paper best; empty for a paper when no author is left."""
        return await self._recommend(pb.RecommendAuthorsRequest, papers, options, model)

    async def recommend_citations(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> CandidateRankings:
        """The papers that are most likely to cite each paper; empty for a paper when none is left."""
        return await self._recommend(pb.RecommendCitationsRequest, papers, options, model)

    async def _recommend(
        self, request: Any, papers: Sequence[Paper], options: PaperOptions | None, model: str
    ) -> CandidateRankings:
        sent = record_message(options or PaperOptions(), pb.PaperOptions)
        parts = await self._call_parts(
            request_of(request, papers=paper_messages(papers), model=model, options=sent),
            "papers",
            "max_texts_per_request",
            lambda limits: max_with_evidence(limits, sent),
        )
        return join([from_message(part, CandidateRankings) for part in parts])

    async def recommend_bulk(
        self, kind: CandidateKind, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> BulkCandidates:
        """Ids and scores only, for thousands of papers and candidates; sent in requests of 128 papers."""
        sent = record_message(options or PaperOptions(), pb.PaperOptions)
        request = request_of(
            pb.RecommendBulkRequest, kind=kind, papers=paper_messages(papers), model=model, options=sent
        )
        parts = await self._call_parts(request, "papers", "max_texts_per_request", lambda limits: _BULK_PAPERS)
        return bulk_candidates(parts)

    async def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        *,
        collection: str = "",
        papers: Sequence[Paper] | None = None,
        top_k: int | None = None,
        where: Filter | None = None,
        from_year: int | None = None,
        to_year: int | None = None,
        excluded_ids: Sequence[str] = (),
        facet_weight: float | None = None,
        evidence: bool = False,
        min_revision: int = 0,
        model: str = "",
    ) -> PaperRankings:
        """Papers of a collection, or of the caller, for authors or citing papers, best first."""
        if bool(collection) == (papers is not None):
            raise ValueError("expected collection or papers, got " + ("both" if collection else "neither"))
        request = request_from(pb.RankPapersRequest, locals(), papers=None, where=filter_message(where))
        if papers is None:
            return paper_rankings(await self._rank(request), offset=None)

        paper_list = pb.PaperList(papers=paper_messages(papers))
        rankings = []
        async for part, offset in self._cut(
            paper_list, "papers", "max_texts_per_request", other_bytes=request.ByteSize()
        ):
            request.papers.CopyFrom(part)
            with moved_indices("papers", offset):
                replies = await self._rank(request)
            rankings.append(paper_rankings(replies, offset=offset))
        return merge_rankings(rankings, top_k)

    async def _rank(self, request: pb.RankPapersRequest) -> list[Any]:
        return await self._call_parts(
            request, "ids", "max_queries_per_search", lambda limits: max_with_evidence(limits, request)
        )

    async def add_papers(self, papers: Sequence[Paper], *, model: str = "") -> AddedPapers:
        """Adds papers with their authors and citing papers, without training; durable on return.

        Each request is atomic. A long input takes several requests, and an error in a later one leaves the earlier
        ones stored.
        """
        request = request_of(pb.AddPapersRequest, papers=paper_messages(papers), model=model)
        parts = await self._call_parts(request, "papers", "max_documents_per_upsert")
        counts = ("num_papers", "num_authors", "num_citing_papers", "num_unknown_citations")
        return join([from_message(part, AddedPapers) for part in parts], added=counts)

    async def add_authors(self, authors: Sequence[NewAuthor], *, model: str = "") -> AddedAuthors:
        """Adds authors by their papers, without training; known authors get more papers. Durable on return."""
        check_iterable("authors", authors)
        messages = [new_author_message(author) for author in authors]
        most_papers = max((len(author.papers) for author in messages), default=0) or 1
        parts = await self._call_parts(
            request_of(pb.AddAuthorsRequest, authors=messages, model=model),
            "authors",
            "max_documents_per_upsert",
            # The limit on texts applies to the papers of all authors together.
            lambda limits: max(1, (limits.max_texts_per_request or most_papers) // most_papers),
        )
        return join([from_message(part, AddedAuthors) for part in parts], added=("num_authors", "num_papers"))

    async def find_candidates(
        self, kind: CandidateKind, texts: Sequence[str], *, top_k: int | None = None, model: str = ""
    ) -> FoundCandidates:
        """Authors or citing papers by approximate ids or names, closest first."""
        request = request_from(pb.FindCandidatesRequest, locals())
        parts = await self._call_parts(request, "texts", "max_queries_per_search")
        return join([from_message(part, FoundCandidates) for part in parts])
