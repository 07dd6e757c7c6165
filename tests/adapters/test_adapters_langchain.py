"""The LangChain retriever against LangChain itself and a real server."""

import asyncio

import pytest
from facets_client import AsyncFacetsClient, Document, FacetsClient
from facets_client.filters import Equals

pytest.importorskip("langchain_core")
from facets_client.adapters.langchain import FacetsRetriever, from_langchain
from langchain_core.documents import Document as LangChainDocument

QUESTION = "Which bird of prey is the national symbol of the United States?"


def test_documents_are_those_of_the_search(client: FacetsClient) -> None:
    found = FacetsRetriever(client=client, collection="wiki", top_k=3).invoke(QUESTION)
    hits = client.search("wiki", [QUESTION], top_k=3)[0].hits
    assert [document.id for document in found] == [hit.id for hit in hits]
    first, hit = found[0], hits[0]
    assert first.id == "bald-eagle" and first.page_content == hit.text and first.metadata["title"] == "Bald eagle"
    about = first.metadata["facets_hit"]
    assert about["score"] == pytest.approx(hit.score, abs=1e-6)
    assert about["answer"]["text"] == first.page_content[about["answer"]["start"] : about["answer"]["end"]]


def test_settings_reach_the_server(client: FacetsClient) -> None:
    retriever = FacetsRetriever(client=client, collection="wiki", top_k=5, where=Equals("title", "Cat"))
    assert [document.id for document in retriever.invoke(QUESTION)] == ["cat"]
    sure = FacetsRetriever(client=client, collection="wiki", top_k=1, min_confidence=0.99)
    assert sure.invoke("the price of tea in a spaceship") == []


def test_awaited_it_gives_the_same(client: FacetsClient) -> None:
    async def both() -> list[list[LangChainDocument]]:
        async with AsyncFacetsClient(client.target) as async_client:
            plain = FacetsRetriever(client=client, collection="wiki", top_k=3)
            awaited = FacetsRetriever(client=client, async_client=async_client, collection="wiki", top_k=3)
            return [await plain.ainvoke(QUESTION), await awaited.ainvoke(QUESTION)]

    in_thread, awaited = asyncio.run(both())
    assert [document.id for document in in_thread] == [document.id for document in awaited]


def test_documents_of_langchain_are_stored(client: FacetsClient) -> None:
    given = [
        LangChainDocument(id="a", page_content="A dog barks.", metadata={"year": 1990, "facets_hit": {"score": 1.0}}),
        LangChainDocument(page_content="The market fell."),
    ]
    ours = list(from_langchain(given))
    assert ours[0] == Document("a", "A dog barks.", {"year": 1990})
    assert ours[1].id and ours[1].id == next(iter(from_langchain(given[1:]))).id
    client.create_collection("from-langchain")
    assert client.add(ours, collection="from-langchain").num_documents == 2
