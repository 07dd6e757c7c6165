"""Shared by the retrievers of all frameworks: search settings, and the description of a hit."""

import hashlib
from dataclasses import asdict
from typing import TypedDict

from facets_client.filters import Filter
from facets_client.generated.types import SearchHit, SearchMode

HIT_KEY = "facets_hit"  # in the metadata, beside the document's payload


class SearchSettings(TypedDict, total=False):
    """How a retriever searches; see ``FacetsClient.search``. The server has defaults for unset values."""

    top_k: int  # documents for each query
    mode: SearchMode  # hybrid, facets or lexical
    where: Filter | None  # condition on the payload
    min_confidence: float | None  # only hits of at least this confidence, in [0, 1]
    diversify: float  # how much the hits should differ, in [0, 1]
    model: str  # embeds the queries


def metadata_of(hit: SearchHit) -> dict[str, object]:
    """The payload of the document, and under ``facets_hit`` the scores, the matched words and the part that answers.

    ``answer`` is None, or ``{"start", "end", "field", "text", "problem", "columns", "cells"}``: offsets in characters
    into the text, or into the field of the payload that it names; for the others see ``Span``.
    """
    names = ("score", "confidence", "facets_score", "lexical_score")
    about = {name: getattr(hit, name) for name in names}
    about |= {"matched_words": list(hit.matched_words), "answer": hit.answer and asdict(hit.answer)}
    return {**hit.payload, HIT_KEY: about}


def content_id(text: str) -> str:
    """An id for a document that has none; the same text has the same id."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
