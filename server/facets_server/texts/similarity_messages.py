"""Pairs and their scores."""

from collections.abc import Sequence
from dataclasses import dataclass

from facets_proto.v1 import common_pb2, texts_pb2

from facets.errors import InvalidInputError
from facets.model.contract import ModelInfo
from facets.texts.score_curves import ScoreRange
from facets.texts.similarity import FacetMatch, PairExplanation, PairScores
from facets.texts.similarity_methods import SimilarityMethod
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.checks import check_count, check_texts
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.replies import (
    nearest_to_proto,
    num_words_of,
    timings_to_proto,
    tokens_to_proto,
    version_to_proto,
)

__all__ = ["ScoringQuery", "scores_to_proto", "scoring_from_proto"]

# Methods have the same names in the library and in the proto.
_PREFIX = "SIMILARITY_METHOD_"
_METHODS: dict[int, SimilarityMethod] = {
    texts_pb2.SIMILARITY_METHOD_UNSPECIFIED: SimilarityMethod.CODEBOOK,
    **{texts_pb2.SimilarityMethod.Value(_PREFIX + method.name): method for method in SimilarityMethod},
}
_RANGES = {
    texts_pb2.CALIBRATED_RANGE_UNSPECIFIED: ScoreRange.ZERO_TO_ONE,
    texts_pb2.CALIBRATED_RANGE_ZERO_TO_ONE: ScoreRange.ZERO_TO_ONE,
    texts_pb2.CALIBRATED_RANGE_ZERO_TO_FIVE: ScoreRange.ZERO_TO_FIVE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringQuery:
    """A checked request."""

    pairs: tuple[tuple[str, str], ...]
    method: SimilarityMethod
    attention: bool
    explain: bool
    num_words: int
    score_range: ScoreRange | None


def scoring_from_proto(request: texts_pb2.ScoreRequest, limits: LimitsConfig) -> ScoringQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.pairs, ("pairs",), limits.max_pairs_per_request)
    check_texts(
        (
            (("pairs", i, side), getattr(pair, side))
            for i, pair in enumerate(request.pairs)
            for side in ("first", "second")
        ),
        max_bytes=limits.max_text_bytes,
    )
    if request.method not in _METHODS:
        raise InvalidInputError(f"must be a known one, got number {request.method}", path="method")
    if request.calibrated_range not in _RANGES:
        raise InvalidInputError(f"must be a known one, got number {request.calibrated_range}", path="calibrated_range")
    return ScoringQuery(
        pairs=tuple((pair.first, pair.second) for pair in request.pairs),
        method=_METHODS[request.method],
        attention=request.attention,
        explain=request.explain,
        num_words=num_words_of(request, limits),
        score_range=_RANGES[request.calibrated_range] if request.calibrated else None,
    )


def scores_to_proto(
    scores: PairScores,
    query: ScoringQuery,
    model: ModelInfo,
    call: CallContext,
) -> texts_pb2.ScoreResponse:
    """Scores with what the query asks for."""
    pairs = [texts_pb2.PairScore(score=score) for score in scores.scores]
    if scores.calibrated is not None:
        for pair, value in zip(pairs, scores.calibrated, strict=True):
            pair.calibrated_score = value
    if query.explain:
        for pair, explanation in zip(pairs, scores.explanations, strict=True):
            pair.explanation.CopyFrom(_explanation(explanation))
    return texts_pb2.ScoreResponse(
        scores=pairs,
        method=_PREFIX + query.method.name,
        attention=query.attention,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _explanation(explanation: PairExplanation) -> texts_pb2.PairExplanation:
    return texts_pb2.PairExplanation(
        matches=_matches(explanation.matches),
        first_tokens=tokens_to_proto(explanation.first_tokens),
        second_tokens=tokens_to_proto(explanation.second_tokens),
    )


def _matches(matches: Sequence[FacetMatch]) -> list[common_pb2.FacetMatch]:
    return [
        common_pb2.FacetMatch(
            first_facet=match.first_facet,
            second_facet=match.second_facet,
            cosine=match.cosine,
            contribution=match.contribution,
            first_words=nearest_to_proto([(word.word, word.cosine) for word in match.first_words]),
            second_words=nearest_to_proto([(word.word, word.cosine) for word in match.second_words]),
        )
        for match in matches
    ]
