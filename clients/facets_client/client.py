"""The two clients: blocking, and for asyncio with the same methods."""

import facets_client.texts.results  # noqa: F401  # how results are shown
from facets_client.core.model_calls import AsyncModelCalls
from facets_client.documents.calls import AsyncDocumentCalls
from facets_client.generated.document_calls import DocumentCalls
from facets_client.generated.model_calls import ModelCalls
from facets_client.generated.paper_calls import PaperCalls
from facets_client.generated.relation_calls import RelationCalls
from facets_client.generated.text_calls import TextCalls
from facets_client.papers.calls import AsyncPaperCalls
from facets_client.relations.calls import AsyncRelationCalls
from facets_client.texts.calls import AsyncTextCalls


class FacetsClient(DocumentCalls, PaperCalls, RelationCalls, TextCalls, ModelCalls):
    """Client of a Facets server; safe to share between threads, closed by ``with`` or ``close()``.

    Every request has a timeout. UNAVAILABLE and RESOURCE_EXHAUSTED are retried with growing pauses, at most five
    attempts and never beyond the timeout; for a stream, only opening it is retried. Inputs of any length are split
    into requests within the server's limits; results keep the input order. The first call opens the connection.

    Args:
        target: ``HOST:PORT`` (default port 50051), or another name that gRPC resolves.
        timeout_s: Seconds for one request; a long input takes several. None: 30, and 120 for calls that store or
            read much (``SLOW_RPCS`` of ``core/channel.py``).
        api_key: API key, for servers that require one.
        tls: True for TLS with gRPC's own trusted roots, or certificates.
        metadata: Further gRPC metadata of every call, as names in lower case and values.

    Raises:
        FacetsClientError: From every method, a subclass for each status worth catching.
        ValueError, TypeError: For arguments that cannot work, before anything is sent.

    Example:
        >>> from facets_client import FacetsClient
        >>> with FacetsClient("localhost:50051") as client:  # doctest: +SKIP
        ...     client.embed(["A dog chased the mailman."]).facet_embeddings.shape
        (1, 10, 256)
    """


class AsyncFacetsClient(AsyncDocumentCalls, AsyncPaperCalls, AsyncRelationCalls, AsyncTextCalls, AsyncModelCalls):
    """Client of a Facets server for one event loop; closed by ``async with`` or ``await close()``.

    It has the arguments, methods, results and errors of ``FacetsClient``. Methods that return iterators there return
    asynchronous iterators here, and also accept asynchronous iterables.

    Example:
        >>> from facets_client import AsyncFacetsClient
        >>> async def main() -> None:
        ...     async with AsyncFacetsClient("localhost:50051") as client:
        ...         print((await client.embed(["A dog."])).facet_embeddings.shape)
    """
