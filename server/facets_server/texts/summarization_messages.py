"""Documents to summarize and their summaries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets_proto.v1 import texts_pb2

from facets.errors import ErrorPath, InvalidInputError
from facets.model.contract import ModelInfo
from facets.texts.summarization import Order, Summary
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.checks import check_count, check_texts
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.replies import timings_to_proto, version_to_proto

__all__ = ["SummarizingQuery", "summaries_to_proto", "summarizing_from_proto"]

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


def summaries_to_proto(
    summaries: Sequence[Summary], model: ModelInfo, call: CallContext
) -> texts_pb2.SummarizeResponse:
    """Summaries in the order of the documents."""
    return texts_pb2.SummarizeResponse(
        summaries=[_summary(summary) for summary in summaries],
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def _summary(summary: Summary) -> texts_pb2.Summary:
    return texts_pb2.Summary(
        sentences=[
            texts_pb2.SummarySentence(
                text=sentence.text,
                sentence=sentence.sentence,
                start=sentence.start,
                end=sentence.end,
                selection=sentence.selection,
                gain=sentence.gain,
            )
            for sentence in summary.sentences
        ],
        num_sentences_in_document=summary.num_sentences_in_document,
        num_words=summary.num_words,
    )
