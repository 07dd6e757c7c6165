"""What was found about relations as replies."""

from collections.abc import Iterable
from dataclasses import replace

from facets_proto.codec import message_of, to_message
from facets_proto.v1 import relations_pb2 as pb

from facets.errors import InvalidInputError
from facets.model.contract import ModelInfo
from facets.relations.assertion import AssertionStatus
from facets.relations.results import EntityPair, PatternScore
from facets_server.relations.requests import ExtractionQuery
from facets_server.relations.served import ReadText
from facets_server.runtime.call_context import CallContext


def extractions_to_message(
    texts: Iterable[ReadText], query: ExtractionQuery, model: ModelInfo, call: CallContext, *, max_scores: int
) -> pb.ExtractRelationsResponse:
    """Pairs of each text, turned into messages as they come, so that only what is returned is held.

    Args:
        texts: What was found in them.
        query: What is to be returned of it.
        model: What found it.
        call: For its times.
        max_scores: Relations returned in all.

    Raises:
        InvalidInputError: More relations are to be returned than the limit.
    """
    reply = pb.ExtractRelationsResponse()
    num_returned = 0
    for text in texts:
        pairs = [
            _returned(pair, query)
            for pair in text.pairs
            if query.include_unrelated or pair.pattern_score.best is not None
        ]
        num_returned += sum(len(pair.pattern_score.relations) for pair in pairs)
        if num_returned > max_scores:
            raise InvalidInputError(
                f"have more than {max_scores} relations of pairs of entities, the limit: "
                "send fewer texts or a smaller top_k",
                path="texts",
            )
        not_asserted = [p for p in text.pairs if p.pattern_score.assertion is not AssertionStatus.ASSERTED]
        reply.texts.append(
            message_of(
                pb.TextRelations,
                pairs=pairs,
                num_pairs=len(text.pairs),
                num_not_asserted=len(not_asserted),
                entities=text.entities,
            )
        )
    reply.MergeFrom(message_of(pb.ExtractRelationsResponse, model=model, timings=call))
    return reply


def _returned(pair: EntityPair, query: ExtractionQuery) -> EntityPair:
    """A pair with the accepted relations, or with as many as asked for."""
    if query.top_k is not None:
        return pair
    accepted = tuple(score for score in pair.pattern_score.relations if score.accepted)
    return replace(pair, pattern_score=replace(pair.pattern_score, relations=accepted))


def pattern_scores_to_message(
    scores: Iterable[PatternScore], model: ModelInfo, call: CallContext
) -> pb.ScoreRelationsResponse:
    """Scores in the order of the patterns, turned into messages as they come."""
    reply = pb.ScoreRelationsResponse()
    for score in scores:
        reply.scores.append(to_message(score, pb.PatternScore))
    reply.MergeFrom(message_of(pb.ScoreRelationsResponse, model=model, timings=call))
    return reply
