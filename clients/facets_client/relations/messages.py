"""Converts texts with their entities to messages."""

from collections.abc import Sequence
from typing import Any

from facets_proto.v1 import relations_pb2 as pb

from facets_client.core.requests import check_iterable, request_of
from facets_client.generated.types import EntitySource, EntityType

# Entities of each text: (start, end) in characters, or (start, end, type).
Spans = Sequence[Sequence[tuple[int, int] | tuple[int, int, EntityType]]]


def texts_with_entities(texts: Sequence[str], spans: Spans | None, entity_source: EntitySource) -> dict[str, Any]:
    """The fields of a request for texts and their entities; ValueError unless each text has one list of spans."""
    check_iterable("texts", texts)
    if spans is None:
        spans = [()] * len(texts)
    if len(spans) != len(texts):
        raise ValueError(f"spans must have one list for each of {len(texts)} texts, got {len(spans)}")
    messages = []
    for position, (text, text_spans) in enumerate(zip(texts, spans, strict=True)):
        try:
            entities = [_span(*span) for span in text_spans]
            messages.append(request_of(pb.RelationText, text=text, entities=entities))
        except (TypeError, ValueError) as error:
            raise type(error)(f"texts[{position}] {error}") from error
    return {"texts": messages, "entity_source": "" if entity_source == "any" else entity_source}


def _span(start: int, end: int, kind: EntityType = "") -> pb.EntitySpan:
    return request_of(pb.EntitySpan, start=start, end=end, type=kind)
