"""Methods of the clients about texts: embed, explain, score, summarize, suggest topics."""

from collections.abc import AsyncIterator, Sequence

import numpy as np
from facets_proto.codec import from_message
from facets_proto.v1 import texts_pb2 as pb
from facets_proto.values import array_from_message

from facets_client.core.asynchronous import AnyIterable, batched
from facets_client.core.calls import AsyncCalls
from facets_client.core.requests import check_iterable, join, moved_indices, request_from, request_of
from facets_client.core.rows import FacetsArray, Results
from facets_client.generated.types import DTypeName, Embeddings, Explanation, Method, Scores, Summary, TextTopics


class AsyncTextCalls(AsyncCalls):
    """Methods of EmbeddingService, SimilarityService, SummarizationService and TopicService."""

    async def embed(
        self,
        texts: Sequence[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName | None = None,
        include_spans: bool = False,
    ) -> Embeddings:
        """Facet embeddings of texts, ``[len(texts), num_facets, dim]``; row i belongs to texts[i]."""
        request = request_from(pb.EmbedRequest, locals())
        parts = await self._call_parts(request, "texts", "max_texts_per_request")
        return join([from_message(part, Embeddings) for part in parts])

    async def embed_vectors(self, texts: Sequence[str], *, model: str = "") -> FacetsArray:
        """One vector per text, for tools without facets: ``[len(texts), dim]``, of unit length from passage models."""
        request = request_of(pb.EmbedRequest, texts=texts, model=model, vectors_only=True)
        parts = await self._call_parts(request, "texts", "max_texts_per_request")
        return np.concatenate([array_from_message(part.vectors) for part in parts])

    async def embed_stream(
        self,
        texts: AnyIterable[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName | None = None,
        batch_size: int = 64,
    ) -> AsyncIterator[FacetsArray]:
        """Facet embeddings ``[num_facets, dim]`` of any number of texts, in order; reads ``batch_size`` at a time."""
        check_iterable("texts", texts)
        num_done = 0
        async for batch in batched(texts, batch_size):
            with moved_indices("texts", num_done):
                embeddings = await self.embed(batch, model=model, normalize=normalize, dtype=dtype)
            for array in embeddings.facet_embeddings:
                yield array
            num_done += len(batch)

    async def explain(
        self, texts: Sequence[str], *, model: str = "", num_words: int | None = None
    ) -> Results[Explanation]:
        """Tokens of each text with their attention, and the nearest words of each facet."""
        request = request_from(pb.ExplainRequest, locals())
        parts = await self._call_parts(request, "texts", "max_texts_per_request")
        return Results(from_message(item, Explanation) for part in parts for item in part.explanations)

    async def similarity(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        method: Method | None = None,
        attention: bool = False,
        model: str = "",
        explain: bool = False,
        calibrated: bool = False,
        num_words: int | None = None,
    ) -> Scores:
        """Scores how similar the two texts of each pair are; higher is more similar."""
        request = request_from(pb.ScoreRequest, locals())
        parts = await self._call_parts(request, "pairs", "max_pairs_per_request")
        return join([from_message(part, Scores) for part in parts])

    async def summarize(
        self,
        documents: Sequence[str | Sequence[str]],
        *,
        num_sentences: int | None = None,
        max_words: int | None = None,
        query: str = "",
        model: str = "",
    ) -> Results[Summary]:
        """Extractive summaries; never empty: the best sentence, if none has at most ``max_words``."""
        if num_sentences is not None and max_words is not None:
            raise ValueError("num_sentences and max_words exclude each other, got both")
        check_iterable("documents", documents)
        messages = [
            request_of(pb.SummaryDocument, text=document)
            if isinstance(document, str)
            else pb.SummaryDocument(sentences=request_of(pb.SentenceList, sentences=document))
            for document in documents
        ]
        request = request_from(pb.SummarizeRequest, locals(), documents=messages)
        parts = await self._call_parts(request, "documents", "max_texts_per_request")
        return Results(from_message(item, Summary) for part in parts for item in part.summaries)

    async def suggest_topics(
        self,
        texts: Sequence[str],
        *,
        num_topics: int | None = None,
        num_words: int | None = None,
        keep: Sequence[str] = (),
        avoid: Sequence[str] = (),
        model: str = "",
    ) -> Results[TextTopics]:
        """Topics that may come next after each text, the likeliest first."""
        request = request_from(pb.SuggestTopicsRequest, locals())
        parts = await self._call_parts(request, "texts", "max_texts_per_request")
        return Results(from_message(item, TextTopics) for part in parts for item in part.texts)
