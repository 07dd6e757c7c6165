"""Requests about relations as checked queries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from facets_proto.v1 import relations_pb2 as pb

from facets.errors import InvalidInputError
from facets.relations.entities import EntitySpan
from facets.relations.patterns import PairLimits
from facets_server.relations.entities import EntityFinders, EntitySource
from facets_server.relations.served import FIELDS, Entities
from facets_server.runtime.errors import in_request
from facets_server.runtime.limits import LimitsConfig, check_count, check_number, check_texts
from facets_server.runtime.records import record_of, top_k_of

# Least and most of each field of PairLimits.
_PAIR_LIMITS = {"max_tokens_between": (1, 100), "max_entities_between": (0, 20), "max_pairs": (1, 1000)}
_MOST_RELATIONS_PER_PAIR = 50
_MOST_NAME_BYTES = 4096

_WithTexts = pb.ExtractRelationsRequest | pb.FillSlotsRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionQuery:
    """A checked ExtractRelationsRequest.

    Attributes:
        texts: What to read.
        entities: Where the entities of the texts are.
        relations: Candidates; empty: all.
        pair_limits: Which pairs are looked at.
        include_unrelated: Also return pairs without an accepted relation.
        max_relations_per_pair: Accepted relations of two entities at most.
        top_k: Relations returned of each pair; None: the accepted ones.
        evidence: Return which facet met which.
    """

    texts: tuple[str, ...]
    entities: Entities
    relations: tuple[str, ...]
    pair_limits: PairLimits = field(default_factory=PairLimits)
    include_unrelated: bool
    max_relations_per_pair: int = 1
    top_k: int | None
    evidence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotQuery:
    """A checked FillSlotsRequest; ``slots`` are (head, relation), the others as in ``ExtractionQuery``."""

    slots: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    entities: Entities
    pair_limits: PairLimits = field(default_factory=PairLimits)
    top_k: int
    evidence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternQuery:
    """A checked ScoreRelationsRequest; ``top_k`` None: every candidate."""

    patterns: tuple[str, ...]
    relations: tuple[str, ...]
    top_k: int | None
    evidence: bool


def extraction_of(request: pb.ExtractRelationsRequest, finders: EntityFinders, limits: LimitsConfig) -> ExtractionQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
        ConfigError: The server has no source of entities.
    """
    texts = _texts(request, limits)
    _check_names(request.relations)
    _check_pair_limits(request.pair_limits)
    query = record_of(request, ExtractionQuery, texts=texts, entities=_entities(request, finders, limits))
    check_number(query.max_relations_per_pair, ("max_relations_per_pair",), _MOST_RELATIONS_PER_PAIR)
    if query.top_k is not None:
        check_number(query.top_k, ("top_k",), limits.max_top_k)
    return query


def slots_of(request: pb.FillSlotsRequest, finders: EntityFinders, limits: LimitsConfig) -> SlotQuery:
    """A request as a checked query; raises as ``extraction_of``."""
    check_count(request.slots, ("slots",), limits.max_slots_per_request)
    check_texts(
        ((("slots", i, side), getattr(slot, side)) for i, slot in enumerate(request.slots) for side in _SLOT_SIDES),
        max_bytes=_MOST_NAME_BYTES,
    )
    texts = _texts(request, limits)
    _check_pair_limits(request.pair_limits)
    return record_of(
        request,
        SlotQuery,
        texts=texts,
        entities=_entities(request, finders, limits),
        top_k=top_k_of(request, ("top_k",), limits),
    )


_SLOT_SIDES = ("head", "relation")


def patterns_of(request: pb.ScoreRelationsRequest, limits: LimitsConfig) -> PatternQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.patterns, ("patterns",), limits.max_patterns_per_request)
    check_texts(
        ((("patterns", i), pattern) for i, pattern in enumerate(request.patterns)), max_bytes=limits.max_text_bytes
    )
    _check_names(request.relations)
    query = record_of(request, PatternQuery)
    if query.top_k is not None or not query.relations:
        query = replace(query, top_k=top_k_of(request, ("top_k",), limits))
    returned = len(query.relations) or limits.max_top_k
    num_scores = len(query.patterns) * min(returned, query.top_k or returned)
    if num_scores > limits.max_relation_scores:
        raise InvalidInputError(
            f"x relations of each are {num_scores}, the limit is {limits.max_relation_scores}", path="patterns"
        )
    return query


def entailment_of(request: pb.DetectEntailmentRequest, limits: LimitsConfig) -> tuple[list[str], list[str]]:
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


def adding_of(request: pb.AddRelationRequest, limits: LimitsConfig) -> tuple[str, list[str], float | None]:
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
    texts = tuple(message.text for message in request.texts)
    check_texts(((("texts", i, "text"), text) for i, text in enumerate(texts)), max_bytes=limits.max_text_bytes)
    return texts


@dataclass(frozen=True, slots=True)
class _Text:
    entities: tuple[EntitySpan, ...]


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where entities come from."""

    texts: tuple[_Text, ...]
    entity_source: EntitySource
    gazetteer_names: tuple[str, ...]


def _entities(request: _WithTexts, finders: EntityFinders, limits: LimitsConfig) -> Entities:
    if len(request.gazetteer_names) > limits.max_gazetteer_names:
        raise InvalidInputError(
            f"has {len(request.gazetteer_names)} items, the limit is {limits.max_gazetteer_names}",
            path="gazetteer_names",
        )
    sources = record_of(request, _Sources)
    source, names = sources.entity_source, sources.gazetteer_names
    first = next((i for i, text in enumerate(sources.texts) if text.entities), None)
    if first is not None and (names or source in (EntitySource.GAZETTEER, EntitySource.NER)):
        other = "gazetteer_names" if names else "entity_source"
        raise InvalidInputError(f"excludes {other}, got both", path=("texts", first, "entities"))
    with in_request(FIELDS):
        finder = finders.get(source, names, has_spans=first is not None)
    return Entities(tuple(text.entities for text in sources.texts), finder)


def _check_names(names: Sequence[str]) -> None:
    check_texts(((("relations", i), name) for i, name in enumerate(names)), max_bytes=_MOST_NAME_BYTES)


def _check_pair_limits(message: pb.PairLimits) -> None:
    for name, (lowest, most) in _PAIR_LIMITS.items():
        value = getattr(message, name)
        if message.HasField(name) and not lowest <= value <= most:
            raise InvalidInputError(f"must be in [{lowest}, {most}], got {value}", path=("pair_limits", name))
