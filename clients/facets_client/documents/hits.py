"""A document that a search found."""

from dataclasses import dataclass

from facets_client.core.results import FacetMatch, Span


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found."""

    id: str
    score: float  # what the hits are in order of: in [-1, 1] in mode hybrid, else the score of that side
    text: str
    payload: dict[str, object]
    evidence: tuple[FacetMatch, ...]  # first is the query's facet, second the document's, largest contribution first
    revision: int  # the index revision that stored the document
    facets_score: float  # mean over the query's facets of the cosine with the document's closest facet, in [-1, 1]
    lexical_score: float  # BM25 of the words, 0 or more
    matched_words: tuple[str, ...]  # words of the query that the text has in any form
    answer: Span | None  # the part of the text that answers
    confidence: float | None  # how sure it is that the document answers, in [0, 1]; None: not calibrated
    matched_spans: tuple[Span, ...]  # where words of the query stand in the answer
