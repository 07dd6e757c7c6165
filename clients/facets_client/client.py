"""The blocking client."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import grpc
import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from facets_client import filters
from facets_client.core import results
from facets_client.core.channel import Connection, TlsConfig, channel_options, credentials
from facets_client.core.commands import (
    Call,
    Emit,
    HalfClose,
    Open,
    Operation,
    Receive,
    Send,
    StreamOperation,
    TakeInput,
    check_sequence,
    take,
)
from facets_client.core.operations import Operations
from facets_client.core.statuses import client_error
from facets_client.core.streams import BlockingStream
from facets_client.documents.upsert_session import UpsertSession
from facets_client.errors import FacetsClientError
from facets_client.papers.client import RecommendationCalls
from facets_client.relations.client import RelationCalls
from facets_client.texts.convert import DTypeName, Method, Order, ScoreRange

__all__ = ["DEFAULT_TARGET", "DEFAULT_TIMEOUT_S", "FacetsClient"]

T = TypeVar("T")
DEFAULT_TARGET = "localhost:50051"
DEFAULT_TIMEOUT_S = 30.0


class FacetsClient(RecommendationCalls, RelationCalls):
    """Talks to a Facets server; safe to share between threads, closed by ``with`` or ``close()``.

    Every request has a timeout. UNAVAILABLE and RESOURCE_EXHAUSTED are tried again with growing pauses, at
    most five times and never beyond the timeout. Inputs of any length are cut into requests within the
    server's limits; results come in the order of the inputs. The first call opens the connection.

    Args:
        target: ``host:port`` or any other gRPC name.
        timeout_s: Seconds for one request; a long input takes several.
        api_key: Key for servers that ask for one.
        tls: True for TLS with gRPC's own trusted roots, or certificates of your own.

    Raises:
        FacetsClientError: From every method, a subclass for each status worth catching.
        ValueError, TypeError: For arguments that cannot work, before anything is sent.

    Example:
        >>> from facets_client import FacetsClient
        >>> with FacetsClient("localhost:50051") as client:  # doctest: +SKIP
        ...     client.embed(["A dog chased the mailman."]).facet_embeddings.shape
        (1, 10, 256)
    """

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        tls: bool | TlsConfig = False,
    ) -> None:
        self._connection = Connection.of(target, timeout_s=timeout_s, api_key=api_key, tls=tls)
        self._operations = Operations()
        options = channel_options(self._connection.tls)
        if self._connection.tls:
            self._channel = grpc.secure_channel(target, credentials(self._connection.tls), options)
        else:
            self._channel = grpc.insecure_channel(target, options)

    @property
    def target(self) -> str:
        """Where the server is."""
        return self._connection.target

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        self._channel.close()

    def __enter__(self) -> "FacetsClient":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # Texts

    def embed(
        self,
        texts: Sequence[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
    ) -> results.Embeddings:
        """Facet embeddings of texts.

        Args:
            texts: At least one.
            model: Name; empty: the server's default.
            normalize: Scale every facet to unit length.
            dtype: Precision of the reply; ``float16`` halves its size.

        Returns:
            Embeddings with an array ``[len(texts), num_facets, dim]``; row i belongs to texts[i].
        """
        return self._run(self._operations.embed(texts, model=model, normalize=normalize, dtype=dtype))

    def embed_stream(
        self,
        texts: Iterable[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
        batch_size: int = 64,
    ) -> Iterator[results.FacetsArray]:
        """Facet embeddings of any number of texts in bounded memory.

        The input is read a few batches ahead, in the caller's thread.

        Yields:
            One array ``[num_facets, dim]`` for each text, in order.
        """
        check_sequence("texts", texts)
        operation = self._operations.embed_stream(model=model, normalize=normalize, dtype=dtype, batch_size=batch_size)
        return self._run_stream(operation, texts)

    def explain(
        self, texts: Sequence[str], *, model: str = "", num_words: int | None = None
    ) -> list[results.Explanation]:
        """Tokens of each text with their attention, and each facet's nearest words.

        Args:
            texts: At least one.
            model: Name; empty: the server's default.
            num_words: Nearest words for each facet; None: the server's choice.
        """
        return self._run(self._operations.explain(texts, model=model, num_words=num_words))

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        method: Method = "codebook",
        attention: bool = False,
        model: str = "",
        explain: bool = False,
        calibrated: bool = False,
        score_range: ScoreRange = "0..1",
        num_words: int | None = None,
    ) -> results.Scores:
        """How alike the two texts of each pair are; higher is more alike.

        Args:
            pairs: At least one pair of texts.
            method: How to score; the range of the score depends on it.
            attention: Weigh words by their attention (word-based methods only).
            model: Name; empty: the server's default.
            explain: Say which facet met which.
            calibrated: Also tell the score as people would give it.
            score_range: The scale of that, ``0..1`` or ``0..5``: from unrelated to equivalent.
            num_words: Nearest words for each facet of an explanation; None: the server's choice.
        """
        return self._run(
            self._operations.score(
                pairs,
                model=model,
                method=method,
                attention=attention,
                explain=explain,
                calibrated=calibrated,
                score_range=score_range,
                num_words=num_words,
            )
        )

    def summarize(
        self,
        documents: Sequence[str | Sequence[str]],
        *,
        num_sentences: int | None = None,
        max_words: int | None = None,
        order: Order = "original",
        query: str = "",
        model: str = "",
    ) -> list[results.Summary]:
        """Extractive summaries; never empty.

        Args:
            documents: Each a raw text, or the list of its sentences.
            num_sentences: Exactly this many (or all); the server takes 3 when nothing is asked for.
            max_words: At most this many words, instead.
            order: Of the document, or of the selection.
            query: What the reader looks for; empty: nothing in particular.
            model: Name; empty: the server's default.
        """
        return self._run(
            self._operations.summarize(
                documents,
                model=model,
                num_sentences=num_sentences,
                max_words=max_words,
                order=order,
                query=query,
            )
        )

    # Collections

    def create_collection(self, name: str, *, model: str = "") -> results.Collection:
        """Makes an empty collection; AlreadyExistsError when the name is taken."""
        return self._run(self._operations.create_collection(name, model=model))

    def get_collection(self, name: str) -> results.Collection:
        """One collection; NotFoundError when there is none of that name."""
        return self._run(self._operations.get_collection(name))

    def list_collections(self) -> list[results.Collection]:
        """All collections, in the order of their names."""
        return self._run(self._operations.list_collections())

    def delete_collection(self, name: str) -> results.WriteResult:
        """Deletes a collection with its documents."""
        return self._run(self._operations.delete_collection(name))

    # Documents

    def upsert(self, collection: str, documents: Sequence[results.Document]) -> results.WriteResult:
        """Stores documents, replacing those with the same id; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.
        """
        return self._run(self._operations.upsert(collection, documents))

    def upsert_stream(
        self,
        collection: str,
        documents: Iterable[results.Document],
        *,
        batch_size: int = 64,
        resume_token: str = "",
    ) -> Iterator[results.StreamAck]:
        """Stores any number of documents in bounded memory; a bad one is rejected in its ack.

        Args:
            collection: Name.
            documents: Read a window of batches ahead, in the caller's thread.
            batch_size: Documents of one batch; each batch has one ack.
            resume_token: Of an earlier ack, to go on after a broken connection with the documents that were
                not acknowledged.

        Yields:
            One ack for each batch, in order, once the batch is durable.
        """
        operation = self._operations.upsert_stream(collection, batch_size=batch_size, resume_token=resume_token)
        return self._run_stream(operation, documents)

    def open_upsert_session(self, collection: str, *, resume_token: str = "") -> UpsertSession:
        """Opens an upsert stream whose batches and acks the caller handles one by one."""
        return UpsertSession(
            lambda rpc: BlockingStream(self._channel, rpc, self._connection),
            collection,
            resume_token=resume_token,
        )

    def get_documents(
        self, collection: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int = 0
    ) -> results.FoundDocuments:
        """Documents by id, in the order of the ids, and the ids that are not there."""
        return self._run(
            self._operations.get_documents(collection, ids, include_facets=include_facets, min_revision=min_revision)
        )

    def delete_documents(
        self, collection: str, ids: Sequence[str] = (), *, where: filters.Filter | None = None
    ) -> results.WriteResult:
        """Deletes documents by id, or all that match a filter; ids that are not there are no error."""
        if where is None:
            return self._run(self._operations.delete_documents(collection, ids))
        if ids:
            raise ValueError("ids and where exclude each other, got both")
        return self._run(self._operations.delete_matching(collection, where))

    def count_documents(self, collection: str, *, where: filters.Filter | None = None, min_revision: int = 0) -> int:
        """Number of documents, of those that match the filter when there is one."""
        operation = self._operations.count_documents(collection, where=where, min_revision=min_revision)
        return self._run(operation)

    def list_documents(
        self,
        collection: str,
        *,
        where: filters.Filter | None = None,
        page_size: int = 0,
        include_facets: bool = False,
        min_revision: int = 0,
    ) -> Iterator[results.Document]:
        """All documents that match, in the order of their ids, fetched page by page.

        Args:
            collection: Name.
            where: Condition on the payload; None: all documents.
            page_size: Documents fetched at a time; 0: the server's choice.
            include_facets: Also fetch the facet embeddings.
            min_revision: Read only this revision or a later one; 0: any.
        """
        operation = self._operations.list_documents(
            collection,
            where=where,
            page_size=page_size,
            include_facets=include_facets,
            min_revision=min_revision,
        )
        return self._run_stream(operation, ())

    def search(
        self,
        collection: str,
        queries: Sequence[str | NDArray[np.floating]],
        *,
        top_k: int = 10,
        where: filters.Filter | None = None,
        exact: bool = False,
        min_revision: int = 0,
        evidence: bool = False,
        num_words: int | None = None,
        include_document: bool = True,
    ) -> results.SearchResults:
        """The best documents for each query; a document's score is its best facet's.

        Args:
            collection: Name.
            queries: Texts, or facet embeddings ``[facets, dim]`` of the collection's model.
            top_k: Documents for each query.
            where: Condition on the payload; None: all documents.
            exact: Compare with every document, never an approximate index.
            min_revision: Read only this revision or a later one (read your writes); 0: any.
            evidence: Say which facet met which.
            num_words: Nearest words for each facet of the evidence; None: the server's choice.
            include_document: Also fetch text and payload.
        """
        return self._run(
            self._operations.search(
                collection,
                queries,
                top_k=top_k,
                where=where,
                exact=exact,
                min_revision=min_revision,
                evidence=evidence,
                num_words=num_words,
                include_document=include_document,
            )
        )

    # Models and health

    def models(self) -> list[results.Model]:
        """All models, the default first."""
        return self._run(self._operations.models())

    def model(self, name: str = "") -> results.Model:
        """One model with its limits; the default without a name."""
        return self._run(self._operations.model(name))

    def health(self) -> dict[str, str]:
        """Status of the server (under the empty name) and of each service, e.g. ``SERVING``."""
        return self._run(self._operations.health())

    # Running operations

    def _run(self, operation: Operation[T]) -> T:
        """Runs a unary operation to its result."""
        try:
            command = next(operation)
            while True:
                try:
                    reply = self._call(command)
                except FacetsClientError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    def _run_stream(self, operation: StreamOperation[T], items: Iterable[Any]) -> Iterator[T]:
        """Runs a stream operation, handing on what it emits."""
        source = iter(items)
        stream: BlockingStream | None = None
        answer: object = None
        try:
            while True:
                try:
                    command = operation.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(command, Emit):
                    yield command.item
                elif isinstance(command, Call):
                    answer = self._call(command)
                elif isinstance(command, TakeInput):
                    answer = take(source, command.num_items)
                elif isinstance(command, Open):
                    stream = BlockingStream(self._channel, command.rpc, self._connection)
                else:
                    assert stream is not None
                    answer = _step(stream, command)
        finally:
            if stream:
                stream.close()

    def _call(self, command: Call[Any, Any]) -> Message:
        """One unary call."""
        rpc = command.rpc
        method = self._channel.unary_unary(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        try:
            reply = method(
                command.request,
                timeout=self._connection.timeout_s,
                metadata=self._connection.metadata,
            )
        except grpc.RpcError as error:
            raise client_error(error) from error
        return cast(Message, reply)


def _step(stream: BlockingStream, command: Send | Receive | HalfClose) -> Message | None:
    if isinstance(command, Send):
        stream.send(command.message)
    elif isinstance(command, Receive):
        return stream.receive()
    else:
        stream.half_close()
    return None
