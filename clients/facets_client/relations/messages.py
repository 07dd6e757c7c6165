"""Converts texts with their entities to messages."""

from collections.abc import Sequence

from facets_proto.v1 import relations_pb2 as pb

from facets_client.core.requests import DEFAULT_TOP_K, check_iterable, least, request_of
from facets_client.generated.types import EntityType, Limits

# Entities of each text: (start, end) in characters, or (start, end, type).
Spans = Sequence[Sequence[tuple[int, int] | tuple[int, int, EntityType]]]


def text_messages(texts: Sequence[str], spans: Spans | None) -> list[pb.RelationText]:
    """Texts with their entities.

    Raises:
        ValueError: Not one list of spans for each text, or a value that does not fit its field.
        TypeError: One string instead of texts, or a value of a wrong type.
    """
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
    return messages


def _span(start: int, end: int, kind: EntityType = "") -> pb.EntitySpan:
    return request_of(pb.EntitySpan, start=start, end=end, type=kind)


def max_patterns(limits: Limits, request: pb.ScoreRelationsRequest) -> int:
    """Maximum patterns per request, given the number of relations returned for each; 0: no limit."""
    num_returned = least(request.top_k, len(request.relations)) or DEFAULT_TOP_K
    by_scores = limits.max_relation_scores and max(1, limits.max_relation_scores // num_returned)
    return least(limits.max_patterns_per_request, by_scores)
