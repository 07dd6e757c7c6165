"""What the retrievers of all frameworks share: how they search, and what they tell of a hit."""

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Any

from facets_client.client import AsyncFacetsClient, FacetsClient
from facets_client.documents.types import SearchHit, SearchMode
from facets_client.filters import Filter

HIT_KEY = "facets_hit"  # of the metadata; everything else in there is the document's payload


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """How a retriever searches; see ``FacetsClient.search`` for what each setting means."""

    collection: str
    top_k: int = 10
    mode: SearchMode = "hybrid"
    where: Filter | None = None
    min_confidence: float | None = None
    diversify: float = 0.0
    model: str = ""

    def hits(self, client: FacetsClient, query: str) -> tuple[SearchHit, ...]:
        """Hits of one query, best first."""
        return client.search(self.collection, [query], **self._settings())[0].hits

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
