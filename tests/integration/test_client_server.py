"""Both Python clients against a real server, and the client of a folder, which gives the same."""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from facets_client import AsyncFacetsClient, Document, FacetsClient, InvalidArgumentError
from facets_client.filters import AllOf, Equals, Exists, NoneOf, Range

import facets

TEXTS = [
    "The boat sailed on the river to the sea.",
    "A song for guitar and piano.",
    "The king and the queen of the city.",
    "Bread, cheese and wine on the table.",
    "The student was at school with the teacher of physics.",
]
WORDS = "star tree forest book paper moon house bread".split()


@pytest.fixture(params=["server", "folder"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FacetsClient]:
    if request.param == "folder":
        model = request.getfixturevalue("model_path")
        with facets.open(tmp_path / "notes", models=[str(model)]) as made:
            yield made
        return
    request.getfixturevalue("channel")  # it has waited for the server
    with FacetsClient(request.getfixturevalue("server_target"), timeout_s=60) as made:
        yield made


@pytest.fixture
def collection(client: FacetsClient) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:12]}"
    client.create_collection(name, model=client.model().name)
    yield name
    client.delete_collection(name)


def documents(number: int) -> list[Document]:
    """No two alike, in words that any model knows."""
    return [
        Document(
            f"d{i:04}",
            f"{TEXTS[i % 5]} The {WORDS[i % 8]} and the {WORDS[i // 8]}.",
            {"n": i, "kind": TEXTS[i % 5][:6]},
        )
        for i in range(number)
    ]


def test_both_clients_and_streams_give_the_same(client, server_target):
    async def gather():
        async with AsyncFacetsClient(server_target, timeout_s=60) as asynchronous:
            embeddings, scores, health = await asyncio.gather(
                asynchronous.embed(TEXTS), asynchronous.similarity([(TEXTS[0], TEXTS[1])]), asynchronous.health()
            )
            streamed = [array async for array in asynchronous.embed_stream(TEXTS, batch_size=2)]
            return embeddings, scores, health, streamed

    embeddings, scores, health, streamed = asyncio.run(gather())
    for arrays in (streamed, list(client.embed_stream(iter(TEXTS), batch_size=2)), client.embed(TEXTS)):
        np.testing.assert_allclose(np.asarray(arrays), embeddings.facet_embeddings, atol=2e-3)
    assert scores[0].score == pytest.approx(client.similarity([(TEXTS[0], TEXTS[1])])[0].score, abs=1e-3)
    assert health == client.health()
    assert set(health.values()) <= {"SERVING", "SERVICE_UNKNOWN"}  # unknown: services without a model
    assert health["facets.v1.EmbeddingService"] == "SERVING"


def test_filters_reach_the_store(client, collection):
    client.add(documents(40), collection=collection)
    where = AllOf((Range("n", gte=10, lt=20), NoneOf((Equals("kind", TEXTS[0][:6]),))))
    expected = [f"d{i:04}" for i in range(10, 20) if i % 5]
    assert [document.id for document in client.list_documents(collection, where=where, page_size=3)] == expected
    assert client.count_documents(collection, where=where) == len(expected)
    hits = client.search(collection, ["the sea"], top_k=40, where=where, exact=True)[0]
    assert sorted(hit.id for hit in hits) == expected
    assert client.count_documents(collection, where=Exists("nope")) == 0
    with pytest.raises(InvalidArgumentError, match="where has an empty list of conditions"):
        client.delete_documents(collection, where=AllOf([]))
    assert client.delete_documents(collection, where=where).num_documents == len(expected)
    assert client.count_documents(collection) == 40 - len(expected)


def test_an_upsert_stream_rejects_bad_documents_and_stores_the_rest(client, collection):
    sent = documents(30)
    sent[11] = Document("empty", " ")
    payload = {"a": [1, 2.5, "x", True, None, {"b": []}], "\u00e9 \u4e2d": "\U0001f600", "big": 2**53, "e": {}}
    sent[12] = Document("payload", TEXTS[0], payload)
    acks = list(client.upsert_stream(collection, iter(sent), batch_size=8))
    assert [ack.sequence for ack in acks] == [1, 2, 3, 4]
    (rejected,) = acks[1].rejected
    assert (rejected.position, rejected.id, rejected.code) == (3, "empty", "INVALID_ARGUMENT")
    assert client.count_documents(collection) == sum(ack.num_upserted for ack in acks) == 29
    assert client.get_documents(collection, ["payload"])[0].payload == payload


def test_a_folder_is_served_and_a_served_folder_is_opened(spawn, toy_model, tmp_path):
    def seen(client):
        client.add(TEXTS)
        found = client.get_documents("documents", [hit.id for hit in client.search(TEXTS[1])], include_facets=True)
        return [(document.id, document.text, np.asarray(document.facet_embeddings).tolist()) for document in found]

    with facets.open(tmp_path / "data", models=[str(toy_model)]) as client:
        before = seen(client)
    server = spawn(data_dir=tmp_path / "data")
    with FacetsClient(server.target, timeout_s=60) as client:
        assert seen(client) == before and client.count_documents("documents") == len(TEXTS)
    server.kill()
    with facets.open(tmp_path / "data", models=[str(toy_model)]) as client:
        assert seen(client) == before
