"""LangChain: a retriever over a collection of a Facets server, and LangChain's documents as ours (extra ``langchain``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.langchain import FacetsRetriever
    >>> retriever = FacetsRetriever(client=FacetsClient(), collection="wiki", top_k=3)
    >>> retriever.invoke("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator

from facets_client.adapters import require

require("langchain")
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun  # noqa: E402
from langchain_core.documents import Document as LangChainDocument  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, Retrieval, SearchSettings, content_id, metadata_of  # noqa: E402
from facets_client.client import AsyncFacetsClient, FacetsClient  # noqa: E402
from facets_client.filters import Filter  # noqa: E402
from facets_client.generated.types import Document, SearchHit, SearchMode  # noqa: E402


class FacetsRetriever(BaseRetriever):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Searches a collection; a hit's payload is the metadata, what the search says of it stands under ``facets_hit``.

    Attributes:
        client: For ``invoke``; also for ``ainvoke`` where there is no ``async_client``, in a thread.
        collection: Name of the collection.
        async_client: For ``ainvoke``.
        top_k, mode, where, min_confidence, diversify, model: See ``SearchSettings``.
    """

    client: FacetsClient
    collection: str
    async_client: AsyncFacetsClient | None = None
    top_k: int = 10
    mode: SearchMode = "hybrid"
    where: Filter | None = None
    min_confidence: float | None = None
    diversify: float = 0.0
    model: str = ""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        return list(map(_to_langchain, self._retrieval().hits(self.client, query)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        if self.async_client is None:
            found: list[LangChainDocument] = await super()._aget_relevant_documents(query, run_manager=run_manager)
            return found
        return list(map(_to_langchain, await self._retrieval().hits_async(self.async_client, query)))

    def _retrieval(self) -> Retrieval:
        asked = {name: getattr(self, name) for name in SearchSettings.__annotations__}
        return Retrieval(collection=self.collection, **asked)


def from_langchain(documents: Iterable[LangChainDocument]) -> Iterator[Document]:
    """LangChain's documents as ours, to be stored: metadata is the payload.

    Args:
        documents: Any number; one without an id gets one from its text.
    """
    for document in documents:
        payload = {key: value for key, value in document.metadata.items() if key != HIT_KEY}
        yield Document(document.id or content_id(document.page_content), document.page_content, payload)


def _to_langchain(hit: SearchHit) -> LangChainDocument:
    return LangChainDocument(id=hit.id, page_content=hit.text, metadata=metadata_of(hit))
