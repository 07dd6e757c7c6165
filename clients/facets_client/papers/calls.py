"""Methods of the clients about papers, their authors and the papers that cite them."""

from collections.abc import Sequence

from facets_proto.codec import from_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client.core.calls import AsyncCalls
from facets_client.core.channel import RequestT, ResponseT
from facets_client.core.filter_messages import filter_message
from facets_client.core.requests import (
    DEFAULT_TOP_K,
    check_iterable,
    join,
    least,
    max_with_evidence,
    move_indices,
    request_of,
)
from facets_client.errors import FacetsClientError
from facets_client.filters import Filter
from facets_client.generated.types import (
    AddedAuthors,
    AddedPapers,
    CandidateKind,
    CandidateRankings,
    FoundCandidates,
    NewAuthor,
    Paper,
    PaperRankings,
)
from facets_client.papers.messages import (
    bulk_candidates,
    merge_rankings,
    new_author_message,
    options_message,
    paper_messages,
    paper_rankings,
    year_range,
)
from facets_client.papers.results import BulkCandidates, PaperOptions

# Papers per bulk request: few enough for the timeout, enough to look up candidates rarely.
_BULK_PAPERS = 128
_PAPER_COUNTS = ("num_papers", "num_authors", "num_citing_papers", "num_unknown_citations")


