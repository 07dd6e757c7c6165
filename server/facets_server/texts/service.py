"""The services for texts: facets, similarity, summaries, topics."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from facets_proto.codec import message_of, to_message
from facets_proto.v1 import common_pb2, texts_pb2_grpc
from facets_proto.v1 import texts_pb2 as pb
from numpy.typing import NDArray

from facets.documents.encoders import Encoded, check_readable_by
from facets.errors import FacetsError, InvalidInputError
from facets.language.sentences import sentences_of
from facets.language.vectors import unit_rows
from facets.texts.explanation import explain_encoded
from facets.texts.similarity import PairScores, SimilarityMethod, default_method, score_pairs
from facets.texts.summarization import summarize
from facets.texts.topics import suggest_topics
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError, status_of
from facets_server.runtime.fair_queue import Pending
from facets_server.runtime.messages import read_ahead
from facets_server.runtime.requests import (
    check_list_of_texts,
    check_not_empty,
    check_number,
    check_pairs,
    check_texts,
    record_of,
)
from facets_server.texts.served import CallEncoder, ServedTexts, TextModels


@dataclass(frozen=True)
class EmbeddingService(texts_pb2_grpc.EmbeddingServiceServicer):
    """Embeds texts."""

    models: TextModels
    vector_models: TextModels  # of requests for vectors: another default
    admission: Admission
    limits: LimitsConfig

    def Embed(self, request: pb.EmbedRequest, call: CallContext) -> Pending[pb.EmbedResponse]:
        """Facets of a batch of texts."""
        served, pending = self._submit(request, call)
        return Pending(pending.waiter, lambda: _embedded(served, pending, request, call))

    def EmbedStream(
        self, requests: Iterator[pb.EmbedStreamRequest], call: CallContext
    ) -> Iterator[pb.EmbedStreamResponse]:
        """Facets of a stream of batches, answered in order."""

        def begin(request: pb.EmbedStreamRequest) -> tuple[pb.EmbedStreamRequest, CallContext, _Outcome]:
            message_call = call.for_message()
            with self.admission.turns.taken(message_call):
                try:
                    return request, message_call, self._submit(request.request, message_call)
                except FacetsError as error:
                    return request, message_call, error

        for request, message_call, outcome in read_ahead(requests, begin, self.admission, call):
            reply = pb.EmbedStreamResponse(sequence=request.sequence)
            try:
                if isinstance(outcome, FacetsError):
                    raise outcome
                reply.response.CopyFrom(_embedded(*outcome, request.request, message_call))
            except (CallCancelledError, DeadlineExceededError):
                raise  # the whole stream ends
            except FacetsError as error:
                reply.error.CopyFrom(status_of(error, request_id=call.request_id))
            call.num_items += message_call.num_items
            yield reply

    def Explain(self, request: pb.ExplainRequest, call: CallContext) -> pb.ExplainResponse:
        """Tokens with their attention, facets with their nearest words."""
        num_words = _num_words_of(request, self.limits)
        served, pending = self._submit(request, call)
        encoded = pending()
        explained = explain_encoded(
            served.model, list(request.texts), encoded.facets, spans_TK2=encoded.spans, **num_words
        )
        explanations = [
            to_message(explanation, pb.TextExplanation, token_stats=stats)
            for explanation, stats in zip(explained, encoded.stats, strict=True)
        ]
        return message_of(pb.ExplainResponse, explanations=explanations, model=served.model, timings=call)

    def is_quick(self, request: pb.EmbedRequest) -> bool:
        """Whether ``Embed`` waits neither for a lock nor for a disk."""
        if _wants_vectors(request) or not self.models.find(request.model).is_open:
            return False
        return self.models.get(request.model).reads_at_once(request.texts)

    def _submit(
        self, request: pb.EmbedRequest | pb.ExplainRequest, call: CallContext
    ) -> tuple[ServedTexts, Pending[Encoded]]:
        served = (self.vector_models if _wants_vectors(request) else self.models).get(request.model)
        check_not_empty(request.texts, ("texts",))
        check_list_of_texts(request.texts, "texts", max_bytes=self.limits.max_text_bytes)
        for i, text in enumerate(request.texts):
            check_readable_by(served.model, text, "texts", i)
        vectors_only = isinstance(request, pb.EmbedRequest) and request.vectors_only
        return served, (served.submit_vectors if vectors_only else served.submit)(list(request.texts), call)


_Outcome = tuple[ServedTexts, Pending[Encoded]] | FacetsError  # texts that wait for the model, or why they do not


def _wants_vectors(request: pb.EmbedRequest | pb.ExplainRequest) -> bool:
    return isinstance(request, pb.EmbedRequest) and (request.include_vectors or request.vectors_only)


def _embedded(
    served: ServedTexts, pending: Pending[Encoded], request: pb.EmbedRequest, call: CallContext
) -> pb.EmbedResponse:
    encoded = pending()
    wants_vectors = _wants_vectors(request)
    if wants_vectors and encoded.vectors is None:
        encoded = replace(encoded, vectors=served.embed(list(request.texts), call))
    facets = unit_rows(encoded.facets) if request.normalize else encoded.facets
    return message_of(
        pb.EmbedResponse,
        facet_embeddings=_as_data_type(facets, request.dtype) if facets.size else None,
        token_stats=encoded.stats,
        model=served.model,
        timings=call,
        facet_spans=encoded.spans if request.include_spans and facets.size else None,
        vectors=_as_data_type(encoded.vectors, request.dtype) if wants_vectors else None,
    )


def _as_data_type(array: NDArray[np.floating] | None, data_type: int) -> NDArray[np.floating]:
    """An array of the requested type; magnitudes too large for half precision are clipped."""
    assert array is not None
    if data_type == common_pb2.DATA_TYPE_FLOAT16:
        largest = float(np.finfo(np.float16).max)
        return np.clip(array, -largest, largest).astype(np.float16)
    if data_type not in common_pb2.DataType.values():
        raise InvalidInputError(f"must be float32 or float16, got number {data_type}", path="dtype")
    return array


def _num_words_of(
    request: pb.ExplainRequest | pb.ScoreRequest | pb.SuggestTopicsRequest, limits: LimitsConfig
) -> dict[str, int]:
    """``num_words`` of a request as a keyword argument; empty: the default of the library."""
    if not request.HasField("num_words"):
        return {}
    return {"num_words": check_number(request.num_words, ("num_words",), limits.max_nearest_words)}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scoring:
    pairs: tuple[tuple[str, str], ...]
    method: SimilarityMethod | None
    attention: bool
    explain: bool
    calibrated: bool


@dataclass(frozen=True)
class SimilarityService(texts_pb2_grpc.SimilarityServiceServicer):
    """Scores pairs of texts; ``models`` maps each task to the text models, the task's own first."""

    models: Mapping[str, TextModels]
    limits: LimitsConfig

    def Score(self, request: pb.ScoreRequest, call: CallContext) -> pb.ScoreResponse:
        """Scores of a batch of pairs."""
        limits = self.limits
        check_pairs(request.pairs, ("first", "second"), max_bytes=limits.max_text_bytes)
        scoring = record_of(request, _Scoring)
        task = (scoring.method or default_method("passages")).row.task
        served = self.models[task].get(request.model)
        for i, (first, second) in enumerate(scoring.pairs):
            check_readable_by(served.model, first, "pairs", i, "first")
            check_readable_by(served.model, second, "pairs", i, "second")
        call.num_items = len(scoring.pairs)
        options = asdict(scoring) | _num_words_of(request, limits)
        scores = score_pairs(served.model, encoder=CallEncoder(served, call), **options)
        fields = {"method": scores.method, "attention": scoring.attention, "model": served.model}
        return message_of(pb.ScoreResponse, scores=_pair_scores(scores), **fields, timings=call)


