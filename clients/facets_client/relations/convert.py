"""Texts with their entities as messages; replies about relations."""

from collections.abc import Sequence
from typing import Literal

from facets_proto.v1 import relations_pb2

from facets_client.core.values import unsigned
from facets_client.relations import results

EntitySource = Literal["any", "spans", "gazetteer", "ner"]
EntityType = Literal["", "person", "organization", "place", "date", "number", "work", "event", "group", "thing"]
Spans = Sequence[Sequence[tuple[int, int] | tuple[int, int, EntityType]]]

_SOURCE_NUMBERS: dict[str, relations_pb2.EntitySource] = {
    "any": relations_pb2.ENTITY_SOURCE_UNSPECIFIED,
    "spans": relations_pb2.ENTITY_SOURCE_SPANS,
    "gazetteer": relations_pb2.ENTITY_SOURCE_GAZETTEER,
    "ner": relations_pb2.ENTITY_SOURCE_NER,
}
_LABEL_PREFIX = "ENTAILMENT_LABEL_"
_STATUS_PREFIX = "ASSERTION_STATUS_"
_TYPE_NUMBERS: dict[str, relations_pb2.EntityType] = {
    "": relations_pb2.ENTITY_TYPE_UNSPECIFIED,
    "person": relations_pb2.ENTITY_TYPE_PERSON,
    "organization": relations_pb2.ENTITY_TYPE_ORGANIZATION,
    "place": relations_pb2.ENTITY_TYPE_PLACE,
    "date": relations_pb2.ENTITY_TYPE_DATE,
    "number": relations_pb2.ENTITY_TYPE_NUMBER,
    "work": relations_pb2.ENTITY_TYPE_WORK,
    "event": relations_pb2.ENTITY_TYPE_EVENT,
    "group": relations_pb2.ENTITY_TYPE_GROUP,
    "thing": relations_pb2.ENTITY_TYPE_THING,
}
_TYPE_NAMES = {number: name for name, number in _TYPE_NUMBERS.items()}


def source_number(source: EntitySource) -> relations_pb2.EntitySource:
    """The number of a source of entities.

    Raises:
        ValueError: There is no such source.
    """
    if source not in _SOURCE_NUMBERS:
        raise ValueError(f"entity_source must be one of {', '.join(_SOURCE_NUMBERS)}, got {source!r}")
    return _SOURCE_NUMBERS[source]


def from_texts(texts: Sequence[str], spans: Spans | None) -> list[relations_pb2.RelationText]:
    """Texts with their entities.

    Raises:
        ValueError: Not one list of spans for each text, or an offset that no field holds.
    """
    if spans is None:
        return [relations_pb2.RelationText(text=text) for text in texts]
    if len(spans) != len(texts):
        raise ValueError(f"spans must have one list for each of {len(texts)} texts, got {len(spans)}")
    return [
        relations_pb2.RelationText(text=text, entities=[_span(span, f"spans[{i}][{j}]") for j, span in enumerate(own)])
        for i, (text, own) in enumerate(zip(texts, spans, strict=True))
    ]


def _span(span: tuple[int, int] | tuple[int, int, EntityType], name: str) -> relations_pb2.EntitySpan:
    start, end, *kind = span
    return relations_pb2.EntitySpan(
        start=unsigned(start, f"{name} start"),
        end=unsigned(end, f"{name} end"),
        type=_type_number(kind[0], f"{name} type") if kind else None,
    )


def _type_number(kind: str, name: str) -> relations_pb2.EntityType:
    if kind not in _TYPE_NUMBERS:
        raise ValueError(f"{name} must be one of {', '.join(filter(None, _TYPE_NUMBERS))}, or empty, got {kind!r}")
    return _TYPE_NUMBERS[kind]


def _type_name(number: relations_pb2.EntityType) -> str:
    """Empty where it is not known, to us either."""
    return _TYPE_NAMES.get(number, "")


def from_limits(limits: results.PairLimits | None) -> relations_pb2.PairLimits | None:
    """Which pairs are looked at, as a message; None stays None."""
    if limits is None:
        return None
    return relations_pb2.PairLimits(
        max_tokens_between=unsigned(limits.max_tokens_between, "max_tokens_between"),
        max_entities_between=unsigned(limits.max_entities_between, "max_entities_between"),
        max_pairs=unsigned(limits.max_pairs, "max_pairs"),
    )


