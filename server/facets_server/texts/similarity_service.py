"""SimilarityService: how alike two texts are."""

from facets_proto.v1 import texts_pb2, texts_pb2_grpc

from facets.texts.similarity import score_pairs
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.texts.served import CallEncoder, TextModels
from facets_server.texts.similarity_messages import scores_to_proto, scoring_from_proto

__all__ = ["SimilarityService"]


class SimilarityService(texts_pb2_grpc.SimilarityServiceServicer):
    """Scores pairs of texts."""

    def __init__(self, models: TextModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def Score(self, request: texts_pb2.ScoreRequest, call: CallContext) -> texts_pb2.ScoreResponse:
        """Scores of a batch of pairs."""
        served = self._models.get(request.model)
        query = scoring_from_proto(request, self._limits)
        call.num_items = len(query.pairs)
        scores = score_pairs(
            served.model,
            query.pairs,
            query.method,
            attention=query.attention,
            explain=query.explain,
            num_words=query.num_words,
            score_range=query.score_range,
            encoder=CallEncoder(served, call),
        )
        return scores_to_proto(scores, query, served.model, call)
