"""LangChain: a retriever over a collection, and conversion of LangChain's documents (extra ``langchain``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.langchain import FacetsRetriever
    >>> retriever = FacetsRetriever(client=FacetsClient(), collection="wiki", top_k=3)
    >>> retriever.invoke("how vaccines protect against disease")  # doctest: +SKIP
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from facets_client.core.extras import require_extra

require_extra("langchain", "langchain_core")
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun  # noqa: E402
from langchain_core.documents import Document as LangChainDocument  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, metadata_of  # noqa: E402
from facets_client.client import AsyncFacetsClient, FacetsClient  # noqa: E402
from facets_client.filters import Filter  # noqa: E402
from facets_client.generated.types import Document, SearchHit, SearchMode  # noqa: E402


class FacetsRetriever(BaseRetriever):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Searches a collection. A hit's payload is the metadata, with scores and answer under ``facets_hit``."""

    client: FacetsClient  # for invoke, and without async_client also for ainvoke, in a thread
    collection: str
    async_client: AsyncFacetsClient | None = None  # for ainvoke
    # See FacetsClient.search.
    top_k: int | None = None
    mode: SearchMode | None = None
    where: Filter | None = None
    min_confidence: float | None = None
    diversify: float | None = None
    model: str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        found = self.client.search(self.collection, [query], **self._settings())
        return list(map(_to_langchain, found[0].hits))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        if self.async_client is None:
            documents: list[LangChainDocument] = await super()._aget_relevant_documents(query, run_manager=run_manager)
            return documents
        found = await self.async_client.search(self.collection, [query], **self._settings())
        return list(map(_to_langchain, found[0].hits))

    def _settings(self) -> dict[str, Any]:
        names = ("top_k", "mode", "where", "min_confidence", "diversify", "model")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def from_langchain(documents: Iterable[LangChainDocument]) -> Iterator[Document]:
    """Converts LangChain's documents for storing: metadata becomes the payload, a missing id is made from the text."""
    for document in documents:
        payload = {key: value for key, value in document.metadata.items() if key != HIT_KEY}
        text: str = document.page_content
        yield Document(document.id or hashlib.sha256(text.encode()).hexdigest()[:32], text, payload)


def _to_langchain(hit: SearchHit) -> LangChainDocument:
    return LangChainDocument(id=hit.id, page_content=hit.text, metadata=metadata_of(hit))
