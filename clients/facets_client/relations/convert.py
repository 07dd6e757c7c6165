"""Requests and replies about relations."""

from collections.abc import Iterable, Sequence
from typing import Literal

from facets_proto.v1 import relations_pb2

from facets_client.core.numbers import finite_double, unsigned
from facets_client.relations import results

EntitySource = Literal["any", "spans", "gazetteer", "ner"]
Spans = Sequence[Sequence[tuple[int, int]]]

_SOURCE_NUMBERS: dict[str, relations_pb2.EntitySource] = {
    "any": relations_pb2.ENTITY_SOURCE_UNSPECIFIED,
    "spans": relations_pb2.ENTITY_SOURCE_SPANS,
    "gazetteer": relations_pb2.ENTITY_SOURCE_GAZETTEER,
    "ner": relations_pb2.ENTITY_SOURCE_NER,
}
_LABEL_PREFIX = "ENTAILMENT_LABEL_"


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


def _span(span: tuple[int, int], name: str) -> relations_pb2.EntitySpan:
    start, end = span
    return relations_pb2.EntitySpan(start=unsigned(start, f"{name} start"), end=unsigned(end, f"{name} end"))


def extract_request(
    texts: Sequence[relations_pb2.RelationText],
    *,
    model: str,
    entity_source: EntitySource,
    gazetteer: Sequence[str],
    relations: Sequence[str],
    pair_limits: results.PairLimits | None,
    include_unrelated: bool,
    top_k: int | None,
    evidence: bool,
) -> relations_pb2.ExtractRelationsRequest:
    """Texts and which of their relations to tell."""
    return relations_pb2.ExtractRelationsRequest(
        texts=texts,
        model=model,
        entity_source=_SOURCE_NUMBERS[entity_source],
        gazetteer_names=gazetteer,
        relations=relations,
        pair_limits=_from_limits(pair_limits),
        include_unrelated=include_unrelated,
        top_k=unsigned(top_k, "top_k"),
        evidence=evidence,
    )


def _from_limits(limits: results.PairLimits | None) -> relations_pb2.PairLimits | None:
    if limits is None:
        return None
    return relations_pb2.PairLimits(
        max_tokens_between=unsigned(limits.max_tokens_between, "max_tokens_between"),
        max_entities_between=unsigned(limits.max_entities_between, "max_entities_between"),
        max_pairs=unsigned(limits.max_pairs, "max_pairs"),
    )


def to_text_relations(reply: relations_pb2.ExtractRelationsResponse) -> list[results.TextRelations]:
    """Pairs in the order of the texts."""
    return [results.TextRelations(tuple(_to_pair(pair) for pair in text.pairs), text.num_pairs) for text in reply.texts]


def _to_pair(pair: relations_pb2.EntityPair) -> results.EntityPair:
    return results.EntityPair(
        head=_to_mention(pair.head),
        tail=_to_mention(pair.tail),
        sentence_start=pair.sentence_start,
        sentence_end=pair.sentence_end,
        pattern_score=to_pattern_score(pair.pattern_score),
    )


def _to_mention(mention: relations_pb2.EntityMention) -> results.EntityMention:
    return results.EntityMention(mention.text, mention.start, mention.end)


def to_pattern_score(message: relations_pb2.PatternScore) -> results.PatternScore:
    """What a pattern says."""
    return results.PatternScore(
        pattern=message.pattern,
        relations=tuple(_to_score(score) for score in message.relations),
        no_relation_probability=message.no_relation_probability,
        negation_cue=message.negation_cue,
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
    )


def fill_request(
    slots: Sequence[tuple[str, str]],
    texts: Sequence[relations_pb2.RelationText],
    *,
    model: str,
    entity_source: EntitySource,
    gazetteer: Sequence[str],
    pair_limits: results.PairLimits | None,
    top_k: int | None,
    evidence: bool,
) -> relations_pb2.FillSlotsRequest:
    """Slots, as (head, relation), and the texts to fill them from."""
    return relations_pb2.FillSlotsRequest(
        slots=[relations_pb2.Slot(head=head, relation=relation) for head, relation in slots],
        texts=texts,
        model=model,
        entity_source=_SOURCE_NUMBERS[entity_source],
        gazetteer_names=gazetteer,
        pair_limits=_from_limits(pair_limits),
        top_k=unsigned(top_k, "top_k"),
        evidence=evidence,
    )


def to_tails(reply: relations_pb2.FillSlotsResponse) -> list[tuple[results.RankedTail, ...]]:
    """Ranked tails in the order of the slots."""
    return [tuple(_to_tail(tail) for tail in slot.tails) for slot in reply.slots]


def _to_tail(tail: relations_pb2.RankedTail) -> results.RankedTail:
    mentions = tuple(results.TailMention(mention.text, _to_pair(mention.pair)) for mention in tail.mentions)
    return results.RankedTail(tail.tail, tail.score, tail.probability, tail.accepted, mentions)


def score_request(
    patterns: Sequence[str], *, model: str, relations: Sequence[str], top_k: int | None, evidence: bool
) -> relations_pb2.ScoreRelationsRequest:
    """Patterns and the candidates for their relations."""
    return relations_pb2.ScoreRelationsRequest(
        patterns=patterns, model=model, relations=relations, top_k=unsigned(top_k, "top_k"), evidence=evidence
    )


def entailment_request(pairs: Sequence[tuple[str, str]], *, model: str) -> relations_pb2.DetectEntailmentRequest:
    """Pairs of patterns: premise, hypothesis."""
    return relations_pb2.DetectEntailmentRequest(
        pairs=[relations_pb2.EntailmentPair(premise=premise, hypothesis=hypothesis) for premise, hypothesis in pairs],
        model=model,
    )


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


def list_request(page_token: str, *, model: str) -> relations_pb2.ListRelationsRequest:
    """One page of the relations; an empty token is the first."""
    return relations_pb2.ListRelationsRequest(model=model, page_token=page_token)


def to_relations(messages: Iterable[relations_pb2.Relation]) -> list[results.Relation]:
    """Relations in order."""
    return [to_relation(message) for message in messages]


def to_relation(message: relations_pb2.Relation) -> results.Relation:
    """One relation a model knows."""
    return results.Relation(message.name, message.threshold, message.num_pairs, tuple(message.examples), message.added)


def add_request(
    name: str, examples: Sequence[str], *, threshold: float | None, model: str
) -> relations_pb2.AddRelationRequest:
    """A new relation by example patterns."""
    return relations_pb2.AddRelationRequest(
        model=model,
        name=name,
        examples=examples,
        threshold=None if threshold is None else finite_double(threshold, "threshold"),
    )


def delete_request(name: str, *, model: str) -> relations_pb2.DeleteRelationRequest:
    """A relation that was added."""
    return relations_pb2.DeleteRelationRequest(model=model, name=name)
