"""Options and results of recommendations, written by hand because their fields differ from the message's."""

from collections.abc import Sequence
from dataclasses import dataclass

from facets_client.filters import Filter
from facets_client.generated.types import ModelVersion, Timings


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperOptions:
    """Choice and scoring of the candidates.

    Attributes:
        top_k: Candidates for each paper; None: 10.
        excluded_ids: Ids of candidates that are never recommended.
        candidates: Ids of the only candidates; None: all. An empty list gives empty answers.
        where: Condition on the year of a paper of the author, or of the citing paper: ``Range("year", gte=2015)``.
            Candidates of unknown years are left out.
        positive_ids: Ids of example candidates; similar ones rank higher.
        negative_ids: Ids of example candidates; similar ones rank lower.
        example_weight: What a cosine of 1 to an example adds to the score; None: the model's weight.
        facet_weight: Share of facet similarity in the score, in [0, 1]; None: tuned for the model.
        evidence: Return evidence; not for bulk calls.
        diversify: How much the candidates should differ, in [0, 1]; None: not at all. Not for bulk calls.
    """

    top_k: int | None = None
    excluded_ids: Sequence[str] = ()
    candidates: Sequence[str] | None = None
    where: Filter | None = None
    positive_ids: Sequence[str] = ()
    negative_ids: Sequence[str] = ()
    example_weight: float | None = None
    facet_weight: float | None = None
    evidence: bool = False
    diversify: float | None = None


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """Ids and scores only.

    Attributes:
        results: Entry i belongs to papers[i]: ``(id, score)`` of each candidate, best first.
        unknown_candidates: The first entries of the option ``candidates`` that are unknown.
        num_unknown_candidates: Number of such entries.
        model: The model that answered.
        timings: Where the time went.
    """

    results: tuple[tuple[tuple[str, float], ...], ...]
    unknown_candidates: tuple[str, ...]
    num_unknown_candidates: int
    model: ModelVersion
    timings: Timings
