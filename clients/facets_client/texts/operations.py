"""What the clients do with texts: embed, explain, score, summarize, suggest topics (see ``core/operations.py``)."""

from collections import deque
from collections.abc import Sequence

import numpy as np
from facets_proto.codec import from_message
from facets_proto.v1 import texts_pb2
from facets_proto.values import array_from_message

from facets_client.core.channel import rpc_of, status_error
from facets_client.core.commands import (
    Emit,
    HalfClose,
    Items,
    Operation,
    Send,
    StreamOperation,
    TakeInput,
    move_indices,
    open_stream,
    receive,
)
from facets_client.core.operations import RoomOperations, join, slices, text_bytes
from facets_client.core.types import DTypeName
from facets_client.core.values import FacetsArray, enum_name, unsigned
from facets_client.errors import FacetsClientError
from facets_client.texts.results import Embeddings, Explanation, PairScore, ScoreRange, Scores, Summary
from facets_client.texts.types import Difference, Method, Order, TextTopics

# Requests of an embedding stream that are under way at the same time.
_STREAM_WINDOW = 4
_EMBED_STREAM = rpc_of(texts_pb2.EmbedStreamRequest, texts_pb2.EmbedStreamResponse)
_RANGES: dict[str, texts_pb2.ScoreRange] = {
    "0..1": texts_pb2.SCORE_RANGE_ZERO_TO_ONE,
    "0..5": texts_pb2.SCORE_RANGE_ZERO_TO_FIVE,
}


