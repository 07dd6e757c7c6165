"""Requests about relations as checked queries."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets_proto.v1 import relations_pb2

from facets.errors import ErrorPath, InvalidInputError
from facets.relations.entities import EntitySpan, EntityType
from facets.relations.patterns import PatternLimits
from facets_server.relations.entities import EntityFinders, EntitySource
from facets_server.relations.served import FIELDS, Entities
from facets_server.runtime.field_names import in_request
from facets_server.runtime.limits import LimitsConfig, check_count, check_number, check_texts

__all__ = [
    "TYPES_TO_PROTO",
    "ExtractionQuery",
    "PatternQuery",
    "SlotQuery",
    "adding_from_proto",
    "entailment_from_proto",
    "extraction_from_proto",
    "patterns_from_proto",
    "slots_from_proto",
]

_SOURCES = {
    relations_pb2.ENTITY_SOURCE_UNSPECIFIED: EntitySource.ANY,
    relations_pb2.ENTITY_SOURCE_SPANS: EntitySource.SPANS,
    relations_pb2.ENTITY_SOURCE_GAZETTEER: EntitySource.GAZETTEER,
    relations_pb2.ENTITY_SOURCE_NER: EntitySource.NER,
}
TYPES_TO_PROTO = {
    EntityType.UNKNOWN: relations_pb2.ENTITY_TYPE_UNSPECIFIED,
    EntityType.PERSON: relations_pb2.ENTITY_TYPE_PERSON,
    EntityType.ORGANIZATION: relations_pb2.ENTITY_TYPE_ORGANIZATION,
    EntityType.PLACE: relations_pb2.ENTITY_TYPE_PLACE,
    EntityType.DATE: relations_pb2.ENTITY_TYPE_DATE,
    EntityType.NUMBER: relations_pb2.ENTITY_TYPE_NUMBER,
    EntityType.WORK: relations_pb2.ENTITY_TYPE_WORK,
    EntityType.EVENT: relations_pb2.ENTITY_TYPE_EVENT,
    EntityType.GROUP: relations_pb2.ENTITY_TYPE_GROUP,
    EntityType.THING: relations_pb2.ENTITY_TYPE_THING,
}
_TYPES = {number: kind for kind, number in TYPES_TO_PROTO.items()}
_MOST_TOKENS_BETWEEN, _MOST_ENTITIES_BETWEEN, _MOST_PAIRS = 100, 20, 1000
_DEFAULT_TOP_K = 10
_MOST_RELATIONS_PER_PAIR = 50
_MOST_NAME_BYTES = 4096

_WithTexts = relations_pb2.ExtractRelationsRequest | relations_pb2.FillSlotsRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionQuery:
    """A checked ExtractRelationsRequest.

    Attributes:
        texts: What to read.
        entities: Where the entities of the texts are.
        relations: Candidates; None: all.
        limits: Which pairs are looked at.
        include_unrelated: Also return pairs without an accepted relation.
        max_relations_per_pair: Accepted relations of two entities at most.
        top_k: Relations returned of each pair; None: the accepted ones.
        evidence: Return which facet met which.
        max_scores: Relations returned in all.
    """

    texts: tuple[str, ...]
    entities: Entities
    relations: tuple[str, ...] | None
    limits: PatternLimits
    include_unrelated: bool
    max_relations_per_pair: int
    top_k: int | None
    evidence: bool
    max_scores: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotQuery:
    """A checked FillSlotsRequest; ``slots`` are (head, relation)."""

    slots: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    entities: Entities
    limits: PatternLimits
    top_k: int
    evidence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternQuery:
    """A checked ScoreRelationsRequest; ``top_k`` None: every candidate."""

    patterns: tuple[str, ...]
    relations: tuple[str, ...] | None
    top_k: int | None
    evidence: bool


def extraction_from_proto(
    request: relations_pb2.ExtractRelationsRequest, finders: EntityFinders, limits: LimitsConfig
) -> ExtractionQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
        ConfigError: The server has no source of entities.
    """
    texts = _texts(request, limits)
    return ExtractionQuery(
        texts=texts,
        entities=_entities(request, finders, limits),
        relations=_candidates(request.relations),
        limits=_pair_limits(request.pair_limits),
        include_unrelated=request.include_unrelated,
        max_relations_per_pair=check_number(
            request.max_relations_per_pair if request.HasField("max_relations_per_pair") else 1,
            ("max_relations_per_pair",),
            _MOST_RELATIONS_PER_PAIR,
        ),
        top_k=check_number(request.top_k, ("top_k",), limits.max_top_k) if request.HasField("top_k") else None,
        evidence=request.evidence,
        max_scores=limits.max_relation_scores,
    )


def slots_from_proto(
    request: relations_pb2.FillSlotsRequest, finders: EntityFinders, limits: LimitsConfig
) -> SlotQuery:
    """A request as a checked query; raises as ``extraction_from_proto``."""
    check_count(request.slots, ("slots",), limits.max_slots_per_request)
    check_texts(
        ((("slots", i, side), getattr(slot, side)) for i, slot in enumerate(request.slots) for side in _SLOT_SIDES),
        max_bytes=_MOST_NAME_BYTES,
    )
    texts = _texts(request, limits)
    return SlotQuery(
        slots=tuple((slot.head, slot.relation) for slot in request.slots),
        texts=texts,
        entities=_entities(request, finders, limits),
        limits=_pair_limits(request.pair_limits),
        top_k=check_number(
            request.top_k if request.HasField("top_k") else _DEFAULT_TOP_K, ("top_k",), limits.max_top_k
        ),
        evidence=request.evidence,
    )


