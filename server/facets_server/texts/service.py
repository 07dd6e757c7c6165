"""The services about texts: facets of texts, how alike two texts are, the sentences that cover a document best."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from facets_proto.codec import message_of, to_message
from facets_proto.v1 import texts_pb2 as pb
from facets_proto.v1 import texts_pb2_grpc

from facets.errors import FacetsError
from facets.texts.explanation import explain_encoded
from facets.texts.similarity import PairScores, score_pairs
from facets.texts.similarity_methods import default_method
from facets.texts.summarization import Summary, summarize
from facets.texts.topics import TextTopics, suggest_topics
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.calls import PendingReply
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError, status_of
from facets_server.runtime.limits import LimitsConfig, check_count, check_num_sentences, check_texts
from facets_server.runtime.messages import read_ahead
from facets_server.runtime.records import num_words_of
from facets_server.texts.replies import embeddings_to_message, scores_to_message
from facets_server.texts.requests import (
    ScoringQuery,
    SummarizingQuery,
    TopicsQuery,
    scoring_of,
    summarizing_of,
    topics_of,
)
from facets_server.texts.served import CallEncoder, Encoded, PendingTexts, ServedTexts, TextModels


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request of a stream whose texts wait for the model, or why they do not."""

    sequence: int
    request: pb.EmbedRequest
    call: CallContext
    outcome: tuple[ServedTexts, PendingTexts] | FacetsError


class EmbeddingService(texts_pb2_grpc.EmbeddingServiceServicer):
    """Embeds texts."""

    def __init__(self, models: TextModels, admission: Admission, limits: LimitsConfig, window: int) -> None:
        self._models = models
        self._admission = admission
        self._limits = limits
        self._window = window
        self.quick_calls = {"Embed": self._is_quick}

    def Embed(self, request: pb.EmbedRequest, call: CallContext) -> PendingReply:
        """Facets of a batch of texts."""
        served, pending = self._submit(request, call)
        return PendingReply(
            pending.rows,
            lambda: embeddings_to_message(_finished(served, pending, request, call), served.model, request, call),
        )

    def EmbedStream(
        self, requests: Iterator[pb.EmbedStreamRequest], call: CallContext
    ) -> Iterator[pb.EmbedStreamResponse]:
        """The same for a stream of batches, answered in order."""

        def begin(request: pb.EmbedStreamRequest) -> _Begun:
            return self._begin(request, call.for_message())

        size = pb.EmbedStreamRequest.ByteSize
        for begun in read_ahead(requests, begin, window=self._window, num_bytes=size, admission=self._admission):
            reply = self._finish(begun)
            call.num_items += begun.call.num_items
            call.inference_ms += begun.call.inference_ms
            yield reply

    def Explain(self, request: pb.ExplainRequest, call: CallContext) -> pb.ExplainResponse:
        """Tokens with their attention, facets with their nearest words."""
        num_words = num_words_of(request, self._limits)
        served, pending = self._submit(request, call)
        encoded = pending.result()
        texts, spans = list(request.texts), encoded.spans
        found = explain_encoded(served.model, texts, encoded.facets, top_k=num_words, spans_TK2=spans)
        explanations = [
            to_message(one, pb.TextExplanation, token_stats=stats)
            for one, stats in zip(found, encoded.stats, strict=True)
        ]
        return message_of(pb.ExplainResponse, explanations=explanations, model=served.model, timings=call)

    def _is_quick(self, request: pb.EmbedRequest) -> bool:
        served = self._models.get(request.model)
        return served.reads_at_once(request.texts) and not (request.include_vectors or request.vectors_only)

    def _submit(
        self, request: pb.EmbedRequest | pb.ExplainRequest, call: CallContext
    ) -> tuple[ServedTexts, PendingTexts]:
        served = self._models.get(request.model)
        check_count(request.texts, ("texts",), self._limits.max_texts_per_request)
        check_texts(
            ((("texts", i), text) for i, text in enumerate(request.texts)), max_bytes=self._limits.max_text_bytes
        )
        served.check(request.texts, "texts")
        vectors_only = isinstance(request, pb.EmbedRequest) and request.vectors_only
        return served, (served.submit_vectors if vectors_only else served.submit)(list(request.texts), call)

    def _begin(self, request: pb.EmbedStreamRequest, call: CallContext) -> _Begun:
        permit = self._admission.permit(call, may_refuse=False)
        try:
            outcome = self._submit(request.request, call)
        except FacetsError as error:
            permit.release()
            return _Begun(request.sequence, request.request, call, error)
        except BaseException:
            permit.release()
            raise
        outcome[1].rows.when_ended(permit.release)
        return _Begun(request.sequence, request.request, call, outcome)

    def _finish(self, begun: _Begun) -> pb.EmbedStreamResponse:
        reply = pb.EmbedStreamResponse(sequence=begun.sequence)
        try:
            if isinstance(begun.outcome, FacetsError):
                raise begun.outcome
            served, pending = begun.outcome
            encoded = _finished(served, pending, begun.request, begun.call)
            reply.response.CopyFrom(embeddings_to_message(encoded, served.model, begun.request, begun.call))
        except (CallCancelledError, DeadlineExceededError):
            raise  # the whole stream ends
        except FacetsError as error:
            reply.error.CopyFrom(status_of(error, request_id=begun.call.request_id))
        return reply


