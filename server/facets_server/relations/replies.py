"""What was found about relations as replies."""

from collections.abc import Iterable, Sequence

from facets_proto.v1 import relations_pb2

from facets.errors import InvalidInputError
from facets.model.contract import ModelInfo
from facets.relations.assertion import AssertionStatus
from facets.relations.entailment import EntailmentLabel, EntailmentResult
from facets.relations.results import (
    EntityMention,
    PairRelations,
    PatternScores,
    RankedTail,
    RelationInfo,
    RelationScore,
)
from facets_server.relations.requests import TYPES_TO_PROTO, ExtractionQuery, PatternQuery
from facets_server.relations.served import ReadText
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.replies import timings_to_proto, version_to_proto

__all__ = [
    "entailments_to_proto",
    "extractions_to_proto",
    "pattern_scores_to_proto",
    "relation_to_proto",
    "slots_to_proto",
]

_LABELS = {
    EntailmentLabel.ENTAILS: relations_pb2.ENTAILMENT_LABEL_ENTAILS,
    EntailmentLabel.ENTAILED_BY: relations_pb2.ENTAILMENT_LABEL_ENTAILED_BY,
    EntailmentLabel.PARAPHRASE: relations_pb2.ENTAILMENT_LABEL_PARAPHRASE,
    EntailmentLabel.NEUTRAL: relations_pb2.ENTAILMENT_LABEL_NEUTRAL,
}


_STATUSES = {
    AssertionStatus.ASSERTED: relations_pb2.ASSERTION_STATUS_ASSERTED,
    AssertionStatus.NEGATED: relations_pb2.ASSERTION_STATUS_NEGATED,
    AssertionStatus.QUESTIONED: relations_pb2.ASSERTION_STATUS_QUESTIONED,
    AssertionStatus.HYPOTHETICAL: relations_pb2.ASSERTION_STATUS_HYPOTHETICAL,
    AssertionStatus.ATTRIBUTED: relations_pb2.ASSERTION_STATUS_ATTRIBUTED,
}


def extractions_to_proto(
    texts: Iterable[ReadText], query: ExtractionQuery, model: ModelInfo, call: CallContext
) -> relations_pb2.ExtractRelationsResponse:
    """Pairs of each text, turned into messages as they come, so that only what is returned is held.

    Raises:
        InvalidInputError: More relations are to be returned than the limit.
    """
    reply = relations_pb2.ExtractRelationsResponse()
    num_returned = 0
    for text in texts:
        message = reply.texts.add(
            num_pairs=len(text.pairs),
            num_not_asserted=sum(p.scores.assertion.status is not AssertionStatus.ASSERTED for p in text.pairs),
            entities=map(_mention, text.entities),
        )
        for pair in text.pairs:
            if query.include_unrelated or pair.scores.best is not None:
                returned = message.pairs.add()
                returned.CopyFrom(_pair(pair, top_k=query.top_k, evidence=query.evidence))
                num_returned += len(returned.pattern_score.relations)
        if num_returned > query.max_scores:
            raise InvalidInputError(
                f"have more than {query.max_scores} relations of pairs of entities, the limit: "
                "send fewer texts or a smaller top_k",
                path="texts",
            )
    reply.model.CopyFrom(version_to_proto(model))
    reply.timings.CopyFrom(timings_to_proto(call))
    return reply


def pattern_scores_to_proto(
    scores: Iterable[PatternScores], query: PatternQuery, model: ModelInfo, call: CallContext
) -> relations_pb2.ScoreRelationsResponse:
    """Scores in the order of the patterns, turned into messages as they come."""
    reply = relations_pb2.ScoreRelationsResponse()
    for pattern in scores:
        reply.scores.append(_pattern_score(pattern, pattern.relations, evidence=query.evidence))
    reply.model.CopyFrom(version_to_proto(model))
    reply.timings.CopyFrom(timings_to_proto(call))
    return reply


def slots_to_proto(
    slots: Iterable[Sequence[RankedTail]], *, top_k: int, evidence: bool, model: ModelInfo, call: CallContext
) -> relations_pb2.FillSlotsResponse:
    """Ranked tails in the order of the slots."""
    filled = [
        relations_pb2.FilledSlot(tails=[_tail(tail, evidence=evidence) for tail in tails[:top_k]]) for tails in slots
    ]
    return relations_pb2.FillSlotsResponse(slots=filled, model=version_to_proto(model), timings=timings_to_proto(call))


