"""Requests about texts as checked queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets_proto.v1 import texts_pb2

from facets.errors import ErrorPath, InvalidInputError
from facets.texts.score_curves import ScoreRange
from facets.texts.similarity_methods import SimilarityMethod
from facets.texts.summarization import Order
from facets_server.runtime.limits import LimitsConfig, check_count, check_texts
from facets_server.runtime.replies import (
    num_words_of,
)

__all__ = ["ScoringQuery", "SummarizingQuery", "scoring_from_proto", "summarizing_from_proto"]

# Methods have the same names in the library and in the proto.
_PREFIX = "SIMILARITY_METHOD_"


_METHODS: dict[int, SimilarityMethod | None] = {
    texts_pb2.SIMILARITY_METHOD_UNSPECIFIED: None,
    **{texts_pb2.SimilarityMethod.Value(_PREFIX + method.name): method for method in SimilarityMethod},
}


_RANGES = {
    texts_pb2.SCORE_RANGE_UNSPECIFIED: ScoreRange.ZERO_TO_ONE,
    texts_pb2.SCORE_RANGE_ZERO_TO_ONE: ScoreRange.ZERO_TO_ONE,
    texts_pb2.SCORE_RANGE_ZERO_TO_FIVE: ScoreRange.ZERO_TO_FIVE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringQuery:
    """A checked request.

    Attributes:
        method: None: the default of the model.
    """

    pairs: tuple[tuple[str, str], ...]
    method: SimilarityMethod | None
    attention: bool
    explain: bool
    num_words: int
    score_range: ScoreRange | None


def scoring_from_proto(request: texts_pb2.ScoreRequest, limits: LimitsConfig) -> ScoringQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.pairs, ("pairs",), limits.max_pairs_per_request)
    check_texts(
        (
            (("pairs", i, side), getattr(pair, side))
            for i, pair in enumerate(request.pairs)
            for side in ("first", "second")
        ),
        max_bytes=limits.max_text_bytes,
    )
    if request.method not in _METHODS:
        raise InvalidInputError(f"must be a known one, got number {request.method}", path="method")
    if request.score_range not in _RANGES:
        raise InvalidInputError(f"must be a known one, got number {request.score_range}", path="score_range")
    return ScoringQuery(
        pairs=tuple((pair.first, pair.second) for pair in request.pairs),
        method=_METHODS[request.method],
        attention=request.attention,
        explain=request.explain,
        num_words=num_words_of(request, limits),
        score_range=_RANGES[request.score_range] if request.calibrated else None,
    )


_ORDERS: dict[int, Order] = {
    texts_pb2.SUMMARY_ORDER_UNSPECIFIED: "original",
    texts_pb2.SUMMARY_ORDER_ORIGINAL: "original",
    texts_pb2.SUMMARY_ORDER_SELECTION: "selection",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SummarizingQuery:
    """A checked request."""

    documents: tuple[str | tuple[str, ...], ...]
    num_sentences: int | None
    max_words: int | None
    order: Order
    query: str


def summarizing_from_proto(request: texts_pb2.SummarizeRequest, limits: LimitsConfig) -> SummarizingQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.documents, ("documents",), limits.max_texts_per_request)
    documents = tuple(_document(message, ("documents", i), limits) for i, message in enumerate(request.documents))
    check_texts(_raw(documents), max_bytes=limits.max_document_bytes)
    check_texts(_sentences(documents), max_bytes=limits.max_text_bytes)
    if request.query:
        check_texts([(("query",), request.query)], max_bytes=limits.max_text_bytes)
    if request.order not in _ORDERS:
        raise InvalidInputError(f"must be a known one, got number {request.order}", path="order")
    budget = request.WhichOneof("budget")
    if budget and getattr(request, budget) < 1:
        raise InvalidInputError("must be >= 1, got 0", path=budget)
    return SummarizingQuery(
        documents=documents,
        num_sentences=request.num_sentences if budget == "num_sentences" else None,
        max_words=request.max_words if budget == "max_words" else None,
        order=_ORDERS[request.order],
        query=request.query,
    )


def _document(message: texts_pb2.SummaryDocument, path: ErrorPath, limits: LimitsConfig) -> str | tuple[str, ...]:
    kind = message.WhichOneof("source")
    if kind is None:
        raise InvalidInputError("has no text and no sentences, expected one of them", path=path)
    if kind == "text":
        return message.text
    check_count(message.sentences.sentences, (*path, "sentences"), limits.max_sentences_per_document)
    return tuple(message.sentences.sentences)


def _raw(documents: Sequence[str | tuple[str, ...]]) -> Iterator[tuple[ErrorPath, str]]:
    for i, document in enumerate(documents):
        if isinstance(document, str):
            yield ("documents", i, "text"), document


def _sentences(documents: Sequence[str | tuple[str, ...]]) -> Iterator[tuple[ErrorPath, str]]:
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            for j, sentence in enumerate(document):
                yield ("documents", i, "sentences", "sentences", j), sentence
