"""LlamaIndex: a retriever over a collection, and conversion of LlamaIndex nodes (extra ``llama-index``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.llama_index import FacetsRetriever
    >>> retriever = FacetsRetriever(FacetsClient(), "wiki", top_k=3)
    >>> retriever.retrieve("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator
from typing import Unpack

from facets_client.core.extras import require_extra

require_extra("llama-index", "llama_index")
from llama_index.core.retrievers import BaseRetriever  # noqa: E402
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, metadata_of  # noqa: E402
from facets_client.client import AsyncFacetsClient, FacetsClient  # noqa: E402
from facets_client.documents.calls import SearchOptions  # noqa: E402
from facets_client.generated.types import Document, SearchHit  # noqa: E402


class FacetsRetriever(BaseRetriever):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Searches a collection. A hit's payload is the metadata, with scores and answer under ``facets_hit``.

    ``facets_hit`` is kept out of prompts and embeddings. ``client`` is for ``retrieve``, and without an
    ``async_client`` also for ``aretrieve``. ``settings`` are options of ``FacetsClient.search``.
    """

    def __init__(
        self,
        client: FacetsClient,
        collection: str,
        *,
        async_client: AsyncFacetsClient | None = None,
        **settings: Unpack[SearchOptions],
    ) -> None:
        super().__init__()
        self._client = client
        self._collection = collection
        self._async_client = async_client
        self._settings = settings

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._client.search(self._collection, [query_bundle.query_str], **self._settings)
        return list(map(_to_node, found[0].hits))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return self._retrieve(query_bundle)
        found = await self._async_client.search(self._collection, [query_bundle.query_str], **self._settings)
        return list(map(_to_node, found[0].hits))


def from_llama_index(nodes: Iterable[BaseNode]) -> Iterator[Document]:
    """Converts LlamaIndex nodes and documents for storing: metadata becomes the payload."""
    for node in nodes:
        payload = {key: value for key, value in node.metadata.items() if key != HIT_KEY}
        yield Document(node.node_id, node.get_content(MetadataMode.NONE), payload)


def _to_node(hit: SearchHit) -> NodeWithScore:
    node = TextNode(
        id_=hit.id,
        text=hit.text,
        metadata=metadata_of(hit),
        excluded_embed_metadata_keys=[HIT_KEY],
        excluded_llm_metadata_keys=[HIT_KEY],
    )
    return NodeWithScore(node=node, score=hit.score)
