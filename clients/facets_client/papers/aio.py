"""The asyncio client's methods about papers: who would write them, who would cite them."""

from collections.abc import Sequence
from typing import TypeVar

from facets_client import filters
from facets_client.core.commands import Operation
from facets_client.core.operations import Operations
from facets_client.papers import results
from facets_client.papers.operations import RecommendationOperations

__all__ = ["AsyncRecommendationCalls"]

T = TypeVar("T")


class AsyncRecommendationCalls:
    """Part of ``AsyncFacetsClient``; ``RecommendationCalls`` describes the arguments."""

    _operations: Operations

    async def _run(self, operation: Operation[T]) -> T:
        raise NotImplementedError

    @property
    def _recommendations(self) -> RecommendationOperations:
        return RecommendationOperations(self._operations)

    async def recommend_authors(
        self,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.Recommendations:
        """The authors that each paper suits best."""
        return await self._run(self._recommendations.recommend("authors", papers, options, model=model))

    async def recommend_citations(
        self,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.Recommendations:
        """The papers that would most likely cite each paper."""
        return await self._run(self._recommendations.recommend("citations", papers, options, model=model))

    async def recommend_bulk(
        self,
        kind: results.CandidateKind,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.BulkRecommendations:
        """Ids and scores alone, for thousands of papers against thousands of candidates."""
        return await self._run(self._recommendations.recommend_bulk(kind, papers, options, model=model))

    async def rank_papers(
        self,
        kind: results.CandidateKind,
        ids: Sequence[str],
        *,
        collection: str = "",
        papers: Sequence[results.Paper] | None = None,
        top_k: int = 10,
        where: filters.Filter | None = None,
        from_year: int | None = None,
        to_year: int | None = None,
        exclude: Sequence[str] = (),
        facet_weight: float | None = None,
        evidence: bool = False,
        min_revision: int = 0,
        model: str = "",
    ) -> results.PaperRankings:
        """Papers for authors or citing papers, best first."""
        return await self._run(
            self._recommendations.rank_papers(
                kind,
                ids,
                collection=collection,
                papers=papers,
                top_k=top_k,
                where=where,
                from_year=from_year,
                to_year=to_year,
                exclude=exclude,
                facet_weight=facet_weight,
                evidence=evidence,
                min_revision=min_revision,
                model=model,
            )
        )

    async def add_papers(self, papers: Sequence[results.Paper], *, model: str = "") -> results.AddedPapers:
        """Adds papers with their authors and citing papers, without training; durable on return."""
        return await self._run(self._recommendations.add_papers(papers, model=model))

    async def add_authors(self, authors: Sequence[results.NewAuthor], *, model: str = "") -> results.AddedAuthors:
        """Adds authors by what they wrote, without training; durable on return, as ``add_papers``."""
        return await self._run(self._recommendations.add_authors(authors, model=model))

    async def find_candidates(
        self, kind: results.CandidateKind, texts: Sequence[str], *, top_k: int = 10, model: str = ""
    ) -> results.FoundCandidates:
        """Authors or citing papers by ids or names that need not be quite right, closest first."""
        return await self._run(self._recommendations.find_candidates(kind, texts, top_k=top_k, model=model))