_SLOT_SIDES = ("head", "relation")


def patterns_from_proto(request: relations_pb2.ScoreRelationsRequest, limits: LimitsConfig) -> PatternQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.patterns, ("patterns",), limits.max_patterns_per_request)
    check_texts(
        ((("patterns", i), pattern) for i, pattern in enumerate(request.patterns)), max_bytes=limits.max_text_bytes
    )
    relations = _candidates(request.relations)
    top_k: int | None = None
    if request.HasField("top_k"):
        top_k = check_number(request.top_k, ("top_k",), limits.max_top_k)
    elif relations is None:
        top_k = min(_DEFAULT_TOP_K, limits.max_top_k)
    returned = len(relations) if relations is not None else limits.max_top_k
    num_scores = len(request.patterns) * min(returned, top_k or returned)
    if num_scores > limits.max_relation_scores:
        raise InvalidInputError(
            f"x relations of each are {num_scores}, the limit is {limits.max_relation_scores}",
            path="patterns",
        )
    return PatternQuery(patterns=tuple(request.patterns), relations=relations, top_k=top_k, evidence=request.evidence)


def entailment_from_proto(
    request: relations_pb2.DetectEntailmentRequest, limits: LimitsConfig
) -> tuple[list[str], list[str]]:
    """Premises and hypotheses.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.pairs, ("pairs",), limits.max_pairs_per_request)
    check_texts(
        (
            (("pairs", i, side), getattr(pair, side))
            for i, pair in enumerate(request.pairs)
            for side in ("premise", "hypothesis")
        ),
        max_bytes=limits.max_text_bytes,
    )
    return [pair.premise for pair in request.pairs], [pair.hypothesis for pair in request.pairs]


def adding_from_proto(
    request: relations_pb2.AddRelationRequest, limits: LimitsConfig
) -> tuple[str, list[str], float | None]:
    """Name, examples and threshold of a new relation; the library checks what a name and an example may be.

    Raises:
        InvalidInputError: The threshold is no number, or an example is blank or too long.
    """
    check_texts(
        ((("examples", i), example) for i, example in enumerate(request.examples)), max_bytes=limits.max_text_bytes
    )
    threshold = request.threshold if request.HasField("threshold") else None
    if threshold is not None and not math.isfinite(threshold):
        raise InvalidInputError(f"must be in [-1, 1], got {threshold}", path="threshold")
    return request.name, list(request.examples), threshold


def _texts(request: _WithTexts, limits: LimitsConfig) -> tuple[str, ...]:
    check_count(request.texts, ("texts",), limits.max_texts_per_request)
    check_texts(_named_texts(request), max_bytes=limits.max_text_bytes)
    return tuple(message.text for message in request.texts)


def _named_texts(request: _WithTexts) -> Iterator[tuple[ErrorPath, str]]:
    for i, message in enumerate(request.texts):
        yield ("texts", i, "text"), message.text


def _entities(request: _WithTexts, finders: EntityFinders, limits: LimitsConfig) -> Entities:
    if request.entity_source not in _SOURCES:
        raise InvalidInputError(f"must be a known one, got number {request.entity_source}", path="entity_source")
    source = _SOURCES[request.entity_source]
    names = request.gazetteer_names
    if len(names) > limits.max_gazetteer_names:
        raise InvalidInputError(
            f"has {len(names)} items, the limit is {limits.max_gazetteer_names}",
            path="gazetteer_names",
        )
    first = next((i for i, message in enumerate(request.texts) if message.entities), None)
    if first is not None and (names or source in (EntitySource.GAZETTEER, EntitySource.NER)):
        other = "gazetteer_names" if names else "entity_source"
        raise InvalidInputError(f"excludes {other}, got both", path=("texts", first, "entities"))
    with in_request(FIELDS):
        finder = finders.get(source, names, has_spans=first is not None)
    spans = tuple(
        tuple(_span(entity, ("texts", i, "entities", j)) for j, entity in enumerate(message.entities))
        for i, message in enumerate(request.texts)
    )
    return Entities(spans, finder)


def _span(entity: relations_pb2.EntitySpan, path: ErrorPath) -> EntitySpan:
    if entity.type not in _TYPES:
        raise InvalidInputError(f"must be a known one, got number {entity.type}", path=(*path, "type"))
    return EntitySpan(entity.start, entity.end, _TYPES[entity.type])


def _candidates(names: Sequence[str]) -> tuple[str, ...] | None:
    check_texts(((("relations", i), name) for i, name in enumerate(names)), max_bytes=_MOST_NAME_BYTES)
    return tuple(names) or None


def _pair_limits(message: relations_pb2.PairLimits) -> PatternLimits:
    given: dict[str, int] = {}
    for name, lowest, most in (
        ("max_tokens_between", 1, _MOST_TOKENS_BETWEEN),
        ("max_entities_between", 0, _MOST_ENTITIES_BETWEEN),
        ("max_pairs", 1, _MOST_PAIRS),
    ):
        if message.HasField(name):
            value = getattr(message, name)
            if not lowest <= value <= most:
                raise InvalidInputError(f"must be in [{lowest}, {most}], got {value}", path=("pair_limits", name))
            given[name] = value
    return PatternLimits(**given)