class AsyncPaperCalls(AsyncCalls):
    """Methods of RecommendationService."""

    async def recommend_authors(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> CandidateRankings:
        """The authors that fit each paper best.

        Args:
            papers: At least one.
            options: Candidate authors and their scoring; None: the defaults.
            model: Name; empty: the server's default paper model.

        Returns:
            Entry i belongs to papers[i]; empty when no author is left.
        """
        return await self._recommend(pb.RecommendAuthorsRequest, pb.RecommendAuthorsResponse, papers, options, model)

    async def recommend_citations(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> CandidateRankings:
        """The papers that are most likely to cite each paper.

        Args:
            papers: At least one.
            options: Candidate papers and their scoring; None: the defaults.
            model: Name; empty: the server's default paper model.

        Returns:
            Entry i belongs to papers[i]; empty when no citing paper is left.
        """
        return await self._recommend(
            pb.RecommendCitationsRequest, pb.RecommendCitationsResponse, papers, options, model
        )

    async def _recommend(
        self,
        request: type[RequestT],
        response: type[ResponseT],
        papers: Sequence[Paper],
        options: PaperOptions | None,
        model: str,
    ) -> CandidateRankings:
        asked = options_message(options or PaperOptions())
        parts = await self._call_parts(
            request_of(request, papers=paper_messages(papers), model=model, options=asked),
            response,
            "papers",
            lambda limits: least(limits.max_texts_per_request, max_with_evidence(limits, asked)),
        )
        return join([from_message(part, CandidateRankings) for part in parts])

    async def recommend_bulk(
        self,
        kind: CandidateKind,
        papers: Sequence[Paper],
        options: PaperOptions | None = None,
        *,
        model: str = "",
    ) -> BulkCandidates:
        """Ids and scores only, for thousands of papers and candidates.

        Args:
            kind: ``authors`` or ``citations``.
            papers: At least one; sent in requests of 128.
            options: As in ``recommend_authors``.
            model: Name; empty: the server's default paper model.
        """
        request = request_of(
            pb.RecommendBulkRequest,
            kind=kind,
            papers=paper_messages(papers),
            model=model,
            options=options_message(options or PaperOptions()),
        )
        parts = await self._call_parts(
            request,
            pb.RecommendBulkResponse,
            "papers",
            lambda limits: least(_BULK_PAPERS, limits.max_texts_per_request),
        )
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
        excluded_ids: Sequence[str] = (),
        facet_weight: float | None = None,
        evidence: bool = False,
        min_revision: int = 0,
        model: str = "",
    ) -> PaperRankings:
        """Papers for authors or citing papers, best first.

        Args:
            kind: Kind of the ids: ``authors`` or ``citations``.
            ids: At least one; NotFoundError with similar ids when one is unknown.
            collection: Collection of the papers; a document's payload has ``title``, ``abstract`` and ``year``, or the
                first line of its text is the title.
            papers: Papers to rank, instead of a collection.
            top_k: Papers for each id; None: 10.
            where: Condition on the payload of documents; for ``papers`` on the year only, e.g.
                ``Range("year", gte=2015)``.
            excluded_ids: Ids of papers that are never listed.
            facet_weight: Share of facet similarity in the score, in [0, 1]; None: tuned for the model.
            evidence: Return evidence.
            min_revision: Read only this revision of the collection or a later one; 0: any.
            model: Name; empty: the server's default paper model.
        """
        if bool(collection) == (papers is not None):
            raise ValueError("expected collection or papers, got " + ("both" if collection else "neither"))
        request = request_of(
            pb.RankPapersRequest,
            kind=kind,
            ids=ids,
            model=model,
            top_k=top_k,
            excluded_ids=excluded_ids,
            facet_weight=facet_weight,
            evidence=evidence,
            min_revision=min_revision,
        )
        if papers is None:
            condition = request_of(pb.RankPapersRequest, collection=collection, where=filter_message(where))
            request.MergeFrom(condition)
            return paper_rankings(await self._rank(request), offset=None)

        from_year, to_year = year_range(where)
        request.MergeFrom(request_of(pb.RankPapersRequest, from_year=from_year, to_year=to_year))
        paper_list = pb.PaperList(papers=paper_messages(papers))
        rankings = []
        async for part, offset in self._cut(
            paper_list, "papers", lambda limits: limits.max_texts_per_request, other_bytes=request.ByteSize()
        ):
            request.papers.CopyFrom(part)
            try:
                replies = await self._rank(request)
            except FacetsClientError as error:
                move_indices(error, "papers", offset)
                raise
            rankings.append(paper_rankings(replies, offset=offset))
        return merge_rankings(rankings, DEFAULT_TOP_K if top_k is None else top_k)

    async def _rank(self, request: pb.RankPapersRequest) -> list[pb.RankPapersResponse]:
        return await self._call_parts(
            request,
            pb.RankPapersResponse,
            "ids",
            lambda limits: least(limits.max_queries_per_search, max_with_evidence(limits, request)),
        )

    async def add_papers(self, papers: Sequence[Paper], *, model: str = "") -> AddedPapers:
        """Adds papers with their authors and citing papers, without training; durable on return.

        Each request is atomic. A long input takes several requests, and an error in a later one leaves the earlier
        ones stored.
        """
        parts = await self._call_parts(
            request_of(pb.AddPapersRequest, papers=paper_messages(papers), model=model),
            pb.AddPapersResponse,
            "papers",
            lambda limits: limits.max_documents_per_upsert,
        )
        return join([from_message(part, AddedPapers) for part in parts], added=_PAPER_COUNTS)

    async def add_authors(self, authors: Sequence[NewAuthor], *, model: str = "") -> AddedAuthors:
        """Adds authors by their papers, without training; durable on return, like ``add_papers``."""
        check_iterable("authors", authors)
        messages = [new_author_message(author) for author in authors]
        most_papers = max((len(author.papers) for author in messages), default=0) or 1
        parts = await self._call_parts(
            request_of(pb.AddAuthorsRequest, authors=messages, model=model),
            pb.AddAuthorsResponse,
            "authors",
            # The limit on texts applies to the papers of all authors together.
            lambda limits: least(
                max(1, (limits.max_texts_per_request or most_papers) // most_papers), limits.max_documents_per_upsert
            ),
        )
        return join([from_message(part, AddedAuthors) for part in parts], added=("num_authors", "num_papers"))

    async def find_candidates(
        self, kind: CandidateKind, texts: Sequence[str], *, top_k: int | None = None, model: str = ""
    ) -> FoundCandidates:
        """Authors or citing papers by approximate ids or names, closest first.

        Args:
            kind: ``authors`` or ``citations``.
            texts: Approximate ids or names.
            top_k: Maximum candidates per text; None: 10.
            model: Name; empty: the server's default paper model.
        """
        parts = await self._call_parts(
            request_of(pb.FindCandidatesRequest, kind=kind, texts=texts, top_k=top_k, model=model),
            pb.FindCandidatesResponse,
            "texts",
            lambda limits: limits.max_queries_per_search,
        )
        return join([from_message(part, FoundCandidates) for part in parts])