def _pair_scores(scores: PairScores) -> list[tuple[object, ...]]:
    nothing = [None] * len(scores.scores)
    calibrated = nothing if scores.calibrated is None else scores.calibrated.tolist()
    labels = [comparison.label for comparison in scores.comparisons] or nothing
    differences = [comparison.differences for comparison in scores.comparisons] or [()] * len(scores.scores)
    columns = (scores.scores.tolist(), calibrated, scores.explanations or nothing, labels, differences)
    return list(zip(*columns, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Summarizing:
    documents: tuple[str | tuple[str, ...], ...]
    num_sentences: int | None
    max_words: int | None
    query: str


@dataclass(frozen=True)
class SummarizationService(texts_pb2_grpc.SummarizationServiceServicer):
    """Summarizes documents."""

    models: TextModels
    limits: LimitsConfig

    def Summarize(self, request: pb.SummarizeRequest, call: CallContext) -> pb.SummarizeResponse:
        """Extractive summaries of a batch of documents."""
        served = self.models.get(request.model)
        self._check(request, served)
        summarizing = record_of(request, _Summarizing)
        call.num_items = len(summarizing.documents)
        encoder = CallEncoder(served, call)
        summaries = summarize(served.model, encoder=encoder, reader=encoder.reader(), **asdict(summarizing))
        return message_of(pb.SummarizeResponse, summaries=summaries, model=served.model, timings=call)

    def _check(self, request: pb.SummarizeRequest, served: ServedTexts) -> None:
        limits, max_sentences = self.limits, self.limits.max_sentences_per_document
        check_not_empty(request.documents, ("documents",))
        for i, document in enumerate(request.documents):
            sentences, path = document.sentences.sentences, ("documents", i, "sentences")
            if document.WhichOneof("source") == "sentences":
                check_not_empty(sentences, path)
                check_list_of_texts(sentences, *path, "sentences", max_bytes=limits.max_text_bytes)
                continue
            check_texts([(("documents", i, "text"), document.text, limits.max_long_text_bytes)])
            if len(document.text) > max_sentences:
                num_sentences = len(sentences_of(document.text))
                if num_sentences > max_sentences:
                    rule = f"has {num_sentences} sentences, the limit is {max_sentences}"
                    raise InvalidInputError(rule, path=("documents", i, "text"))
        if request.query:
            check_texts([(("query",), request.query, limits.max_text_bytes)])


@dataclass(frozen=True)
class TopicService(texts_pb2_grpc.TopicServiceServicer):
    """Suggests topics with which texts may continue."""

    models: TextModels
    limits: LimitsConfig

    def SuggestTopics(self, request: pb.SuggestTopicsRequest, call: CallContext) -> pb.SuggestTopicsResponse:
        """Topics that may come next after each text of a batch."""
        served, limits = self.models.get(request.model), self.limits
        check_not_empty(request.texts, ("texts",))
        check_list_of_texts(request.texts, "texts", max_bytes=limits.max_long_text_bytes)
        for name, phrases in (("keep", request.keep), ("avoid", request.avoid)):
            check_list_of_texts(phrases, name, max_bytes=limits.max_text_bytes)
        call.num_items = len(request.texts)
        topics = suggest_topics(
            served.model,
            list(request.texts),
            num_topics=request.num_topics if request.HasField("num_topics") else None,
            keep=list(request.keep),
            avoid=list(request.avoid),
            encoder=CallEncoder(served, call),
            **_num_words_of(request, limits),
        )
        return message_of(pb.SuggestTopicsResponse, texts=topics, model=served.model, timings=call)
