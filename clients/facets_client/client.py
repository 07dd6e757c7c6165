"""The two clients: blocking, and the same methods to be awaited."""

from typing import Self

from facets_client.core.types import ModelVersion
from facets_client.documents.streams import UpsertSession
from facets_client.methods import AsyncMethods, BlockingMethods


class FacetsClient(BlockingMethods):
    """Talks to a Facets server; safe to share between threads, closed by ``with`` or ``close()``.

    Every request has a timeout. UNAVAILABLE and RESOURCE_EXHAUSTED are tried again with growing pauses, at
    most five times and never beyond the timeout; of a stream its opening alone. Inputs of any length are cut
    into requests within the server's limits; results come in the order of the inputs. The first call opens
    the connection.

    Args:
        target: ``HOST:PORT`` (50051 when there is no port), or another name that gRPC resolves.
        timeout_s: Seconds for one request; a long input takes several. None: 30, and 120 for calls that store or
            read much (``core/channel.py`` lists them).
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def open_upsert_session(
        self, collection: str, *, resume_token: str = "", encoded_by: ModelVersion | None = None
    ) -> UpsertSession:
        """Opens an upsert stream whose batches and acks the caller handles one by one."""
        return UpsertSession(self._open, collection, resume_token=resume_token, encoded_by=encoded_by)


class AsyncFacetsClient(AsyncMethods):
    """Talks to a Facets server from one event loop; closed by ``async with`` or ``await close()``.

    Takes the same arguments and has the same methods, results and errors as ``FacetsClient``, which
    describes them. Methods that return iterators there return asynchronous iterators here, and take
    asynchronous iterables, too.

    Example:
        >>> from facets_client import AsyncFacetsClient
        >>> async def main() -> None:
        ...     async with AsyncFacetsClient("localhost:50051") as client:
        ...         print((await client.embed(["A dog."])).facet_embeddings.shape)
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
