"""The asyncio client: the same methods as ``FacetsClient``, to be awaited."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any, TypeVar, cast

import grpc
import grpc.aio
import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from facets_client import filters
from facets_client.client import DEFAULT_TARGET, DEFAULT_TIMEOUT_S
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
)
from facets_client.core.operations import Operations
from facets_client.core.statuses import client_error
from facets_client.errors import DeadlineExceededError, FacetsClientError, UnavailableError
from facets_client.papers.aio import AsyncRecommendationCalls
from facets_client.relations.aio import AsyncRelationCalls
from facets_client.texts.convert import DTypeName, Method, Order, ScoreRange

__all__ = ["AsyncFacetsClient"]

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class AsyncFacetsClient(AsyncRecommendationCalls, AsyncRelationCalls):
    """Talks to a Facets server from one event loop; closed by ``async with`` or ``await close()``.

    Takes the same arguments and has the same methods, results and errors as ``FacetsClient``, which
    describes them. Methods that
    return iterators there return asynchronous iterators here, and take asynchronous iterables, too.

    Example:
        >>> from facets_client import AsyncFacetsClient
        >>> async def main() -> None:
        ...     async with AsyncFacetsClient("localhost:50051") as client:
        ...         print((await client.embed(["A dog."])).facet_embeddings.shape)
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
        self._opened: grpc.aio.Channel | None = None

    @property
    def target(self) -> str:
        """Where the server is."""
        return self._connection.target

    async def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        if self._opened:
            await self._opened.close()

    async def __aenter__(self) -> "AsyncFacetsClient":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # Texts

    async def embed(
        self,
        texts: Sequence[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
    ) -> results.Embeddings:
        """Facet embeddings of texts."""
        return await self._run(self._operations.embed(texts, model=model, normalize=normalize, dtype=dtype))

    def embed_stream(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        *,
        model: str = "",
        normalize: bool = False,
        dtype: DTypeName = "float32",
        batch_size: int = 64,
    ) -> AsyncIterator[results.FacetsArray]:
        """Facet embeddings of any number of texts in bounded memory."""
        check_sequence("texts", texts)
        operation = self._operations.embed_stream(model=model, normalize=normalize, dtype=dtype, batch_size=batch_size)
        return self._run_stream(operation, texts)

    async def explain(
        self, texts: Sequence[str], *, model: str = "", num_words: int | None = None
    ) -> list[results.Explanation]:
        """Tokens of each text with their attention, and each facet's nearest words."""
        return await self._run(self._operations.explain(texts, model=model, num_words=num_words))

    async def score(
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
        """How alike the two texts of each pair are; higher is more alike."""
        return await self._run(
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

    async def summarize(
        self,
        documents: Sequence[str | Sequence[str]],
        *,
        num_sentences: int | None = None,
        max_words: int | None = None,
        order: Order = "original",
        query: str = "",
        model: str = "",
    ) -> list[results.Summary]:
        """Extractive summaries; never empty."""
        return await self._run(
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

    async def create_collection(self, name: str, *, model: str = "") -> results.Collection:
        """Makes an empty collection; AlreadyExistsError when the name is taken."""
        return await self._run(self._operations.create_collection(name, model=model))

    async def get_collection(self, name: str) -> results.Collection:
        """One collection; NotFoundError when there is none of that name."""
        return await self._run(self._operations.get_collection(name))

    async def list_collections(self) -> list[results.Collection]:
        """All collections, in the order of their names."""
        return await self._run(self._operations.list_collections())

    async def delete_collection(self, name: str) -> results.WriteResult:
        """Deletes a collection with its documents."""
        return await self._run(self._operations.delete_collection(name))

    # Documents

    async def upsert(self, collection: str, documents: Sequence[results.Document]) -> results.WriteResult:
        """Stores documents, replacing those with the same id; durable on return."""
        return await self._run(self._operations.upsert(collection, documents))

    def upsert_stream(
        self,
        collection: str,
        documents: Iterable[results.Document] | AsyncIterable[results.Document],
        *,
        batch_size: int = 64,
        resume_token: str = "",
    ) -> AsyncIterator[results.StreamAck]:
        """Stores any number of documents in bounded memory; a bad one is rejected in its ack."""
        operation = self._operations.upsert_stream(collection, batch_size=batch_size, resume_token=resume_token)
        return self._run_stream(operation, documents)

    async def get_documents(
        self, collection: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int = 0
    ) -> results.FoundDocuments:
        """Documents by id, in the order of the ids, and the ids that are not there."""
        return await self._run(
            self._operations.get_documents(collection, ids, include_facets=include_facets, min_revision=min_revision)
        )

    async def delete_documents(
        self, collection: str, ids: Sequence[str] = (), *, where: filters.Filter | None = None
    ) -> results.WriteResult:
        """Deletes documents by id, or all that match a filter; ids that are not there are no error."""
        if where is None:
            return await self._run(self._operations.delete_documents(collection, ids))
        if ids:
            raise ValueError("ids and where exclude each other, got both")
        return await self._run(self._operations.delete_matching(collection, where))

    async def count_documents(
        self, collection: str, *, where: filters.Filter | None = None, min_revision: int = 0
    ) -> int:
        """Number of documents, of those that match the filter when there is one."""
        operation = self._operations.count_documents(collection, where=where, min_revision=min_revision)
        return await self._run(operation)

    def list_documents(
        self,
        collection: str,
        *,
        where: filters.Filter | None = None,
        page_size: int = 0,
        include_facets: bool = False,
        min_revision: int = 0,
    ) -> AsyncIterator[results.Document]:
        """All documents that match, in the order of their ids, fetched page by page."""
        operation = self._operations.list_documents(
            collection,
            where=where,
            page_size=page_size,
            include_facets=include_facets,
            min_revision=min_revision,
        )
        return self._run_stream(operation, ())

    async def search(
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
        """The best documents for each query; a document's score is its best facet's."""
        return await self._run(
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

    async def models(self) -> list[results.Model]:
        """All models, the default first."""
        return await self._run(self._operations.models())

    async def model(self, name: str = "") -> results.Model:
        """One model with its limits; the default without a name."""
        return await self._run(self._operations.model(name))

    async def health(self) -> dict[str, str]:
        """Status of the server (under the empty name) and of each service, e.g. ``SERVING``."""
        return await self._run(self._operations.health())

    # Running operations

    @property
    def _channel(self) -> grpc.aio.Channel:
        """The channel; made by the first call, because it belongs to the running event loop."""
        if self._opened is None:
            target, tls = self._connection.target, self._connection.tls
            options = channel_options(tls)
            if tls:
                self._opened = grpc.aio.secure_channel(target, credentials(tls), options)
            else:
                self._opened = grpc.aio.insecure_channel(target, options)
        return self._opened

    async def _run(self, operation: Operation[T]) -> T:
        """Runs a unary operation to its result."""
        try:
            command = next(operation)
            while True:
                try:
                    reply = await self._call(command)
                except FacetsClientError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(reply)
        except StopIteration as stop:
            return cast(T, stop.value)

    async def _run_stream(
        self, operation: StreamOperation[T], items: Iterable[Any] | AsyncIterable[Any]
    ) -> AsyncIterator[T]:
        """Runs a stream operation, handing on what it emits."""
        source = _async_iterator(items)
        stream: _Stream | None = None
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
                    answer = await self._call(command)
                elif isinstance(command, TakeInput):
                    answer = await _take(source, command.num_items)
                elif isinstance(command, Open):
                    stream = self._open_stream(command)
                else:
                    assert stream is not None
                    answer = await _step(stream, command, self._connection.timeout_s)
        finally:
            if stream:
                stream.cancel()

    async def _call(self, command: Call[Any, Any]) -> Message:
        """One unary call."""
        rpc = command.rpc
        method = self._channel.unary_unary(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        try:
            reply = await method(
                command.request,
                timeout=self._connection.timeout_s,
                metadata=self._connection.metadata,
            )
        except grpc.RpcError as error:
            raise client_error(error) from error
        return cast(Message, reply)

    def _open_stream(self, command: Open) -> "_Stream":
        rpc = command.rpc
        method = self._channel.stream_stream(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        return method(metadata=self._connection.metadata)


_Stream = grpc.aio.StreamStreamCall[Any, Any]


async def _step(stream: _Stream, command: Send | Receive | HalfClose, timeout_s: float) -> Message | None:
    """One step on a stream, within the timeout."""
    try:
        async with asyncio.timeout(timeout_s):
            if isinstance(command, Send):
                await stream.write(command.message)
            elif isinstance(command, HalfClose):
                await stream.done_writing()
            else:
                reply = await stream.read()
                return None if reply is grpc.aio.EOF else cast(Message, reply)
    except TimeoutError as error:
        raise DeadlineExceededError(
            grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer on the stream for {timeout_s:g} s"
        ) from error
    except asyncio.InvalidStateError:
        return None  # the stream has ended; the next Receive tells how
    except grpc.RpcError as error:
        if isinstance(command, Send) and _is_broken_write(error):
            raise UnavailableError(
                grpc.StatusCode.UNAVAILABLE, "the connection broke while a message was sent"
            ) from error
        raise client_error(error) from error
    return None


def _is_broken_write(error: grpc.RpcError) -> bool:
    """True when gRPC itself failed to send: a stream that ends meanwhile is told as a local INTERNAL.

    The server's own INTERNAL always carries a rich status in its trailing metadata.
    """
    assert isinstance(error, grpc.aio.AioRpcError)
    return error.code() is grpc.StatusCode.INTERNAL and not error.trailing_metadata()


async def _async_iterator(items: Iterable[ItemT] | AsyncIterable[ItemT]) -> AsyncIterator[ItemT]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def _take(iterator: AsyncIterator[ItemT], num_items: int) -> list[ItemT]:
    """At most ``num_items`` from an asynchronous iterator."""
    items: list[ItemT] = []
    while len(items) < num_items:
        try:
            items.append(await anext(iterator))
        except StopAsyncIteration:
            break
    return items
