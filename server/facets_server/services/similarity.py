"""SimilarityService: how alike two texts are."""

from facets_proto.v1 import similarity_pb2, similarity_pb2_grpc

from facets.tasks.similarity import score_pairs
from facets_server.call import Call
from facets_server.config import LimitsConfig
from facets_server.convert.similarity import scores_to_proto, scoring_from_proto
from facets_server.models import CallEncoder, ServedModels

__all__ = ["SimilarityService"]


class SimilarityService(similarity_pb2_grpc.SimilarityServiceServicer):
    """Scores pairs of texts."""

    def __init__(self, models: ServedModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def Score(self, request: similarity_pb2.ScoreRequest, call: Call) -> similarity_pb2.ScoreResponse:
        """Scores of a batch of pairs."""
        served = self._models.get(request.model)
        query = scoring_from_proto(request, self._limits)
        call.num_items = len(query.pairs)
        scores = score_pairs(
            CallEncoder(served, call),
            query.pairs,
            query.method,
            attention=query.attention,
            explain=query.explain,
            num_words=query.num_words,
            calibrated=query.calibrated,
            score_range=query.score_range,
        )
        return scores_to_proto(scores, query, served.model, call)