def _finished(served: ServedTexts, pending: PendingTexts, request: pb.EmbedRequest, call: CallContext) -> Encoded:
    """Texts that were begun, with a vector each where the request asks for one."""
    encoded = pending.result()
    if encoded.vectors is not None or not (request.include_vectors or request.vectors_only):
        return encoded
    return replace(encoded, vectors=served.embed(list(request.texts), call))


class SimilarityService(texts_pb2_grpc.SimilarityServiceServicer):
    """Scores pairs of texts."""

    def __init__(self, models: Mapping[str, TextModels], limits: LimitsConfig) -> None:
        """Keeps the models: for each task those of texts, its own first."""
        self._models = models
        self._limits = limits

    def Score(self, request: pb.ScoreRequest, call: CallContext) -> pb.ScoreResponse:
        """Scores of a batch of pairs."""
        query = scoring_of(request, self._limits)
        served = self._models[_task(query)].get(request.model)
        for i, (first, second) in enumerate(query.pairs):
            served.check_one(first, "pairs", i, "first")
            served.check_one(second, "pairs", i, "second")
        call.num_items = len(query.pairs)
        return scores_to_message(_score(query, served, call), query, served.model, call)


def _task(query: ScoringQuery) -> str:
    """Whose model answers when none is named: the one that the method is for."""
    return (query.method or default_method("passages")).row.task


def _score(query: ScoringQuery, served: ServedTexts, call: CallContext) -> PairScores:
    return score_pairs(
        served.model,
        query.pairs,
        query.method,
        attention=query.attention,
        explain=query.explain,
        num_words=query.num_words,
        score_range=query.score_range if query.calibrated else None,
        encoder=CallEncoder(served, call),
    )


class SummarizationService(texts_pb2_grpc.SummarizationServiceServicer):
    """Summarizes documents."""

    def __init__(self, models: TextModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def Summarize(self, request: pb.SummarizeRequest, call: CallContext) -> pb.SummarizeResponse:
        """Extractive summaries of a batch of documents."""
        served = self._models.get(request.model)
        query = summarizing_of(request, self._limits)
        limit = self._limits.max_sentences_per_document
        check_num_sentences(query.documents, served.model.tokenizer.sentences, limit)
        call.num_items = len(query.documents)
        summaries = _summarize(query, served, call)
        return message_of(pb.SummarizeResponse, summaries=summaries, model=served.model, timings=call)


def _summarize(query: SummarizingQuery, served: ServedTexts, call: CallContext) -> list[Summary]:
    return summarize(
        served.model,
        query.documents,
        num_sentences=query.num_sentences,
        max_words=query.max_words,
        order=query.order,
        query=query.query,
        encoder=CallEncoder(served, call),
    )


class TopicService(texts_pb2_grpc.TopicServiceServicer):
    """Suggests what texts may go on about."""

    def __init__(self, models: TextModels, limits: LimitsConfig) -> None:
        self._models = models
        self._limits = limits

    def SuggestTopics(self, request: pb.SuggestTopicsRequest, call: CallContext) -> pb.SuggestTopicsResponse:
        """Topics that may come next after each text of a batch."""
        served = self._models.get(request.model)
        query = topics_of(request, self._limits)
        call.num_items = len(query.texts)
        topics = _suggest(query, served, call)
        return message_of(pb.SuggestTopicsResponse, texts=topics, model=served.model, timings=call)


def _suggest(query: TopicsQuery, served: ServedTexts, call: CallContext) -> list[TextTopics]:
    return suggest_topics(
        served.model,
        query.texts,
        num_topics=query.num_topics,
        num_words=query.num_words,
        keep=query.keep,
        avoid=query.avoid,
        encoder=CallEncoder(served, call),
    )
