"""LlamaIndex: a retriever over a collection of a Facets server, and LlamaIndex' nodes as our documents.

Extra ``llama-index``.

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.llama_index import FacetsRetriever
    >>> retriever = FacetsRetriever(FacetsClient(), "wiki", top_k=3)
    >>> retriever.retrieve("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator
from typing import Unpack

from facets_client.adapters import require

require("llama-index")
from llama_index.core.retrievers import BaseRetriever  # noqa: E402
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, Retrieval, SearchSettings, metadata_of  # noqa: E402
from facets_client.client import AsyncFacetsClient, FacetsClient  # noqa: E402
from facets_client.generated.types import Document, SearchHit  # noqa: E402


class FacetsRetriever(BaseRetriever):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Searches a collection; a hit's payload is the metadata, what the search says of it stands under ``facets_hit``.

    What stands under ``facets_hit`` is kept from the prompts of language models and embeddings.

    Args:
        client: For ``retrieve``; also for ``aretrieve`` where there is no ``async_client``.
        collection: Name of the collection.
        async_client: For ``aretrieve``.
        settings: See ``SearchSettings``.
    """

    def __init__(
        self,
        client: FacetsClient,
        collection: str,
        *,
        async_client: AsyncFacetsClient | None = None,
        **settings: Unpack[SearchSettings],
    ) -> None:
        super().__init__()
        self._client = client
        self._async_client = async_client
        self._retrieval = Retrieval(collection=collection, **settings)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(map(_to_node, self._retrieval.hits(self._client, query_bundle.query_str)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return self._retrieve(query_bundle)
        return list(map(_to_node, await self._retrieval.hits_async(self._async_client, query_bundle.query_str)))


def from_llama_index(nodes: Iterable[BaseNode]) -> Iterator[Document]:
    """LlamaIndex' nodes and documents as ours, to be stored: metadata is the payload."""
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
