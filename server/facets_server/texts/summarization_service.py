"""SummarizationService: the sentences that cover a document best."""

from facets_proto.v1 import texts_pb2, texts_pb2_grpc

from facets.texts.summarization import summarize
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.checks import check_num_sentences
from facets_server.runtime.config import LimitsConfig
from facets_server.texts.served import CallEncoder, TextModels
from facets_server.texts.summarization_messages import summaries_to_proto, summarizing_from_proto

__all__ = ["SummarizationService"]


class SummarizationService(texts_pb2_grpc.SummarizationServiceServicer):
    """Summarizes documents."""

    def __init__(self, models: TextModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def Summarize(self, request: texts_pb2.SummarizeRequest, call: CallContext) -> texts_pb2.SummarizeResponse:
        """Extractive summaries of a batch of documents."""
        served = self._models.get(request.model)
        query = summarizing_from_proto(request, self._limits)
        limit = self._limits.max_sentences_per_document
        check_num_sentences(query.documents, served.model.tokenizer.sentences, limit)
        call.num_items = len(query.documents)
        summaries = summarize(
            served.model,
            query.documents,
            num_sentences=query.num_sentences,
            max_words=query.max_words,
            order=query.order,
            query=query.query,
            encoder=CallEncoder(served, call),
        )
        return summaries_to_proto(summaries, served.model, call)
