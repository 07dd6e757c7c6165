"""Embeddings of texts."""

import numpy as np
from facets_proto.v1 import embedding_pb2
from numpy.typing import NDArray

from facets_server.call import Call
from facets_server.convert.arrays import array_to_proto
from facets_server.convert.models import stats_to_proto, timings_to_proto, version_to_proto
from facets_server.models import Encoded, FacetModel

__all__ = ["embeddings_to_proto"]


def embeddings_to_proto(
    encoded: Encoded, model: FacetModel, request: embedding_pb2.EmbedRequest, call: Call
) -> embedding_pb2.EmbedResponse:
    """Embeddings in the form that the request asks for."""
    facets = _unit_length(encoded.facets) if request.normalize else encoded.facets
    return embedding_pb2.EmbedResponse(
        facet_embeddings=array_to_proto(facets, request.dtype),
        token_stats=stats_to_proto(encoded.stats),
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _unit_length(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(facets, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(facets, lengths, out=np.zeros_like(facets), where=lengths > 0)
    return unit
