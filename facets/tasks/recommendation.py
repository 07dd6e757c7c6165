"""Who would write and who would cite a paper, from its title and abstract alone (Chang 2022, section 3.4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from facets.tasks.recommendation_types import (
    AddResult,
    BulkRecommendations,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    RankedPaper,
    Recommendation,
    RecommendationOptions,
)

__all__ = ["Recommender"]


class Recommender:
    """A model of papers with its authors and citing papers, and those added since; may be shared by threads.

    The model folder is never written. What is added goes to ``data_dir`` (one SQLite file) and is durable
    before the call returns; a recommender opened on the same folder later has it again.
    """

    def __init__(self, model: object, *, data_dir: Path | None = None) -> None:
        """Takes a model that ``facets.load`` returned.

        Args:
            model: Its ``task`` is ``papers``.
            data_dir: Folder for additions, made when absent; None: additions are refused.

        Raises:
            InvalidInputError: The model's task is another one.
            StorageError: The folder cannot be opened, or belongs to another model.
        """
        raise NotImplementedError

    @classmethod
    def load(cls, name_or_path: str | Path | None = None, *, data_dir: Path | None = None, device: str = "cpu") -> Self:
        """Loads a model (``facets-papers-en`` when none is named) and the additions in ``data_dir``.

        Raises:
            NotFoundError: No such model.
            CheckpointError: The model folder is damaged.
            InvalidInputError: The model's task is not ``papers``.
        """
        raise NotImplementedError

    def size(self, kind: CandidateKind) -> int:
        """How many authors or citing papers are known."""
        raise NotImplementedError

    def find(self, kind: CandidateKind, text: str, *, top_k: int = 10) -> list[tuple[str, str]]:
        """Candidates whose id or name is like a text, best first: ``(id, name)``; for "did you mean"."""
        raise NotImplementedError

    def encode(self, papers: Sequence[Paper]) -> PaperFacets:
        """Facets, magnitudes and word averages of papers, in order.

        Raises:
            InvalidInputError: A paper has no title (``field`` is ``papers[3].title``).
        """
        raise NotImplementedError

    def recommend_authors(
        self, papers: Sequence[Paper] | PaperFacets, options: RecommendationOptions | None = None
    ) -> list[list[Recommendation]]:
        """Authors for each paper, best first, ties by id.

        A list is empty when no candidate is left, e.g. when everyone is excluded.

        Raises:
            InvalidInputError: A paper has no title; a positive or negative example is unknown.
        """
        raise NotImplementedError

    def recommend_citations(
        self, papers: Sequence[Paper] | PaperFacets, options: RecommendationOptions | None = None
    ) -> list[list[Recommendation]]:
        """Papers that would cite each paper; as ``recommend_authors``."""
        raise NotImplementedError

    def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        papers: Sequence[Paper] | PaperFacets,
        options: RecommendationOptions | None = None,
    ) -> list[list[RankedPaper]]:
        """Ranks papers for each author or citing paper of ``ids``.

        Args:
            kind: What the ids are.
            ids: Authors (id, else name) or citing papers.
            papers: The papers to rank; a collection that is asked often is encoded once by ``encode``.
            options: ``exclude``, ``candidates``, ``positive`` and ``negative`` are ids of ``papers`` here, and the
                years bound their ``year``; encoded papers have neither id nor year, so all of these must be empty.

        Returns:
            One list an id, best first, ties by place.

        Raises:
            NotFoundError: An id is unknown (``resource_type`` ``author`` or ``citing_paper``); the message
                names the nearest known ones.
            InvalidInputError: A paper has no title, or two papers have the same id.
        """
        raise NotImplementedError

    def recommend_bulk(
        self,
        kind: CandidateKind,
        papers: Sequence[Paper] | PaperFacets,
        options: RecommendationOptions | None = None,
    ) -> BulkRecommendations:
        """``recommend_authors`` or ``recommend_citations`` as arrays, for thousands of papers; no evidence."""
        raise NotImplementedError

    def add_papers(self, papers: Sequence[Paper]) -> AddResult:
        """Stores papers and fits the vectors of their authors and citing papers, new and known, without retraining.

        A paper of a known id is replaced. ``cited_by`` entries that are no known paper become citing papers
        all the same and are reported.

        Raises:
            InvalidInputError: No title, no id, or an id twice in the call; nothing was stored then.
            StorageError: No ``data_dir``, or it could not be written; nothing was stored then.
        """
        raise NotImplementedError

    def add_authors(self, authors: Sequence[NewAuthor]) -> AddResult:
        """Fits vectors of authors from what they wrote and stores them; a known author gets more papers.

        Raises:
            InvalidInputError: An author without papers, or twice in the call; nothing was stored then.
            NotFoundError: A ``paper_id`` is unknown (``resource_type`` ``paper``).
            StorageError: As for ``add_papers``.
        """
        raise NotImplementedError
