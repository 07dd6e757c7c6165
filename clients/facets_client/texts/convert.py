"""Requests and replies about texts and models: embed, explain, score, summarize, models, health."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Literal

import numpy as np
from facets_proto.v1 import common_pb2, models_pb2, texts_pb2
from google.protobuf import wrappers_pb2

from facets_client.core import results
from facets_client.core.arrays import to_array
from facets_client.core.numbers import unsigned
from facets_client.core.statuses import status_error

DTypeName = Literal["float32", "float16"]
Method = Literal["codebook", "max_facet", "average", "probability_average", "sif", "wmd", "probability_wmd", "encoder"]
Order = Literal["original", "selection"]
ScoreRange = Literal["0..1", "0..5"]

_DTYPE_NUMBERS: dict[str, common_pb2.DataType] = {
    "float32": common_pb2.DATA_TYPE_FLOAT32,
    "float16": common_pb2.DATA_TYPE_FLOAT16,
}
_RANGE_NUMBERS: dict[str, texts_pb2.CalibratedRange] = {
    "0..1": texts_pb2.CALIBRATED_RANGE_ZERO_TO_ONE,
    "0..5": texts_pb2.CALIBRATED_RANGE_ZERO_TO_FIVE,
}
_METHOD_PREFIX = "SIMILARITY_METHOD_"
_HEALTH = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


def embed_request(texts: Sequence[str], *, model: str, normalize: bool, dtype: DTypeName) -> texts_pb2.EmbedRequest:
    """Texts to embed and how."""
    return texts_pb2.EmbedRequest(texts=texts, model=model, normalize=normalize, dtype=_DTYPE_NUMBERS[dtype])


def embed_stream_request(sequence: int, request: texts_pb2.EmbedRequest) -> texts_pb2.EmbedStreamRequest:
    """One numbered request of an embedding stream."""
    return texts_pb2.EmbedStreamRequest(sequence=sequence, request=request)


def to_embeddings(parts: Sequence[texts_pb2.EmbedResponse]) -> results.Embeddings:
    """The replies to the parts of a call as one result, in the order of the texts."""
    arrays = [to_array(part.facet_embeddings) for part in parts]
    return results.Embeddings(
        facet_embeddings=arrays[0] if len(arrays) == 1 else np.concatenate(arrays),
        token_stats=tuple(to_token_stats(stats) for part in parts for stats in part.token_stats),
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def to_stream_array(reply: texts_pb2.EmbedStreamResponse) -> results.FacetsArray:
    """Embeddings of one request of a stream, ``[texts, num_facets, dim]``.

    Raises:
        FacetsClientError: What the server said instead.
    """
    if reply.WhichOneof("outcome") == "error":
        raise status_error(reply.error)
    return to_array(reply.response.facet_embeddings)


def explain_request(texts: Sequence[str], *, model: str, num_words: int | None) -> texts_pb2.ExplainRequest:
    """Texts to explain; None leaves the number of words to the server."""
    return texts_pb2.ExplainRequest(texts=texts, model=model, num_words=unsigned(num_words, "num_words"))


def to_explanations(reply: texts_pb2.ExplainResponse) -> list[results.Explanation]:
    """Explanations in the order of the texts."""
    return [
        results.Explanation(
            tokens=_to_tokens(item.tokens),
            facets=tuple(_to_facet_words(facet) for facet in item.facets),
            token_stats=to_token_stats(item.token_stats),
        )
        for item in reply.explanations
    ]


def _to_tokens(tokens: Iterable[common_pb2.TokenAttention]) -> tuple[results.TokenAttention, ...]:
    return tuple(results.TokenAttention(t.text, t.start, t.end, t.attention, t.known) for t in tokens)


def _to_facet_words(facet: common_pb2.FacetWords) -> results.FacetWords:
    tokens = tuple(results.AttendedToken(item.token, item.cosine) for item in facet.tokens)
    return results.FacetWords(facet.facet, to_words(facet.words), tokens)


def to_token_stats(stats: common_pb2.TokenStats) -> results.TokenStats:
    """Token counts of one text."""
    return results.TokenStats(stats.num_tokens, stats.num_unknown_tokens, stats.truncated)


def to_words(words: Iterable[common_pb2.NearestWord]) -> tuple[results.NearestWord, ...]:
    """Words near a facet, in the order of the reply."""
    return tuple(results.NearestWord(item.word, item.cosine) for item in words)


def to_matches(matches: Iterable[common_pb2.FacetMatch]) -> tuple[results.FacetMatch, ...]:
    """Facets that met, in the order of the reply."""
    return tuple(
        results.FacetMatch(
            m.first_facet,
            m.second_facet,
            m.cosine,
            m.contribution,
            to_words(m.first_words),
            to_words(m.second_words),
        )
        for m in matches
    )


def score_request(
    pairs: Sequence[tuple[str, str]],
    *,
    model: str,
    method: Method,
    attention: bool,
    explain: bool,
    calibrated: bool,
    score_range: ScoreRange,
    num_words: int | None,
) -> texts_pb2.ScoreRequest:
    """Pairs of texts and how to score them."""
    return texts_pb2.ScoreRequest(
        pairs=[texts_pb2.TextPair(first=first, second=second) for first, second in pairs],
        model=model,
        method=_METHOD_PREFIX + method.upper(),
        attention=attention,
        explain=explain,
        calibrated=calibrated,
        calibrated_range=_RANGE_NUMBERS[score_range],
        num_words=unsigned(num_words, "num_words"),
    )


def to_scores(parts: Sequence[texts_pb2.ScoreResponse]) -> results.Scores:
    """The replies to the parts of a call as one result, in the order of the pairs."""
    pairs = tuple(
        results.PairScore(
            score=item.score,
            calibrated_score=item.calibrated_score if item.HasField("calibrated_score") else None,
            matches=to_matches(item.explanation.matches),
            first_tokens=_to_tokens(item.explanation.first_tokens),
            second_tokens=_to_tokens(item.explanation.second_tokens),
        )
        for part in parts
        for item in part.scores
    )
    method = texts_pb2.SimilarityMethod.Name(parts[-1].method)
    return results.Scores(
        pairs=pairs,
        method=method.removeprefix(_METHOD_PREFIX).lower(),
        attention=parts[-1].attention,
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def summarize_request(
    documents: Sequence[str | Sequence[str]],
    *,
    model: str,
    num_sentences: int | None,
    max_words: int | None,
    order: Order,
    query: str,
) -> texts_pb2.SummarizeRequest:
    """Documents, as raw texts or as lists of sentences, and how much of them to keep."""
    return texts_pb2.SummarizeRequest(
        documents=[_summary_document(document) for document in documents],
        model=model,
        num_sentences=unsigned(num_sentences, "num_sentences"),
        max_words=unsigned(max_words, "max_words"),
        order="SUMMARY_ORDER_" + order.upper(),
        query=query,
    )


def _summary_document(document: str | Sequence[str]) -> texts_pb2.SummaryDocument:
    if isinstance(document, str):
        return texts_pb2.SummaryDocument(text=document)
    sentences = texts_pb2.SentenceList(sentences=document)
    return texts_pb2.SummaryDocument(sentences=sentences)


def to_summaries(reply: texts_pb2.SummarizeResponse) -> list[results.Summary]:
    """Summaries in the order of the documents."""
    return [
        results.Summary(
            sentences=tuple(
                results.SummarySentence(s.text, s.sentence, s.start, s.end, s.selection, s.gain) for s in item.sentences
            ),
            num_sentences_in_document=item.num_sentences_in_document,
            num_words=item.num_words,
        )
        for item in reply.summaries
    ]


def list_models_request(page_token: str) -> models_pb2.ListModelsRequest:
    """One page of the models; an empty token is the first."""
    return models_pb2.ListModelsRequest(page_token=page_token)


def get_model_request(name: str) -> models_pb2.GetModelRequest:
    """One model by name; an empty name is the server's default."""
    return models_pb2.GetModelRequest(name=name)


