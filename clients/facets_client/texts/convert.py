"""Choices and replies about texts: embeddings, explanations, scores, summaries."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from facets_proto.v1 import common_pb2, texts_pb2
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from facets_client.core.arrays import to_array
from facets_client.core.channel import status_error
from facets_client.core.convert import to_matches, to_model_version, to_span, to_words, total_timings
from facets_client.core.results import FacetsArray
from facets_client.texts import results
from facets_client.texts.similarity_method import Method

DTypeName = Literal["float32", "float16"]
Order = Literal["original", "selection"]
ScoreRange = Literal["0..1", "0..5"]

_RANGE_NUMBERS: dict[str, texts_pb2.CalibratedRange] = {
    "0..1": texts_pb2.CALIBRATED_RANGE_ZERO_TO_ONE,
    "0..5": texts_pb2.CALIBRATED_RANGE_ZERO_TO_FIVE,
}
_METHOD_PREFIX = "SIMILARITY_METHOD_"


def dtype_value(dtype: DTypeName) -> str:
    """Name of a type of arrays in the proto; ValueError when there is none."""
    return _value(common_pb2.DataType, "DATA_TYPE_", dtype)


def method_value(method: Method | None) -> str:
    """Name of a method in the proto, None is the model's; ValueError when there is none."""
    if method is None:
        return f"{_METHOD_PREFIX}UNSPECIFIED"
    return _value(texts_pb2.SimilarityMethod, _METHOD_PREFIX, method)


def order_value(order: Order) -> str:
    """Name of an order of sentences in the proto; ValueError when there is none."""
    return _value(texts_pb2.SummaryOrder, "SUMMARY_ORDER_", order)


def range_value(score_range: ScoreRange) -> texts_pb2.CalibratedRange:
    """Number of a scale in the proto; ValueError when there is none."""
    if score_range not in _RANGE_NUMBERS:
        raise ValueError(f"expected one of {', '.join(_RANGE_NUMBERS)}, got {score_range!r}")
    return _RANGE_NUMBERS[score_range]


def _value(enum: EnumTypeWrapper, prefix: str, name: str) -> str:
    known = [key.removeprefix(prefix).lower() for key in enum.keys()[1:]]  # the first is UNSPECIFIED
    if name not in known:
        raise ValueError(f"expected one of {', '.join(known)}, got {name!r}")
    return prefix + name.upper()


def to_embeddings(parts: Sequence[texts_pb2.EmbedResponse]) -> results.Embeddings:
    """The replies to the parts of a call as one result, in the order of the texts."""
    arrays = [to_array(part.facet_embeddings) for part in parts]
    return results.Embeddings(
        facet_embeddings=arrays[0] if len(arrays) == 1 else np.concatenate(arrays),
        token_stats=tuple(to_token_stats(stats) for part in parts for stats in part.token_stats),
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
        facet_spans=tuple(tuple(map(to_span, entry.spans)) for part in parts for entry in part.facet_spans),
    )


def to_stream_array(reply: texts_pb2.EmbedStreamResponse) -> FacetsArray:
    """Embeddings of one request of a stream, ``[texts, num_facets, dim]``.

    Raises:
        FacetsClientError: What the server said instead.
    """
    if reply.WhichOneof("outcome") == "error":
        raise status_error(reply.error)
    return to_array(reply.response.facet_embeddings)


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
    return tuple(
        results.TokenAttention(t.text, t.start, t.end, t.attention, t.known, t.weight if t.HasField("weight") else None)
        for t in tokens
    )


def _to_facet_words(facet: common_pb2.FacetWords) -> results.FacetWords:
    tokens = tuple(results.AttendedToken(item.token, item.cosine) for item in facet.tokens)
    return results.FacetWords(facet.facet, to_words(facet.words), tokens, to_span(facet.span))


def to_token_stats(stats: common_pb2.TokenStats) -> results.TokenStats:
    """What was read of a text."""
    return results.TokenStats(stats.num_tokens, stats.num_unknown_tokens, stats.truncated, stats.num_tokens_in_text)


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


def from_document(document: str | Sequence[str]) -> texts_pb2.SummaryDocument:
    """A document to summarize, as a raw text or as a list of sentences."""
    if isinstance(document, str):
        return texts_pb2.SummaryDocument(text=document)
    return texts_pb2.SummaryDocument(sentences=texts_pb2.SentenceList(sentences=document))


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
