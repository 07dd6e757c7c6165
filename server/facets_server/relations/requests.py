"""Checks requests about relations, and finds their entities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from facets_proto.v1 import relations_pb2 as pb

from facets.errors import ConfigError, FacetsError, InvalidInputError
from facets.relations.entities import EntityFinder, EntitySpan, Gazetteer
from facets_server.runtime.config import LimitsConfig, RelationsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.models import Lazy
from facets_server.runtime.requests import check_list_of_texts, check_not_empty, check_texts, record_of

DEFAULT_TOP_K = 10
MAX_NAME_BYTES = 4096
_MAX_KEPT_GAZETTEERS = 4  # a client with many texts sends the same names with each request
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


class EntitySource(StrEnum):
    """Source of the entities; ``ANY``: the first available of spans, names, the server's gazetteer, NER."""

    ANY = ""
    SPANS = "spans"
    GAZETTEER = "gazetteer"
    NER = "ner"


class EntityFinders:
    """Entity finders by source; files are read once, on first use. Thread-safe."""

    def __init__(self, config: RelationsConfig) -> None:
        self._config = config
        self._of_names = lru_cache(maxsize=_MAX_KEPT_GAZETTEERS)(Gazetteer)
        self._gazetteer = Lazy(lambda: Gazetteer(_names(config.gazetteer)))
        self._pipeline = Lazy(lambda: _pipeline(config.ner_pipeline))

    def get(self, source: EntitySource, names: Sequence[str], *, has_spans: bool) -> EntityFinder | None:
        """The finder for a request with these gazetteer names; None: its spans are the entities."""
        if source is EntitySource.SPANS or (source is EntitySource.ANY and has_spans):
            return None
        if names and source is not EntitySource.NER:
            return self._of_names(tuple(names))
        if source is EntitySource.GAZETTEER or (source is EntitySource.ANY and self._config.gazetteer is not None):
            return self._gazetteer.opened()
        return self._pipeline.opened()


def _pipeline(name: str) -> EntityFinder:
    from facets.relations.recognizer import SpacyEntities  # spaCy takes half a second

    try:
        return SpacyEntities(name)
    except FacetsError as error:  # pipeline not installed, or it has no entity recognizer
        message = f"the server cannot find entities itself ({error}): give entities or gazetteer_names"
        raise ConfigError(message) from error


def _names(file: Path | None) -> list[str]:
    if file is None:
        raise ConfigError("the server has no gazetteer: expected gazetteer_names in the request")
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"gazetteer {file} cannot be read, expected UTF-8 with one name per line") from error
    if not names:
        raise ConfigError(f"gazetteer {file} is empty, expected one entity name per line")
    return names


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
