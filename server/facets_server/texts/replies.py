"""Embeddings, explanations, scores and summaries as replies."""

from collections.abc import Sequence

import numpy as np
from facets_proto.v1 import common_pb2, texts_pb2
from numpy.typing import NDArray

from facets.model.contract import ModelInfo
from facets.texts.explanation import FacetExplanation, TextExplanation, TokenAttention
from facets.texts.similarity import FacetMatch, PairExplanation, PairScores
from facets.texts.summarization import Summary
from facets_server.runtime.arrays import array_to_proto
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.replies import (
    nearest_to_proto,
    spans_to_proto,
    timings_to_proto,
    version_to_proto,
)
from facets_server.texts.requests import ScoringQuery
from facets_server.texts.served import Encoded, TextStats

__all__ = ["embeddings_to_proto", "explanations_to_proto", "scores_to_proto", "summaries_to_proto"]


def embeddings_to_proto(
    encoded: Encoded, model: ModelInfo, request: texts_pb2.EmbedRequest, call: CallContext
) -> texts_pb2.EmbedResponse:
    """Embeddings in the form that the request asks for."""
    facets = _unit_length(encoded.facets) if request.normalize else encoded.facets
    return texts_pb2.EmbedResponse(
        facet_embeddings=array_to_proto(facets, request.dtype),
        token_stats=_stats_to_proto(encoded.stats),
        model=version_to_proto(model),
        timings=timings_to_proto(call),
        facet_spans=_facet_spans(encoded) if request.include_spans else (),
        vectors=_vectors(encoded, request) if request.include_vectors else None,
    )


def _vectors(encoded: Encoded, request: texts_pb2.EmbedRequest) -> common_pb2.FacetArray | None:
    return None if encoded.vectors is None else array_to_proto(encoded.vectors, request.dtype)


def _facet_spans(encoded: Encoded) -> list[texts_pb2.FacetSpans]:
    if encoded.spans is None:
        return []
    return [texts_pb2.FacetSpans(spans=spans_to_proto(spans)) for spans in encoded.spans]


def explanations_to_proto(
    explanations: Sequence[TextExplanation], encoded: Encoded, model: ModelInfo, call: CallContext
) -> texts_pb2.ExplainResponse:
    """Texts as the model sees them."""
    return texts_pb2.ExplainResponse(
        explanations=[
            texts_pb2.TextExplanation(
                tokens=_tokens_to_proto(explanation.tokens),
                facets=[_facet(facet, spans) for facet in explanation.facets],
                token_stats=stats,
            )
            for explanation, stats, spans in zip(
                explanations,
                _stats_to_proto(encoded.stats),
                [None] * len(explanations) if encoded.spans is None else encoded.spans,
                strict=True,
            )
        ],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _facet(facet: FacetExplanation, spans: NDArray[np.int32] | None) -> common_pb2.FacetWords:
    """One facet in words, with its place among the spans of the text's facets."""
    return common_pb2.FacetWords(
        facet=facet.facet,
        span=None if spans is None else spans_to_proto(spans[facet.facet : facet.facet + 1])[0],
        words=nearest_to_proto([(word.word, word.cosine) for word in facet.words]),
        tokens=[common_pb2.AttendedToken(token=token, cosine=cosine) for token, cosine in facet.tokens],
    )


def _stats_to_proto(stats: Sequence[TextStats]) -> list[common_pb2.TokenStats]:
    """Token counts of texts."""
    return [
        common_pb2.TokenStats(
            num_tokens=s.num_tokens,
            num_unknown_tokens=s.num_unknown_tokens,
            truncated=s.truncated,
            num_tokens_in_text=s.num_tokens_in_text,
        )
        for s in stats
    ]


def _tokens_to_proto(tokens: Sequence[TokenAttention]) -> list[common_pb2.TokenAttention]:
    """Tokens and how much they matter."""
    return [
        common_pb2.TokenAttention(
            text=token.text,
            start=token.start,
            end=token.end,
            attention=token.attention,
            known=token.known,
            weight=token.weight,
        )
        for token in tokens
    ]


def _unit_length(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(facets, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(facets, lengths, out=np.zeros_like(facets), where=lengths > 0)
    return unit


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
        method=f"SIMILARITY_METHOD_{scores.method.name}",
        attention=query.attention,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _explanation(explanation: PairExplanation) -> texts_pb2.PairExplanation:
    return texts_pb2.PairExplanation(
        matches=_matches(explanation.matches),
        first_tokens=_tokens_to_proto(explanation.first_tokens),
        second_tokens=_tokens_to_proto(explanation.second_tokens),
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


def summaries_to_proto(
    summaries: Sequence[Summary], model: ModelInfo, call: CallContext
) -> texts_pb2.SummarizeResponse:
    """Summaries in the order of the documents."""
    return texts_pb2.SummarizeResponse(
        summaries=[_summary(summary) for summary in summaries],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _summary(summary: Summary) -> texts_pb2.Summary:
    return texts_pb2.Summary(
        sentences=[
            texts_pb2.SummarySentence(
                text=sentence.text,
                sentence=sentence.sentence,
                start=sentence.start,
                end=sentence.end,
                selection=sentence.selection,
                gain=sentence.gain,
            )
            for sentence in summary.sentences
        ],
        num_sentences_in_document=summary.num_sentences_in_document,
        num_words=summary.num_words,
    )
