"""Embeddings and scores as replies."""

import numpy as np
from facets_proto.codec import message_of
from facets_proto.v1 import texts_pb2 as pb
from numpy.typing import NDArray

from facets.model.contract import ModelInfo
from facets.texts.similarity import PairScores
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.records import as_data_type
from facets_server.texts.requests import ScoringQuery
from facets_server.texts.served import Encoded


def embeddings_to_message(
    encoded: Encoded, model: ModelInfo, request: pb.EmbedRequest, call: CallContext
) -> pb.EmbedResponse:
    """Embeddings in the form that the request asks for."""
    facets = _unit_length(encoded.facets) if request.normalize else encoded.facets
    vectors = encoded.vectors if request.include_vectors or request.vectors_only else None
    return message_of(
        pb.EmbedResponse,
        facet_embeddings=as_data_type(facets, request.dtype) if facets.size else None,
        token_stats=encoded.stats,
        model=model,
        timings=call,
        facet_spans=encoded.spans if request.include_spans and facets.size else None,
        vectors=None if vectors is None else as_data_type(vectors, request.dtype),
    )


def _unit_length(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(facets, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(facets, lengths, out=np.zeros_like(facets), where=lengths > 0)
    return unit


def scores_to_message(scores: PairScores, query: ScoringQuery, model: ModelInfo, call: CallContext) -> pb.ScoreResponse:
    """Scores with what the query asks for."""
    missing = [None] * len(scores.scores)
    calibrated = missing if scores.calibrated is None else scores.calibrated.tolist()
    explanations = scores.explanations if query.explain else missing
    labels = [one.label for one in scores.comparisons] or missing
    differences = [one.differences for one in scores.comparisons] or [()] * len(scores.scores)
    return message_of(
        pb.ScoreResponse,
        scores=list(zip(scores.scores.tolist(), calibrated, explanations, labels, differences, strict=True)),
        method=scores.method,
        attention=query.attention,
        model=model,
        timings=call,
    )
