"""RelationService: relations between entities, and which sentence pattern entails which."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from facets_proto.codec import message_of, to_message
from facets_proto.v1 import relations_pb2 as pb
from facets_proto.v1 import relations_pb2_grpc

from facets.errors import ConfigError, FacetsError, InvalidInputError
from facets.language.tokenizer import grouped
from facets.relations.assertion import AssertionStatus
from facets.relations.engine import RelationEngine
from facets.relations.entities import EntityFinder, EntitySpan, Gazetteer
from facets.relations.results import EntityMention, RankedTail
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig, RelationsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.models import Lazy, ServedModel, TaskModels
from facets_server.runtime.requests import (
    check_list_of_texts,
    check_not_empty,
    check_pairs,
    check_texts,
    page_of,
    record_of,
)

_DEFAULT_TOP_K = 10
_MAX_NAME_BYTES = 4096
_CHARACTERS_AT_A_TIME = 16_384  # of texts; a longer text alone
_PATTERNS_AT_A_TIME = 256
_WARM_UP = "$ARG1 , the partner of fellow $ARG2"
_MAX_KEPT_GAZETTEERS = 4  # a client with many texts sends the same names with each request
# Arguments of the library -> fields of the requests.
_FIELDS: FieldNames = {
    "texts": ("texts", ITEM, "text"),
    "spans": ("texts", ITEM, "entities"),
    "patterns": ("patterns", ITEM),
    "premises": ("pairs", ITEM, "premise"),
    "hypotheses": ("pairs", ITEM, "hypothesis"),
    "names": ("gazetteer_names", ITEM),
}

_WithTexts = pb.ExtractRelationsRequest | pb.FillSlotsRequest
_Entities: TypeAlias = Callable[[Sequence[str], int], Sequence[Sequence[EntitySpan]]]
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


def _num_scores_of(request: pb.ScoreRelationsRequest, limits: LimitsConfig) -> int | None:
    """Checks a request; the most relations of each pattern, None: every candidate. Raises InvalidInputError."""
    check_not_empty(request.patterns, ("patterns",))
    check_list_of_texts(request.patterns, "patterns", max_bytes=limits.max_text_bytes)
    check_list_of_texts(request.relations, "relations", max_bytes=_MAX_NAME_BYTES)
    top_k = request.top_k if request.HasField("top_k") else None if request.relations else _DEFAULT_TOP_K
    num_relations = len(request.relations) or top_k or 0
    num_scores = len(request.patterns) * min(num_relations, top_k or num_relations)
    if num_scores > limits.max_relation_scores:
        rule = f"x relations of each are {num_scores}, the limit is {limits.max_relation_scores}"
        raise InvalidInputError(rule, path="patterns")
    return top_k


def _texts_of(request: _WithTexts, limits: LimitsConfig) -> list[str]:
    check_not_empty(request.texts, ("texts",))
    texts = [message.text for message in request.texts]
    check_texts((("texts", i, "text"), text, limits.max_text_bytes) for i, text in enumerate(texts))
    return texts


def _check_characters(texts: Sequence[str], limits: LimitsConfig, verb: str) -> None:
    num_characters, most = sum(map(len, texts)), limits.max_relation_characters
    if num_characters > most:
        rule = f"{verb} {num_characters} characters together, the limit is {most}: send fewer"
        raise InvalidInputError(rule, path="texts")


@dataclass(frozen=True, slots=True)
class _Text:
    entities: tuple[EntitySpan, ...]


@dataclass(frozen=True, slots=True)
class _Sources:
    texts: tuple[_Text, ...]
    entity_source: EntitySource


def _entities_of(request: _WithTexts, finders: EntityFinders) -> _Entities:
    """Entities of a request; raises InvalidInputError, or ConfigError when the server has no source of entities."""
    sources = record_of(request, _Sources)
    source, names = sources.entity_source, request.gazetteer_names
    first = next((i for i, text in enumerate(sources.texts) if text.entities), None)
    if first is not None and (names or source in (EntitySource.GAZETTEER, EntitySource.NER)):
        other = "gazetteer_names" if names else "entity_source"
        raise InvalidInputError(f"cannot be combined with {other}", path=("texts", first, "entities"))
    with in_request(_FIELDS):
        finder = finders.get(source, names, has_spans=first is not None)
    spans = [text.entities for text in sources.texts]
    return lambda texts, start: spans[start : start + len(texts)] if finder is None else finder.find(texts)


class ServedRelations(ServedModel[RelationEngine]):
    """One model for relations; one call at a time."""

    def probe(self, call: CallContext) -> None:
        """Scores a fixed pattern."""
        with self.exclusive(call) as engine:
            engine.score([_WARM_UP], top_k=1, evidence=False)

    def close(self) -> None:
        """Refuses further work and closes the file of the added relations."""
        super().close()
        self.engine.close()


@dataclass(frozen=True)
class RelationService(relations_pb2_grpc.RelationServiceServicer):
    """Finds relations, fills slots, scores patterns, adds relations."""

    models: TaskModels[ServedRelations]
    finders: EntityFinders
    limits: LimitsConfig

    def ExtractRelations(self, request: pb.ExtractRelationsRequest, call: CallContext) -> pb.ExtractRelationsResponse:
        """Relations between the entities of a batch of texts."""
        served = self.models.get(request.model)
        texts = _texts_of(request, self.limits)
        _check_characters(texts, self.limits, "have")
        check_list_of_texts(request.relations, "relations", max_bytes=_MAX_NAME_BYTES)
        entities = _entities_of(request, self.finders)
        call.num_items = len(texts)
        relations = list(request.relations) or None
        most = request.max_relations_per_pair if request.HasField("max_relations_per_pair") else 1
        top_k = request.top_k if request.HasField("top_k") else None
        reply, num_returned = pb.ExtractRelationsResponse(), 0
        for part in grouped(texts, _CHARACTERS_AT_A_TIME, size=len):
            start = len(reply.texts)
            with in_request(_FIELDS, start=start):
                spans = entities(part, start)
            with in_request(_FIELDS, start=start), served.exclusive(call) as engine:
                pairs = engine.extract(
                    part,
                    spans=spans,
                    relations=relations,
                    max_relations_per_pair=most,
                    top_k=top_k,
                    evidence=request.evidence,
                    include_unrelated=request.include_unrelated,
                    max_scores=self.limits.max_relation_scores - num_returned,
                )
            for text, text_spans, examined in zip(part, spans, pairs, strict=True):
                shown = [pair for pair in examined if request.include_unrelated or pair.pattern_score.best is not None]
                num_returned += sum(max(1, len(pair.pattern_score.relations)) for pair in shown)
                mentions = [EntityMention(text[s.start : s.end], s.start, s.end, s.type) for s in sorted(text_spans)]
                not_asserted = sum(pair.pattern_score.assertion is not AssertionStatus.ASSERTED for pair in examined)
                counts = {"num_pairs": len(examined), "num_not_asserted": not_asserted}
                reply.texts.append(message_of(pb.TextRelations, pairs=shown, entities=mentions, **counts))
        reply.MergeFrom(message_of(pb.ExtractRelationsResponse, model=served.info, timings=call))
        return reply

    def FillSlots(self, request: pb.FillSlotsRequest, call: CallContext) -> pb.FillSlotsResponse:
        """Ranked tails for heads and relations."""
        served = self.models.get(request.model)
        check_not_empty(request.slots, ("slots",))
        check_texts(
            (("slots", i, side), getattr(slot, side), _MAX_NAME_BYTES)
            for i, slot in enumerate(request.slots)
            for side in ("head", "relation")
        )
        texts, entities = _texts_of(request, self.limits), _entities_of(request, self.finders)
        heads = {slot.head.strip().casefold() for slot in request.slots}
        # Only these have pairs, and finding entities takes most of the time.
        named = [text if any(map(text.casefold().__contains__, heads)) else "" for text in texts]
        _check_characters(named, self.limits, "that name a head have")
        call.num_items = len(request.slots)
        slots: list[Sequence[RankedTail]] = [()] * len(request.slots)
        with in_request(_FIELDS):
            filled = served.engine.fill_slots(
                [(slot.head, slot.relation) for slot in request.slots],
                texts,
                spans=entities(named, 0),
                top_k=request.top_k if request.HasField("top_k") else _DEFAULT_TOP_K,
                evidence=request.evidence,
                max_pairs=self.limits.max_relation_scores,
            )
            for _ in slots:
                with served.exclusive(call):
                    number, tails = next(filled)
                slots[number] = tails
        return message_of(pb.FillSlotsResponse, slots=slots, model=served.info, timings=call)

    def ScoreRelations(self, request: pb.ScoreRelationsRequest, call: CallContext) -> pb.ScoreRelationsResponse:
        """Relations of a batch of patterns."""
        served = self.models.get(request.model)
        top_k = _num_scores_of(request, self.limits)
        call.num_items = len(request.patterns)
        patterns, relations = list(request.patterns), list(request.relations) or None
        reply = pb.ScoreRelationsResponse()  # grows by parts, so that only messages are held in memory
        for start in range(0, len(patterns), _PATTERNS_AT_A_TIME):
            part = patterns[start : start + _PATTERNS_AT_A_TIME]
            with in_request(_FIELDS, start=start), served.exclusive(call) as engine:
                scores = engine.score(part, relations, top_k=top_k, evidence=request.evidence)
            reply.scores.extend(to_message(score, pb.PatternScore) for score in scores)
        reply.MergeFrom(message_of(pb.ScoreRelationsResponse, model=served.info, timings=call))
        return reply

    def DetectEntailment(self, request: pb.DetectEntailmentRequest, call: CallContext) -> pb.DetectEntailmentResponse:
        """Both directions of a batch of pairs of patterns."""
        served = self.models.get(request.model)
        check_pairs(request.pairs, ("premise", "hypothesis"), max_bytes=self.limits.max_text_bytes)
        premises, hypotheses = zip(*((pair.premise, pair.hypothesis) for pair in request.pairs), strict=True)
        call.num_items = len(premises)
        with in_request(_FIELDS), served.exclusive(call) as engine:
            entailments = engine.entailment(premises, hypotheses)
        return message_of(pb.DetectEntailmentResponse, entailments=entailments, model=served.info, timings=call)

    def ListRelations(self, request: pb.ListRelationsRequest, call: CallContext) -> pb.ListRelationsResponse:
        """The relations a model knows, by name."""
        served = self.models.get(request.model)
        relations, token = page_of(served.engine.relations(), request)
        return message_of(pb.ListRelationsResponse, relations=relations, next_page_token=token, model=served.info)

    def AddRelation(self, request: pb.AddRelationRequest, call: CallContext) -> pb.AddRelationResponse:
        """Adds a relation by example patterns."""
        served, examples = self.models.get(request.model), list(request.examples)
        check_list_of_texts(examples, "examples", max_bytes=self.limits.max_text_bytes)
        call.num_items = len(examples)
        threshold = request.threshold if request.HasField("threshold") else None
        with served.exclusive(call) as engine:
            relation = engine.add_relation(request.name, examples, threshold=threshold)
        return message_of(pb.AddRelationResponse, relation=relation, model=served.info)

    def DeleteRelation(self, request: pb.DeleteRelationRequest, call: CallContext) -> pb.DeleteRelationResponse:
        """Removes an added relation."""
        with self.models.get(request.model).exclusive(call) as engine:
            relation = engine.remove_relation(request.name)
        return message_of(pb.DeleteRelationResponse, relation=relation)