class TextOperations(RoomOperations):
    """EmbeddingService, SimilarityService, SummarizationService, TopicService."""

    def embed(
        self,
        texts: Sequence[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
        spans: bool = False,
    ) -> Operation[Embeddings]:
        """Facet embeddings of texts.

        Args:
            texts: At least one.
            model: Name; empty: the server's default.
            normalize: Scale every facet to unit length.
            dtype: Precision of the reply; ``float16`` halves its size.
            spans: Also where each facet stands in its text; only for models of passages.

        Returns:
            Embeddings with an array ``[len(texts), num_facets, dim]``; row i belongs to texts[i].
        """
        proto_dtype = enum_name("DATA_TYPE", dtype, DTypeName, name="dtype")
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: texts_pb2.EmbedRequest(
                texts=texts[part], model=model, normalize=normalize, dtype=proto_dtype, include_spans=spans
            ),
            texts_pb2.EmbedResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
        )
        return join([from_message(part, Embeddings) for part in parts])

    def embed_vectors(self, texts: Sequence[str], *, model: str = "") -> Operation[FacetsArray]:
        """One vector a text, for what knows no facets: ``[len(texts), dim]``, of unit length for models of passages.

        Args:
            texts: At least one.
            model: Name; empty: the server's default.
        """
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: texts_pb2.EmbedRequest(texts=texts[part], model=model, vectors_only=True),
            texts_pb2.EmbedResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
        )
        return np.concatenate([array_from_message(part.vectors) for part in parts])

    def embed_stream(
        self,
        texts: Items[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
        batch_size: int = 64,
    ) -> StreamOperation[FacetsArray]:
        """Facet embeddings of any number of texts in bounded memory.

        The input is read a few batches ahead, by whoever takes the results.

        Args:
            texts: Any number.
            model: Name; empty: the server's default.
            normalize: Scale every facet to unit length.
            dtype: Precision of the reply; ``float16`` halves its size.
            batch_size: Texts of one request; the server's limit if that is smaller.

        Yields:
            One array ``[num_facets, dim]`` for each text, in order.
        """
        proto_dtype = enum_name("DATA_TYPE", dtype, DTypeName, name="dtype")
        limits = yield from self._requests.limits(model)
        batch_size = min(batch_size, limits.max_texts_per_request or batch_size)
        window = min(_STREAM_WINDOW, limits.max_stream_window or _STREAM_WINDOW)
        under_way: deque[int] = deque()  # place of the first text of each request
        num_taken = 0
        reply = None  # to the request that opened the stream
        more = True
        while more or under_way:
            while more and len(under_way) < window:
                batch: list[str] = yield TakeInput(texts, batch_size)
                more = bool(batch)
                sizes = [text_bytes(text) for text in batch]
                for part in slices(sizes, max_items=0, max_bytes=limits.max_message_bytes):
                    request = texts_pb2.EmbedRequest(
                        texts=batch[part], model=model, normalize=normalize, dtype=proto_dtype
                    )
                    offset = num_taken + part.start
                    message = texts_pb2.EmbedStreamRequest(sequence=offset, request=request)
                    if offset:
                        yield Send(message)
                    else:
                        reply = yield from open_stream(_EMBED_STREAM, message)
                    under_way.append(offset)
                num_taken += len(batch)
                if num_taken and not more:
                    yield HalfClose()
            if under_way:
                if reply is None:
                    reply = yield from receive()
                try:
                    if reply.WhichOneof("outcome") == "error":
                        raise status_error(reply.error)
                except FacetsClientError as error:
                    move_indices(error, "texts", under_way[0])
                    raise
                under_way.popleft()
                arrays, reply = array_from_message(reply.response.facet_embeddings), None
                for array in arrays:
                    yield Emit(array)

    def explain(
        self, texts: Sequence[str], *, model: str = "", num_words: int | None = None
    ) -> Operation[list[Explanation]]:
        """Tokens of each text with their attention, and each facet's nearest words.

        Args:
            texts: At least one.
            model: Name; empty: the server's default.
            num_words: Nearest words for each facet; None: the server's choice.
        """
        most_words = unsigned(num_words, "num_words")
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: texts_pb2.ExplainRequest(texts=texts[part], model=model, num_words=most_words),
            texts_pb2.ExplainResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
        )
        return [from_message(item, Explanation) for part in parts for item in part.explanations]

    def similarity(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        method: Method | None = None,
        attention: bool = False,
        model: str = "",
        explain: bool = False,
        calibrated: bool = False,
        score_range: ScoreRange = "0..1",
        num_words: int | None = None,
    ) -> Operation[Scores]:
        """How alike the two texts of each pair are; higher is more alike.

        Args:
            pairs: At least one pair of texts.
            method: How to score; the range of the score depends on it. None: what agrees best with people for the
                model; the reply says which that was.
            attention: Weigh words by their closest facet, too (word-based methods only).
            model: Name, of sentences or passages; empty: the first one that the method is for.
            explain: Say which facet met which.
            calibrated: Also return the score as people would give it.
            score_range: The scale of that, ``0..1`` or ``0..5``: from unrelated to equivalent.
            num_words: Nearest words for each facet of an explanation; None: the server's choice.
        """
        proto_method = enum_name("SIMILARITY_METHOD", method, Method, name="method") if method else None
        proto_range = _RANGES.get(score_range)
        if proto_range is None:
            raise ValueError(f"score_range must be one of {', '.join(_RANGES)}, got {score_range!r}")
        most_words = unsigned(num_words, "num_words")
        parts = yield from self._requests.call_parts(
            "pairs",
            [text_bytes(first) + text_bytes(second) for first, second in pairs],
            lambda part: texts_pb2.ScoreRequest(
                pairs=[texts_pb2.TextPair(first=first, second=second) for first, second in pairs[part]],
                model=model,
                method=proto_method,
                attention=attention,
                explain=explain,
                calibrated=calibrated,
                score_range=proto_range,
                num_words=most_words,
            ),
            texts_pb2.ScoreResponse,
            max_items=lambda limits: limits.max_pairs_per_request,
            model=model,
        )
        return join([from_message(part, Scores, pairs=tuple(map(_to_pair, part.scores))) for part in parts])

    def summarize(
        self,
        documents: Sequence[str | Sequence[str]],
        *,
        num_sentences: int | None = None,
        max_words: int | None = None,
        order: Order = "original",
        query: str = "",
        model: str = "",
    ) -> Operation[list[Summary]]:
        """Extractive summaries; never empty.

        Args:
            documents: Each a raw text, or the list of its sentences.
            num_sentences: Exactly this many (or all); the server takes 3 when nothing is asked for.
            max_words: At most this many words, instead.
            order: Of the document, or of the selection.
            query: What the reader looks for; empty: nothing in particular.
            model: Name; empty: the server's default.
        """
        if num_sentences is not None and max_words is not None:
            raise ValueError("num_sentences and max_words exclude each other, got both")
        most_sentences, most_words = unsigned(num_sentences, "num_sentences"), unsigned(max_words, "max_words")
        proto_order = enum_name("SUMMARY_ORDER", order, Order, name="order")
        messages = [_from_document(document) for document in documents]
        parts = yield from self._requests.call_parts(
            "documents",
            [message.ByteSize() for message in messages],
            lambda part: texts_pb2.SummarizeRequest(
                documents=messages[part],
                model=model,
                num_sentences=most_sentences,
                max_words=most_words,
                order=proto_order,
                query=query,
            ),
            texts_pb2.SummarizeResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
        )
        return [from_message(item, Summary) for part in parts for item in part.summaries]

    def suggest_topics(
        self,
        texts: Sequence[str],
        *,
        num_topics: int | None = None,
        num_words: int | None = None,
        keep: Sequence[str] = (),
        avoid: Sequence[str] = (),
        model: str = "",
    ) -> Operation[list[TextTopics]]:
        """Topics that may come next after each text, the likeliest first.

        Args:
            texts: What is written so far; of a long text the end is read.
            num_topics: At most so many a text; None: all that the model has.
            num_words: Words that stand for a topic; None: the server's choice.
            keep: What has been chosen to come, words and phrases.
            avoid: Topics about these words and phrases are left out.
            model: Name; empty: the server's default model of sentences.
        """
        most_topics, most_words = unsigned(num_topics, "num_topics"), unsigned(num_words, "num_words")
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: texts_pb2.SuggestTopicsRequest(
                texts=texts[part], model=model, num_topics=most_topics, num_words=most_words, keep=keep, avoid=avoid
            ),
            texts_pb2.SuggestTopicsResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
        )
        return [from_message(item, TextTopics) for part in parts for item in part.texts]


def _to_pair(item: texts_pb2.PairScore) -> PairScore:
    calibrated = item.calibrated_score if item.HasField("calibrated_score") else None
    return from_message(
        item.explanation,
        PairScore,
        score=item.score,
        calibrated_score=calibrated,
        label=texts_pb2.InferenceLabel.Name(item.label).removeprefix("INFERENCE_LABEL_").lower() if item.label else "",
        differences=tuple(from_message(one, Difference) for one in item.differences),
    )


def _from_document(document: str | Sequence[str]) -> texts_pb2.SummaryDocument:
    """A document to summarize, as a raw text or as a list of sentences."""
    if isinstance(document, str):
        return texts_pb2.SummaryDocument(text=document)
    return texts_pb2.SummaryDocument(sentences=texts_pb2.SentenceList(sentences=document))
