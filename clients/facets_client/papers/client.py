"""The blocking client's methods about papers: who would write them, who would cite them."""

from collections.abc import Sequence
from typing import TypeVar

from facets_client import filters
from facets_client.core.commands import Operation
from facets_client.core.operations import Operations
from facets_client.papers import results
from facets_client.papers.operations import RecommendationOperations

__all__ = ["RecommendationCalls"]

T = TypeVar("T")


class RecommendationCalls:
    """Part of ``FacetsClient``."""

    _operations: Operations

    def _run(self, operation: Operation[T]) -> T:
        raise NotImplementedError

    @property
    def _recommendations(self) -> RecommendationOperations:
        return RecommendationOperations(self._operations)

    def recommend_authors(
        self,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.Recommendations:
        """The authors that each paper suits best.

        Args:
            papers: At least one.
            options: Which authors, and how they are scored; None: ten, all authors, the server's weights.
            model: Name; empty: the server's default model of papers.

        Returns:
            Entry i belongs to papers[i]; empty when no author is left.
        """
        return self._run(self._recommendations.recommend("authors", papers, options, model=model))

    def recommend_citations(
        self,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.Recommendations:
        """The papers that would most likely cite each paper."""
        return self._run(self._recommendations.recommend("citations", papers, options, model=model))

    def recommend_bulk(
        self,
        kind: results.CandidateKind,
        papers: Sequence[results.Paper],
        options: results.RecommendationOptions | None = None,
        *,
        model: str = "",
    ) -> results.BulkRecommendations:
        """Ids and scores alone, for thousands of papers against thousands of candidates.

        Args:
            kind: ``authors`` or ``citations``.
            papers: Any number, in requests of 128.
            options: As for ``recommend_authors``.
            model: Name; empty: the server's default model of papers.
        """
        return self._run(self._recommendations.recommend_bulk(kind, papers, options, model=model))

    def rank_papers(
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
        """Papers for authors or citing papers, best first.

        Args:
            kind: What the ids are: ``authors`` or ``citations``.
            ids: At least one; NotFoundError with near ones when one is unknown.
            collection: Where the papers are; a document's payload has ``title``, ``abstract`` and ``year``, or its
                text begins with a line that is the title.
            papers: Instead, papers of the caller's.
            top_k: Papers for each id.
            where: Condition on the payload of documents.
            from_year: Papers of this year or later.
            to_year: Papers up to this year.
            exclude: Ids of papers never listed.
            facet_weight: Share of the facets in the score, in [0, 1]; None: tuned for the model.
            evidence: Say why.
            min_revision: Read only this revision of the collection or a later one; 0: any.
            model: Name; empty: the server's default model of papers.
        """
        return self._run(
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

    def add_papers(self, papers: Sequence[results.Paper], *, model: str = "") -> results.AddedPapers:
        """Adds papers with their authors and citing papers, without training; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.
        """
        return self._run(self._recommendations.add_papers(papers, model=model))

    def add_authors(self, authors: Sequence[results.NewAuthor], *, model: str = "") -> results.AddedAuthors:
        """Adds authors by what they wrote, without training; durable on return, as ``add_papers``."""
        return self._run(self._recommendations.add_authors(authors, model=model))

    def find_candidates(
        self, kind: results.CandidateKind, texts: Sequence[str], *, top_k: int = 10, model: str = ""
    ) -> results.FoundCandidates:
        """Authors or citing papers by ids or names that need not be quite right, closest first."""
        return self._run(self._recommendations.find_candidates(kind, texts, top_k=top_k, model=model))
