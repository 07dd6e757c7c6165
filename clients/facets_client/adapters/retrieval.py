"""What the retrievers of all frameworks share: how they search, and what they tell of a hit."""

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Any, TypedDict

from facets_client.client import AsyncFacetsClient, FacetsClient
from facets_client.filters import Filter
from facets_client.generated.types import SearchHit, SearchMode

HIT_KEY = "facets_hit"  # of the metadata; everything else in there is the document's payload


class SearchSettings(TypedDict, total=False):
    """How a retriever searches, as far as it is said; see ``FacetsClient.search`` for what each setting means."""

    top_k: int  # documents for each query; 10
    mode: SearchMode  # hybrid, facets or lexical; hybrid
    where: Filter | None  # condition on the payload; None: all documents
    min_confidence: float | None  # only hits of at least this confidence, in [0, 1]; None: all
    diversify: float  # how much the hits shall differ, in [0, 1]; 0
    model: str  # that embeds the queries; empty: the collection's


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """A collection and ``SearchSettings`` for it."""

    collection: str
    top_k: int = 10
    mode: SearchMode = "hybrid"
    where: Filter | None = None
    min_confidence: float | None = None
    diversify: float = 0.0
    model: str = ""

    def hits(self, client: FacetsClient, query: str, *, top_k: int | None = None) -> tuple[SearchHit, ...]:
        """Hits of one query, best first; ``top_k`` in place of the retriever's."""
        asked = self._settings() if top_k is None else {**self._settings(), "top_k": top_k}
        return client.search(self.collection, [query], **asked)[0].hits

    async def hits_async(self, client: AsyncFacetsClient, query: str) -> tuple[SearchHit, ...]:
        """The same, awaited."""
        return (await client.search(self.collection, [query], **self._settings()))[0].hits

    def _settings(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "collection"}


def describe(hit: SearchHit) -> dict[str, object]:
    """What a search says about a hit, as JSON: scores, confidence, words that matched, and the part that answers.

    ``answer`` is None, or ``{"start", "end", "field", "text"}``: offsets in characters into the text, or into the
    field of the payload where it names one.
    """
    return {
        "score": hit.score,
        "confidence": hit.confidence,
        "facets_score": hit.facets_score,
        "lexical_score": hit.lexical_score,
        "matched_words": list(hit.matched_words),
        "answer": hit.answer and asdict(hit.answer),
    }


def metadata_of(hit: SearchHit) -> dict[str, object]:
    """The payload of the document, and ``describe`` of the hit under ``facets_hit``."""
    return {**hit.payload, HIT_KEY: describe(hit)}


def content_id(text: str) -> str:
    """An id for a document that has none: the same text has the same one, so that loading twice stores it once."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
