"""Shared by the retrievers of all frameworks: the description of a hit."""

from dataclasses import asdict

from facets_client.generated.types import SearchHit

HIT_KEY = "facets_hit"  # in the metadata, beside the document's payload


def metadata_of(hit: SearchHit) -> dict[str, object]:
    """The payload of the document, and under ``facets_hit`` the scores, the matched words and the part that answers.

    ``answer`` is None, or ``{"start", "end", "field", "text", "problem", "columns", "cells"}``: offsets in characters
    into the text, or into the field of the payload that it names; for the others see ``Span``.
    """
    names = ("score", "confidence", "facets_score", "lexical_score")
    about = {name: getattr(hit, name) for name in names}
    about |= {"matched_words": list(hit.matched_words), "answer": hit.answer and asdict(hit.answer)}
    return {**hit.payload, HIT_KEY: about}
