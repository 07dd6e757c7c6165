"""Requests about texts as checked queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets_proto.v1 import texts_pb2 as pb

from facets.errors import ErrorPath, InvalidInputError
from facets.texts.similarity import ScoreRange
from facets.texts.similarity_methods import SimilarityMethod
from facets.texts.summarization import Order
from facets_server.runtime.limits import LimitsConfig, check_count, check_texts
from facets_server.runtime.records import num_words_of, record_of


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringQuery:
    """A checked request.

    Attributes:
        method: None: the default of the model.
        score_range: Of the scores as people would give them, which are asked for when ``calibrated``.
    """

    pairs: tuple[tuple[str, str], ...]
    method: SimilarityMethod | None
    attention: bool
    explain: bool
    calibrated: bool
    num_words: int
    score_range: ScoreRange = ScoreRange.ZERO_TO_ONE


def scoring_of(request: pb.ScoreRequest, limits: LimitsConfig) -> ScoringQuery:
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
    return record_of(request, ScoringQuery, num_words=num_words_of(request, limits))


@dataclass(frozen=True, kw_only=True, slots=True)
class SummarizingQuery:
    """A checked request."""

    documents: tuple[str | tuple[str, ...], ...]
    num_sentences: int | None
    max_words: int | None
    order: Order = "original"
    query: str


def summarizing_of(request: pb.SummarizeRequest, limits: LimitsConfig) -> SummarizingQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.documents, ("documents",), limits.max_texts_per_request)
    for i, message in enumerate(request.documents):
        if message.WhichOneof("source") == "sentences":
            check_count(message.sentences.sentences, ("documents", i, "sentences"), limits.max_sentences_per_document)
    query = record_of(request, SummarizingQuery)
    check_texts(_raw(query.documents), max_bytes=limits.max_long_text_bytes)
    check_texts(_sentences(query.documents), max_bytes=limits.max_text_bytes)
    if query.query:
        check_texts([(("query",), query.query)], max_bytes=limits.max_text_bytes)
    for budget in ("num_sentences", "max_words"):
        if getattr(query, budget) == 0:
            raise InvalidInputError("must be >= 1, got 0", path=budget)
    return query


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicsQuery:
    """A checked request."""

    texts: tuple[str, ...]
    num_topics: int | None
    num_words: int
    keep: tuple[str, ...]
    avoid: tuple[str, ...]


_MOST_CONDITIONS = 16
_WORDS_OF_A_TOPIC = 3


def topics_of(request: pb.SuggestTopicsRequest, limits: LimitsConfig) -> TopicsQuery:
    """A request as a checked query.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.texts, ("texts",), limits.max_texts_per_request)
    check_texts(((("texts", i), text) for i, text in enumerate(request.texts)), max_bytes=limits.max_long_text_bytes)
    for name, phrases in (("keep", request.keep), ("avoid", request.avoid)):
        if len(phrases) > _MOST_CONDITIONS:
            raise InvalidInputError(f"must be at most {_MOST_CONDITIONS}, got {len(phrases)}", path=name)
        check_texts((((name, i), phrase) for i, phrase in enumerate(phrases)), max_bytes=limits.max_text_bytes)
    num_words = num_words_of(request, limits) if request.HasField("num_words") else _WORDS_OF_A_TOPIC
    return record_of(request, TopicsQuery, num_words=num_words)


def _raw(documents: Sequence[str | tuple[str, ...]]) -> Iterator[tuple[ErrorPath, str]]:
    for i, document in enumerate(documents):
        if isinstance(document, str):
            yield ("documents", i, "text"), document


def _sentences(documents: Sequence[str | tuple[str, ...]]) -> Iterator[tuple[ErrorPath, str]]:
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            for j, sentence in enumerate(document):
                yield ("documents", i, "sentences", "sentences", j), sentence