def entailments_to_proto(
    results: Sequence[EntailmentResult], model: ModelInfo, call: CallContext
) -> relations_pb2.DetectEntailmentResponse:
    """Both directions of each pair, in order."""
    return relations_pb2.DetectEntailmentResponse(
        entailments=[
            relations_pb2.Entailment(
                premise=result.premise,
                hypothesis=result.hypothesis,
                forward_score=result.forward,
                backward_score=result.backward,
                direction=result.direction,
                label=_LABELS[result.label],
                confidence=result.confidence,
                negation_differs=result.negation_differs,
            )
            for result in results
        ],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def relation_to_proto(info: RelationInfo) -> relations_pb2.Relation:
    """One relation a model knows."""
    return relations_pb2.Relation(
        name=info.name,
        threshold=info.threshold,
        num_pairs=info.num_pairs,
        examples=info.examples,
        added=bool(info.examples),
        description=info.details.description,
        example=info.details.example,
        aliases=info.details.aliases,
        inverse_aliases=info.details.inverse_aliases,
        head_types=[TYPES_TO_PROTO[kind] for kind in info.details.head],
        tail_types=[TYPES_TO_PROTO[kind] for kind in info.details.tail],
        symmetric=info.details.symmetric,
    )


def _pair(pair: PairRelations, *, top_k: int | None, evidence: bool) -> relations_pb2.EntityPair:
    scores = pair.scores
    if top_k is None:
        returned: Sequence[RelationScore] = [score for score in scores.relations if score.accepted]
    else:
        returned = scores.relations[:top_k]
    return relations_pb2.EntityPair(
        head=_mention(pair.head),
        tail=_mention(pair.tail),
        sentence_start=pair.sentence_start,
        sentence_end=pair.sentence_end,
        pattern_score=_pattern_score(scores, returned, evidence=evidence),
    )


def _tail(tail: RankedTail, *, evidence: bool) -> relations_pb2.RankedTail:
    return relations_pb2.RankedTail(
        tail=tail.tail,
        score=tail.score,
        probability=tail.probability,
        accepted=tail.accepted,
        mentions=[
            relations_pb2.TailMention(text=pair.text_position, pair=_pair(pair, top_k=1, evidence=evidence))
            for pair in tail.mentions
        ],
    )


def _mention(mention: EntityMention) -> relations_pb2.EntityMention:
    return relations_pb2.EntityMention(
        text=mention.text, start=mention.start, end=mention.end, type=TYPES_TO_PROTO[mention.type]
    )


def _pattern_score(
    scores: PatternScores, returned: Sequence[RelationScore], *, evidence: bool
) -> relations_pb2.PatternScore:
    facets = scores.evidence.nearest_relations if evidence else ()
    return relations_pb2.PatternScore(
        pattern=scores.pattern,
        relations=[_score(score, evidence=evidence) for score in returned],
        no_relation_probability=scores.no_relation_probability,
        assertion=_STATUSES[scores.assertion.status],
        assertion_cue=scores.assertion.cue,
        known=scores.evidence.pattern_known,
        facets=[
            relations_pb2.FacetRelations(
                facet=facet,
                relations=[relations_pb2.NearRelation(relation=n.relation, cosine=n.cosine) for n in near],
            )
            for facet, near in enumerate(facets)
        ],
    )


def _score(score: RelationScore, *, evidence: bool) -> relations_pb2.RelationScore:
    meeting = score.meeting
    return relations_pb2.RelationScore(
        relation=score.relation,
        score=score.score,
        probability=score.probability,
        accepted=score.accepted,
        symmetric_score=score.symmetric,
        universal_schema_score=score.universal_schema,
        meeting=relations_pb2.FacetMeeting(
            pattern_facet=meeting.pattern_facet, relation_facet=meeting.relation_facet, cosine=meeting.cosine
        )
        if evidence and meeting is not None
        else None,
        similar_patterns=[
            relations_pb2.SimilarPattern(pattern=similar.pattern, score=similar.score)
            for similar in score.similar_patterns
        ],
        known_pairs=[relations_pb2.NamedPair(head=head, tail=tail) for head, tail in score.known_pairs],
    )
