"""The LlamaIndex retriever against LlamaIndex itself and a real server."""

import asyncio

import pytest
from facets_client import AsyncFacetsClient, Document, FacetsClient
from facets_client.filters import Equals

pytest.importorskip("llama_index.core")
from facets_client.adapters.llama_index import FacetsRetriever, from_llama_index
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

QUESTION = "Which bird of prey is the national symbol of the United States?"


def test_nodes_are_those_of_the_search(client: FacetsClient) -> None:
    found = FacetsRetriever(client, "wiki", top_k=3).retrieve(QUESTION)
    hits = client.search("wiki", [QUESTION], top_k=3)[0].hits
    assert [node.node_id for node in found] == [hit.id for hit in hits]
    assert [node.score for node in found] == pytest.approx([hit.score for hit in hits], abs=1e-6)
    assert found[0].metadata["title"] == "Bald eagle" and found[0].text == hits[0].text


def test_language_models_do_not_read_the_scores(client: FacetsClient) -> None:
    (node,) = FacetsRetriever(client, "wiki", top_k=1, where=Equals("title", "Cat")).retrieve(QUESTION)
    assert "facets_hit" in node.metadata
    assert "facets_hit" not in node.get_content(MetadataMode.LLM) and "Cat" in node.get_content(MetadataMode.LLM)


def test_awaited_it_gives_the_same(client: FacetsClient) -> None:
    async def both() -> list[list[NodeWithScore]]:
        async with AsyncFacetsClient(client.target) as async_client:
            plain = FacetsRetriever(client, "wiki", top_k=3)
            awaited = FacetsRetriever(client, "wiki", async_client=async_client, top_k=3)
            return [await plain.aretrieve(QUESTION), await awaited.aretrieve(QUESTION)]

    blocking, awaited = asyncio.run(both())
    assert [node.node_id for node in blocking] == [node.node_id for node in awaited]


def test_nodes_become_documents() -> None:
    node = TextNode(id_="a", text="A dog barks.", metadata={"year": 1990, "facets_hit": {"score": 1.0}})
    assert list(from_llama_index([node])) == [Document("a", "A dog barks.", {"year": 1990})]
