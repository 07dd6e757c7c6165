"""The asyncio client: the same methods as ``FacetsClient``, to be awaited."""

from types import TracebackType
from typing import Self

from facets_client.core.channel import TlsConfig
from facets_client.core.target import DEFAULT_TARGET
from facets_client.methods import AsyncMethods, Operations

__all__ = ["AsyncFacetsClient"]


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

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        timeout_s: float | None = None,
        api_key: str | None = None,
        tls: bool | TlsConfig = False,
    ) -> None:
        super().__init__(target, timeout_s=timeout_s, api_key=api_key, tls=tls)
        self._operations = Operations()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