def to_text_relations(reply: relations_pb2.ExtractRelationsResponse) -> list[results.TextRelations]:
    """Pairs in the order of the texts."""
    return [
        results.TextRelations(
            tuple(_to_pair(pair) for pair in text.pairs),
            text.num_pairs,
            text.num_not_asserted,
            tuple(_to_mention(entity) for entity in text.entities),
        )
        for text in reply.texts
    ]


def _to_pair(pair: relations_pb2.EntityPair) -> results.EntityPair:
    return results.EntityPair(
        head=_to_mention(pair.head),
        tail=_to_mention(pair.tail),
        sentence_start=pair.sentence_start,
        sentence_end=pair.sentence_end,
        pattern_score=to_pattern_score(pair.pattern_score),
    )


def _to_mention(mention: relations_pb2.EntityMention) -> results.EntityMention:
    return results.EntityMention(mention.text, mention.start, mention.end, _type_name(mention.type))


def to_pattern_score(message: relations_pb2.PatternScore) -> results.PatternScore:
    """What a pattern says."""
    return results.PatternScore(
        pattern=message.pattern,
        relations=tuple(_to_score(score) for score in message.relations),
        no_relation_probability=message.no_relation_probability,
        assertion=relations_pb2.AssertionStatus.Name(message.assertion).removeprefix(_STATUS_PREFIX).lower(),
        assertion_cue=message.assertion_cue,
        known=message.known,
        facets=tuple(
            results.FacetRelations(
                facet.facet, tuple(results.NearRelation(near.relation, near.cosine) for near in facet.relations)
            )
            for facet in message.facets
        ),
    )


def _to_score(score: relations_pb2.RelationScore) -> results.RelationScore:
    met = score.meeting
    return results.RelationScore(
        relation=score.relation,
        score=score.score,
        probability=score.probability,
        accepted=score.accepted,
        symmetric_score=score.symmetric_score,
        universal_schema_score=score.universal_schema_score if score.HasField("universal_schema_score") else None,
        meeting=results.FacetMeeting(met.pattern_facet, met.relation_facet, met.cosine)
        if score.HasField("meeting")
        else None,
        similar_patterns=tuple(results.SimilarPattern(near.pattern, near.score) for near in score.similar_patterns),
        known_pairs=tuple((pair.head, pair.tail) for pair in score.known_pairs),
    )


def to_tails(reply: relations_pb2.FillSlotsResponse) -> list[tuple[results.RankedTail, ...]]:
    """Ranked tails in the order of the slots."""
    return [tuple(_to_tail(tail) for tail in slot.tails) for slot in reply.slots]


def _to_tail(tail: relations_pb2.RankedTail) -> results.RankedTail:
    mentions = tuple(results.TailMention(mention.text, _to_pair(mention.pair)) for mention in tail.mentions)
    return results.RankedTail(tail.tail, tail.score, tail.probability, tail.accepted, mentions)


def to_entailments(reply: relations_pb2.DetectEntailmentResponse) -> list[results.Entailment]:
    """Both directions of each pair, in order."""
    return [
        results.Entailment(
            premise=item.premise,
            hypothesis=item.hypothesis,
            forward_score=item.forward_score,
            backward_score=item.backward_score,
            direction=item.direction,
            label=relations_pb2.EntailmentLabel.Name(item.label).removeprefix(_LABEL_PREFIX).lower(),
            confidence=item.confidence,
            negation_differs=item.negation_differs,
        )
        for item in reply.entailments
    ]


def to_relation(message: relations_pb2.Relation) -> results.Relation:
    """One relation a model knows."""
    return results.Relation(
        message.name,
        message.threshold,
        message.num_pairs,
        tuple(message.examples),
        message.added,
        message.description,
        message.example,
        tuple(message.aliases),
        tuple(message.inverse_aliases),
        tuple(map(_type_name, message.head_types)),
        tuple(map(_type_name, message.tail_types)),
        message.symmetric,
    )
