"""Embeddings of texts."""

from collections.abc import Sequence

import numpy as np
from facets_proto.v1 import common_pb2, texts_pb2
from numpy.typing import NDArray

from facets.model.contract import ModelInfo
from facets.texts.explanation import FacetExplanation, TextExplanation
from facets_server.runtime.arrays import array_to_proto
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.replies import (
    nearest_to_proto,
    stats_to_proto,
    timings_to_proto,
    tokens_to_proto,
    version_to_proto,
)
from facets_server.texts.served import Encoded

__all__ = ["embeddings_to_proto", "explanations_to_proto"]


def embeddings_to_proto(
    encoded: Encoded, model: ModelInfo, request: texts_pb2.EmbedRequest, call: CallContext
) -> texts_pb2.EmbedResponse:
    """Embeddings in the form that the request asks for."""
    facets = _unit_length(encoded.facets) if request.normalize else encoded.facets
    return texts_pb2.EmbedResponse(
        facet_embeddings=array_to_proto(facets, request.dtype),
        token_stats=stats_to_proto(encoded.stats),
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def explanations_to_proto(
    explanations: Sequence[TextExplanation], encoded: Encoded, model: ModelInfo, call: CallContext
) -> texts_pb2.ExplainResponse:
    """Texts as the model sees them."""
    return texts_pb2.ExplainResponse(
        explanations=[
            texts_pb2.TextExplanation(
                tokens=tokens_to_proto(explanation.tokens),
                facets=[_facet(facet) for facet in explanation.facets],
                token_stats=stats,
            )
            for explanation, stats in zip(explanations, stats_to_proto(encoded.stats), strict=True)
        ],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _facet(facet: FacetExplanation) -> common_pb2.FacetWords:
    return common_pb2.FacetWords(
        facet=facet.facet,
        words=nearest_to_proto([(word.word, word.cosine) for word in facet.words]),
        tokens=[common_pb2.AttendedToken(token=token, cosine=cosine) for token, cosine in facet.tokens],
    )


def _unit_length(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(facets, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(facets, lengths, out=np.zeros_like(facets), where=lengths > 0)
    return unit