def to_model(message: models_pb2.Model) -> results.Model:
    """What the server says about a model and its limits."""
    normalization = models_pb2.Normalization.Name(message.normalization)
    return results.Model(
        name=message.name,
        revision=message.revision,
        task=message.task,
        num_facets=message.num_facets,
        dim=message.dim,
        vocabulary_size=message.vocabulary_size,
        max_tokens=message.max_tokens,
        normalization=normalization.removeprefix("NORMALIZATION_").lower(),
        is_default=message.is_default,
        limits=_to_limits(message.limits),
    )


def _to_limits(message: models_pb2.Limits) -> results.Limits:
    return results.Limits(**{field.name: getattr(message, field.name) for field in fields(results.Limits)})


def to_model_version(message: common_pb2.ModelVersion) -> results.ModelVersion:
    """Which model answered."""
    return results.ModelVersion(message.name, message.revision)


def total_timings(parts: Iterable[common_pb2.Timings]) -> results.Timings:
    """Timings of the parts of a call, added up."""
    total = results.Timings()
    for part in parts:
        total += results.Timings(part.queue_ms, part.inference_ms, part.total_ms)
    return total


def health_request(service: str) -> wrappers_pb2.StringValue:
    """The service to ask about; an empty name is the whole server."""
    return wrappers_pb2.StringValue(value=service)


def to_health(message: wrappers_pb2.Int32Value) -> str:
    """Name of a ``grpc.health.v1`` serving status."""
    return _HEALTH.get(message.value, "UNKNOWN")
