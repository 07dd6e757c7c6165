"""What the clients do, written once: neither blocking nor asynchronous (see ``commands.py``).

How inputs are cut into requests that the server takes, and how replies are put together, is here;
``client.py`` runs the operations with a blocking channel, ``aio.py`` with an asyncio channel.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from facets_client import filters
from facets_client.core import results, rpc
from facets_client.core.batching import slices, text_bytes
from facets_client.core.commands import (
    Emit,
    HalfClose,
    Open,
    Operation,
    Send,
    StreamOperation,
    TakeInput,
    call,
    call_part,
    check_sequence,
    move_indices,
    receive,
)
from facets_client.documents import convert as documents_convert
from facets_client.errors import FacetsClientError, NotFoundError
from facets_client.texts import convert as texts_convert
from facets_client.texts.convert import DTypeName, Method, Order, ScoreRange

# Requests of an embedding stream that are under way at the same time.
STREAM_WINDOW = 4


class Operations:
    """The operations, and what they remember of the server: its limits, asked for once per model."""

    def __init__(self) -> None:
        self._limits: dict[str, results.Limits] = {}

    # Models and health

    def limits(self, model: str = "") -> Operation[results.Limits]:
        """Limits for requests to a model; the default model without a name."""
        if model not in self._limits:
            self._limits[model] = (yield from self.model(model)).limits
        return self._limits[model]

    def model(self, name: str) -> Operation[results.Model]:
        """One model."""
        reply = yield from call(rpc.GET_MODEL, texts_convert.get_model_request(name))
        return texts_convert.to_model(reply.model)

    def models(self) -> Operation[list[results.Model]]:
        """All models."""
        models: list[results.Model] = []
        token = ""
        while True:
            reply = yield from call(rpc.LIST_MODELS, texts_convert.list_models_request(token))
            models += [texts_convert.to_model(model) for model in reply.models]
            token = reply.next_page_token
            if not token:
                return models

    def health(self) -> Operation[dict[str, str]]:
        """Status of the server (under the empty name) and of each service."""
        statuses: dict[str, str] = {}
        for service in ("", *rpc.SERVICES):
            try:
                reply = yield from call(rpc.HEALTH_CHECK, texts_convert.health_request(service))
                statuses[service] = texts_convert.to_health(reply)
            except NotFoundError:
                statuses[service] = "SERVICE_UNKNOWN"
        return statuses

    # Texts

    def embed(
        self, texts: Sequence[str], *, model: str, normalize: bool, dtype: DTypeName
    ) -> Operation[results.Embeddings]:
        """Facet embeddings of texts."""
        parts = []
        for part in (yield from self._text_slices(texts, model)):
            request = texts_convert.embed_request(texts[part], model=model, normalize=normalize, dtype=dtype)
            parts.append((yield from call_part(rpc.EMBED, request, field="texts", offset=part.start)))
        return texts_convert.to_embeddings(parts)

    def explain(
        self, texts: Sequence[str], *, model: str, num_words: int | None
    ) -> Operation[list[results.Explanation]]:
        """Tokens with attention and facets with words."""
        explanations: list[results.Explanation] = []
        for part in (yield from self._text_slices(texts, model)):
            request = texts_convert.explain_request(texts[part], model=model, num_words=num_words)
            reply = yield from call_part(rpc.EXPLAIN, request, field="texts", offset=part.start)
            explanations += texts_convert.to_explanations(reply)
        return explanations

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        model: str,
        method: Method,
        attention: bool,
        explain: bool,
        calibrated: bool,
        score_range: ScoreRange,
        num_words: int | None,
    ) -> Operation[results.Scores]:
        """Scores of pairs of texts."""
        sizes = [text_bytes(first) + text_bytes(second) for first, second in pairs]
        parts = []
        for part in (yield from self.cut("pairs", sizes, model, lambda it: it.max_pairs_per_request)):
            request = texts_convert.score_request(
                pairs[part],
                model=model,
                method=method,
                attention=attention,
                explain=explain,
                calibrated=calibrated,
                score_range=score_range,
                num_words=num_words,
            )
            parts.append((yield from call_part(rpc.SCORE, request, field="pairs", offset=part.start)))
        return texts_convert.to_scores(parts)

    def summarize(
        self,
        documents: Sequence[str | Sequence[str]],
        *,
        model: str,
        num_sentences: int | None,
        max_words: int | None,
        order: Order,
        query: str,
    ) -> Operation[list[results.Summary]]:
        """Extractive summaries of documents."""
        check_sequence("documents", documents)
        if num_sentences is not None and max_words is not None:
            raise ValueError("num_sentences and max_words exclude each other, got both")
        sizes = [
            text_bytes(document)
            if isinstance(document, str)
            else sum(text_bytes(sentence) + 8 for sentence in document)
            for document in documents
        ]
        summaries: list[results.Summary] = []
        for part in (yield from self.cut("documents", sizes, model, lambda it: it.max_texts_per_request)):
            request = texts_convert.summarize_request(
                documents[part],
                model=model,
                num_sentences=num_sentences,
                max_words=max_words,
                order=order,
                query=query,
            )
            reply = yield from call_part(rpc.SUMMARIZE, request, field="documents", offset=part.start)
            summaries += texts_convert.to_summaries(reply)
        return summaries

    # Collections

    def create_collection(self, name: str, *, model: str) -> Operation[results.Collection]:
        """A new, empty collection."""
        request = documents_convert.create_collection_request(name, model=model)
        reply = yield from call(rpc.CREATE_COLLECTION, request)
        return documents_convert.to_collection(reply.collection)

    def get_collection(self, name: str) -> Operation[results.Collection]:
        """One collection."""
        reply = yield from call(rpc.GET_COLLECTION, documents_convert.get_collection_request(name))
        return documents_convert.to_collection(reply.collection)

    def list_collections(self) -> Operation[list[results.Collection]]:
        """All collections."""
        collections: list[results.Collection] = []
        token = ""
        while True:
            request = documents_convert.list_collections_request(token)
            reply = yield from call(rpc.LIST_COLLECTIONS, request)
            collections += [documents_convert.to_collection(item) for item in reply.collections]
            token = reply.next_page_token
            if not token:
                return collections

    def delete_collection(self, name: str) -> Operation[results.WriteResult]:
        """Deletes a collection with its documents."""
        reply = yield from call(rpc.DELETE_COLLECTION, documents_convert.delete_collection_request(name))
        return results.WriteResult(reply.num_documents, reply.index_revision)

    # Documents

    def upsert(self, collection: str, documents: Sequence[results.Document]) -> Operation[results.WriteResult]:
        """Stores documents, request by request."""
        messages = [documents_convert.from_document(document) for document in documents]
        sizes = [message.ByteSize() for message in messages]
        num_documents = revision = 0
        for part in (yield from self.cut("documents", sizes, "", lambda it: it.max_documents_per_upsert)):
            request = documents_convert.upsert_request(collection, messages[part])
            reply = yield from call_part(rpc.UPSERT, request, field="documents", offset=part.start)
            num_documents += reply.num_upserted
            revision = reply.index_revision
        return results.WriteResult(num_documents, revision)

    def get_documents(
        self, collection: str, ids: Sequence[str], *, include_facets: bool, min_revision: int
    ) -> Operation[results.FoundDocuments]:
        """Documents by id."""
        parts = []
        for part in (yield from self._id_slices(ids)):
            request = documents_convert.get_documents_request(
                collection, ids[part], include_facets=include_facets, min_revision=min_revision
            )
            parts.append((yield from call_part(rpc.GET_DOCUMENTS, request, field="ids", offset=part.start)))
        return documents_convert.to_found(parts)

    def delete_documents(self, collection: str, ids: Sequence[str]) -> Operation[results.WriteResult]:
        """Deletes documents by id."""
        num_documents = revision = 0
        for part in (yield from self._id_slices(ids)):
            request = documents_convert.delete_documents_request(collection, ids=ids[part])
            reply = yield from call_part(rpc.DELETE_DOCUMENTS, request, field="ids", offset=part.start)
            num_documents += reply.num_deleted
            revision = reply.index_revision
        return results.WriteResult(num_documents, revision)

    def delete_matching(self, collection: str, where: filters.Filter) -> Operation[results.WriteResult]:
        """Deletes the documents that match a filter."""
        request = documents_convert.delete_documents_request(collection, where=where)
        reply = yield from call(rpc.DELETE_DOCUMENTS, request)
        return results.WriteResult(reply.num_deleted, reply.index_revision)

    def count_documents(self, collection: str, *, where: filters.Filter | None, min_revision: int) -> Operation[int]:
        """Number of documents."""
        request = documents_convert.count_documents_request(collection, where=where, min_revision=min_revision)
        reply = yield from call(rpc.COUNT_DOCUMENTS, request)
        return int(reply.num_documents)

    def list_documents(
        self,
        collection: str,
        *,
        where: filters.Filter | None,
        page_size: int,
        include_facets: bool,
        min_revision: int,
    ) -> StreamOperation[results.Document]:
        """All documents, page by page."""
        token = ""
        while True:
            request = documents_convert.list_documents_request(
                collection,
                page_token=token,
                page_size=page_size,
                where=where,
                include_facets=include_facets,
                min_revision=min_revision,
            )
            reply = yield from call(rpc.LIST_DOCUMENTS, request)
            for document in reply.documents:
                yield Emit(documents_convert.to_document(document))
            token = reply.next_page_token
            if not token:
                return

    def search(
        self,
        collection: str,
        queries: Sequence[str | NDArray[np.floating]],
        *,
        top_k: int,
        where: filters.Filter | None,
        exact: bool,
        min_revision: int,
        evidence: bool,
        num_words: int | None,
        include_document: bool,
    ) -> Operation[results.SearchResults]:
        """The best documents for each query."""
        check_sequence("queries", queries)
        sizes = [text_bytes(query) if isinstance(query, str) else 4 * query.size for query in queries]
        parts = []

        def max_queries(limits: results.Limits) -> int:
            if not (evidence and limits.max_evidence_hits):
                return limits.max_queries_per_search
            with_evidence = max(1, limits.max_evidence_hits // max(1, top_k))
            return min(limits.max_queries_per_search or with_evidence, with_evidence)

        for part in (yield from self.cut("queries", sizes, "", max_queries)):
            request = documents_convert.search_request(
                collection,
                queries[part],
                top_k=top_k,
                where=where,
                exact=exact,
                min_revision=min_revision,
                evidence=evidence,
                num_words=num_words,
                include_document=include_document,
            )
            parts.append((yield from call_part(rpc.SEARCH, request, field="queries", offset=part.start)))
        return documents_convert.to_search_results(parts)

    # Streams

    def embed_stream(
        self, *, model: str, normalize: bool, dtype: DTypeName, batch_size: int
    ) -> StreamOperation[results.FacetsArray]:
        """Facet embeddings of the caller's input, one array for each text, in order."""
        limits = yield from self.limits(model)
        batch_size = min(batch_size, limits.max_texts_per_request or batch_size)
        window = min(STREAM_WINDOW, limits.max_stream_window or STREAM_WINDOW)
        under_way: deque[int] = deque()  # place of the first text of each request
        num_taken = 0
        yield Open(rpc.EMBED_STREAM)
        more = True
        while more or under_way:
            while more and len(under_way) < window:
                texts: list[str] = yield TakeInput(batch_size)
                more = bool(texts)
                sizes = [text_bytes(text) for text in texts]
                for part in slices(sizes, max_items=0, max_bytes=limits.max_message_bytes):
                    request = texts_convert.embed_request(texts[part], model=model, normalize=normalize, dtype=dtype)
                    offset = num_taken + part.start
                    yield Send(texts_convert.embed_stream_request(offset, request))
                    under_way.append(offset)
                num_taken += len(texts)
                if not more:
                    yield HalfClose()
            if under_way:
                reply = yield from receive()
                try:
                    arrays = texts_convert.to_stream_array(reply)
                except FacetsClientError as error:
                    move_indices(error, "texts", under_way[0])
                    raise
                under_way.popleft()
                for array in arrays:
                    yield Emit(array)

    def upsert_stream(
        self, collection: str, *, batch_size: int, resume_token: str
    ) -> StreamOperation[results.StreamAck]:
        """Stores the caller's input batch by batch; one acknowledgement for each batch, in order."""
        limits = yield from self.limits()
        batch_size = min(batch_size, limits.max_documents_per_upsert or batch_size)
        yield Open(rpc.UPSERT_STREAM)
        yield Send(documents_convert.stream_open(collection, resume_token))
        opened = (yield from receive()).opened
        window = opened.max_unacked_batches or 1
        sequence = opened.last_acked_sequence
        num_under_way = 0
        more = True
        while more or num_under_way:
            while more and num_under_way < window:
                documents: list[results.Document] = yield TakeInput(batch_size)
                more = bool(documents)
                messages = [documents_convert.from_document(document) for document in documents]
                sizes = [message.ByteSize() for message in messages]
                for part in slices(sizes, max_items=0, max_bytes=limits.max_message_bytes):
                    sequence += 1
                    yield Send(documents_convert.stream_batch(sequence, messages[part]))
                    num_under_way += 1
                if not more:
                    yield HalfClose()
            if num_under_way:
                reply = yield from receive()
                num_under_way -= 1
                yield Emit(documents_convert.to_ack(reply.ack, opened.resume_token))

    # Cutting

    def _text_slices(self, texts: Sequence[str], model: str) -> Operation[list[slice]]:
        check_sequence("texts", texts)
        sizes = [text_bytes(text) for text in texts]
        return (yield from self.cut("texts", sizes, model, lambda it: it.max_texts_per_request))

    def _id_slices(self, ids: Sequence[str]) -> Operation[list[slice]]:
        check_sequence("ids", ids)
        sizes = [text_bytes(document_id) for document_id in ids]
        return (yield from self.cut("ids", sizes, "", lambda it: it.max_documents_per_upsert))

    def cut(
        self,
        name: str,
        sizes: Sequence[int],
        model: str,
        max_items: Callable[[results.Limits], int],
        *,
        repeated_bytes: int = 0,
    ) -> Operation[list[slice]]:
        """How to cut items into requests; one item needs no limits, so none are asked for.

        Args:
            name: Of the items, for messages.
            sizes: Bytes of each item.
            model: Whose limits hold.
            max_items: Most items of a request, by the limits.
            repeated_bytes: What every request holds besides its items.
        """
        if not sizes:
            raise ValueError(f"{name} is empty, expected at least one")
        if len(sizes) == 1:
            return [slice(0, 1)]
        limits = yield from self.limits(model)
        max_bytes = limits.max_message_bytes and max(1, limits.max_message_bytes - repeated_bytes)
        return list(slices(sizes, max_items=max_items(limits), max_bytes=max_bytes))
