"""SummarizationService: the sentences that cover a document best."""

from facets_proto.v1 import summarization_pb2, summarization_pb2_grpc

from facets.tasks.summarization import summarize
from facets_server.call import Call
from facets_server.checks import check_num_sentences
from facets_server.config import LimitsConfig
from facets_server.convert.summarization import summaries_to_proto, summarizing_from_proto
from facets_server.models import CallEncoder, ServedModels

__all__ = ["SummarizationService"]


class SummarizationService(summarization_pb2_grpc.SummarizationServiceServicer):
    """Summarizes documents."""

    def __init__(self, models: ServedModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def Summarize(self, request: summarization_pb2.SummarizeRequest, call: Call) -> summarization_pb2.SummarizeResponse:
        """Extractive summaries of a batch of documents."""
        served = self._models.get(request.model)
        query = summarizing_from_proto(request, self._limits)
        limit = self._limits.max_sentences_per_document
        check_num_sentences(query.documents, served.model.tokenizer.sentences, limit)
        call.num_items = len(query.documents)
        summaries = summarize(
            CallEncoder(served, call),
            query.documents,
            num_sentences=query.num_sentences,
            max_words=query.max_words,
            order=query.order,
            query=query.query,
        )
        return summaries_to_proto(summaries, served.model, call)
