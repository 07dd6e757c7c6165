"""Reads requests about relations into records of the library."""

from collections.abc import Sequence
from dataclasses import dataclass

from facets_proto.v1 import relations_pb2 as pb

from facets.errors import InvalidInputError
from facets.relations.entities import EntityFinder, EntitySpan
from facets_server.relations.entities import EntityFinders, EntitySource
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.requests import check_count, check_list_of_texts, check_texts, record_of

_DEFAULT_TOP_K = 10
_MAX_NAME_BYTES = 4096
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


@dataclass(frozen=True, slots=True)
class Entities:
    """Entities of the texts of one request: found by ``finder`` if it is set, else the given spans of each text."""

    spans: tuple[tuple[EntitySpan, ...], ...]
    finder: EntityFinder | None

    def of(self, texts: Sequence[str], start: int) -> Sequence[Sequence[EntitySpan]]:
        """Entities of texts that begin at index ``start`` of the request."""
        return self.spans[start : start + len(texts)] if self.finder is None else self.finder.find(texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionQuery:
    """An ExtractRelationsRequest; ``top_k`` None: the accepted relations only."""

    texts: tuple[str, ...]
    entities: Entities
    relations: tuple[str, ...]
    include_unrelated: bool
    max_relations_per_pair: int = 1
    top_k: int | None
    evidence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotQuery:
    """A FillSlotsRequest; the slots are pairs of head and relation."""

    slots: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    entities: Entities
    top_k: int = _DEFAULT_TOP_K
    evidence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternQuery:
    """A ScoreRelationsRequest; ``top_k`` None: every candidate."""

    patterns: tuple[str, ...]
    relations: tuple[str, ...]
    top_k: int | None
    evidence: bool


def extraction_of(request: pb.ExtractRelationsRequest, finders: EntityFinders, limits: LimitsConfig) -> ExtractionQuery:
    """A request as a record; raises InvalidInputError, or ConfigError when the server has no source of entities."""
    texts = _texts(request, limits)
    _check_relations(request.relations)
    entities = _entities(request, finders, limits)
    return record_of(request, ExtractionQuery, texts=texts, entities=entities)


def slots_of(request: pb.FillSlotsRequest, finders: EntityFinders, limits: LimitsConfig) -> SlotQuery:
    """A request as a record; raises as ``extraction_of``."""
    check_count(request.slots, ("slots",), limits.max_slots_per_request)
    sides = ((i, slot, side) for i, slot in enumerate(request.slots) for side in ("head", "relation"))
    check_texts(((("slots", i, side), getattr(slot, side)) for i, slot, side in sides), max_bytes=_MAX_NAME_BYTES)
    texts = _texts(request, limits)
    entities = _entities(request, finders, limits)
    return record_of(request, SlotQuery, texts=texts, entities=entities)


def patterns_of(request: pb.ScoreRelationsRequest, limits: LimitsConfig) -> PatternQuery:
    """A request as a record; raises InvalidInputError."""
    check_list_of_texts(request.patterns, "patterns", limits.max_patterns_per_request, max_bytes=limits.max_text_bytes)
    _check_relations(request.relations)
    top_k = request.top_k if request.HasField("top_k") else None if request.relations else _DEFAULT_TOP_K
    num_relations = len(request.relations) or top_k or 0
    num_scores = len(request.patterns) * min(num_relations, top_k or num_relations)
    if num_scores > limits.max_relation_scores:
        rule = f"x relations of each are {num_scores}, the limit is {limits.max_relation_scores}"
        raise InvalidInputError(rule, path="patterns")
    return record_of(request, PatternQuery, top_k=top_k)


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
    texts: tuple[_Text, ...]
    entity_source: EntitySource
    gazetteer_names: tuple[str, ...]


def _entities(request: _WithTexts, finders: EntityFinders, limits: LimitsConfig) -> Entities:
    check_count(request.gazetteer_names, ("gazetteer_names",), limits.max_gazetteer_names, least=0)
    sources = record_of(request, _Sources)
    source, names = sources.entity_source, sources.gazetteer_names
    first = next((i for i, text in enumerate(sources.texts) if text.entities), None)
    if first is not None and (names or source in (EntitySource.GAZETTEER, EntitySource.NER)):
        other = "gazetteer_names" if names else "entity_source"
        raise InvalidInputError(f"cannot be combined with {other}", path=("texts", first, "entities"))
    with in_request(FIELDS):
        finder = finders.get(source, names, has_spans=first is not None)
    return Entities(tuple(text.entities for text in sources.texts), finder)


def _check_relations(names: Sequence[str]) -> None:
    check_list_of_texts(names, "relations", len(names), max_bytes=_MAX_NAME_BYTES, least=0)
