"""Checks requests about relations, and finds their entities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from facets_proto.v1 import relations_pb2 as pb

from facets.errors import InvalidInputError
from facets.relations.entities import EntitySpan
from facets_server.relations.entities import EntityFinders, EntitySource
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.requests import check_list_of_texts, check_not_empty, check_texts, record_of

DEFAULT_TOP_K = 10
MAX_NAME_BYTES = 4096
# Arguments of the library -> fields of the requests.
FIELDS: FieldNames = {
    "texts": ("texts", ITEM, "text"),
    "spans": ("texts", ITEM, "entities"),
    "patterns": ("patterns", ITEM),
    "premises": ("pairs", ITEM, "premise"),
    "hypotheses": ("pairs", ITEM, "hypothesis"),
    "names": ("gazetteer_names", ITEM),
}

_WithTexts = pb.ExtractRelationsRequest | pb.FillSlotsRequest
Entities: TypeAlias = Callable[[Sequence[str], int], Sequence[Sequence[EntitySpan]]]
"""The entities of texts that begin at an index of the request: as given, or found."""


def check_slots(request: pb.FillSlotsRequest) -> None:
    """Checks the bytes of heads and relations; raises InvalidInputError."""
    check_not_empty(request.slots, ("slots",))
    check_texts(
        (("slots", i, side), getattr(slot, side), MAX_NAME_BYTES)
        for i, slot in enumerate(request.slots)
        for side in ("head", "relation")
    )


def num_scores_of(request: pb.ScoreRelationsRequest, limits: LimitsConfig) -> int | None:
    """Checks a request; the most relations of each pattern, None: every candidate. Raises InvalidInputError."""
    check_not_empty(request.patterns, ("patterns",))
    check_list_of_texts(request.patterns, "patterns", max_bytes=limits.max_text_bytes)
    check_list_of_texts(request.relations, "relations", max_bytes=MAX_NAME_BYTES)
    top_k = request.top_k if request.HasField("top_k") else None if request.relations else DEFAULT_TOP_K
    num_relations = len(request.relations) or top_k or 0
    num_scores = len(request.patterns) * min(num_relations, top_k or num_relations)
    if num_scores > limits.max_relation_scores:
        rule = f"x relations of each are {num_scores}, the limit is {limits.max_relation_scores}"
        raise InvalidInputError(rule, path="patterns")
    return top_k


def texts_of(request: _WithTexts, limits: LimitsConfig) -> list[str]:
    """The texts of a request; raises InvalidInputError."""
    check_not_empty(request.texts, ("texts",))
    texts = [message.text for message in request.texts]
    check_texts((("texts", i, "text"), text, limits.max_text_bytes) for i, text in enumerate(texts))
    return texts


@dataclass(frozen=True, slots=True)
class _Text:
    entities: tuple[EntitySpan, ...]


@dataclass(frozen=True, slots=True)
class _Sources:
    texts: tuple[_Text, ...]
    entity_source: EntitySource


def entities_of(request: _WithTexts, finders: EntityFinders, limits: LimitsConfig) -> Entities:
    """Entities of a request; raises InvalidInputError, or ConfigError when the server has no source of entities."""
    sources = record_of(request, _Sources)
    source, names = sources.entity_source, request.gazetteer_names
    first = next((i for i, text in enumerate(sources.texts) if text.entities), None)
    if first is not None and (names or source in (EntitySource.GAZETTEER, EntitySource.NER)):
        other = "gazetteer_names" if names else "entity_source"
        raise InvalidInputError(f"cannot be combined with {other}", path=("texts", first, "entities"))
    with in_request(FIELDS):
        finder = finders.get(source, names, has_spans=first is not None)
    spans = [text.entities for text in sources.texts]
    return lambda texts, start: spans[start : start + len(texts)] if finder is None else finder.find(texts)
