"""Both Python clients against a real server."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from facets_client import (
    AlreadyExistsError,
    AsyncFacetsClient,
    Document,
    FacetsClient,
    InvalidArgumentError,
    NotFoundError,
)
from facets_client.filters import AllOf, Equals, Exists, NoneOf, Range

TEXTS = [
    "The boat sailed on the river to the sea.",
    "A song for guitar and piano.",
    "The king and the queen of the city.",
    "Bread, cheese and wine on the table.",
    "The student was at school with the teacher of physics.",
]


@pytest.fixture
def client(server_target: str, channel: object) -> Iterator[FacetsClient]:
    """``channel`` has waited for the server."""
    with FacetsClient(server_target, timeout_s=60) as made:
        yield made


WORDS = "star tree forest book paper moon house bread".split()


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


def test_embed_more_texts_than_one_request_takes(client):
    model = client.model()
    texts = [f"{TEXTS[i % 5]} The moon." for i in range(model.limits.max_texts_per_request + 7)]
    embeddings = client.embed(texts)
    assert embeddings.facet_embeddings.shape == (len(texts), model.num_facets, model.dim)
    assert embeddings.model.revision == model.revision
    assert len(embeddings.token_stats) == len(texts)
    again = range(5 * (len(texts) // 5) - 5, 5 * (len(texts) // 5))
    np.testing.assert_allclose(embeddings.facet_embeddings[:5], embeddings.facet_embeddings[again], atol=2e-3)


def test_stream_and_unary_agree(client):
    texts = [TEXTS[i % 5] for i in range(150)]
    streamed = np.stack(list(client.embed_stream(iter(texts), batch_size=7)))
    np.testing.assert_allclose(streamed[:5], np.asarray(client.embed(TEXTS)), atol=2e-3)
    np.testing.assert_allclose(streamed[145:], streamed[:5], atol=2e-3)


def test_both_clients_give_the_same(client, server_target):
    async def gather():
        async with AsyncFacetsClient(server_target, timeout_s=60) as asynchronous:
            embeddings, scores, health = await asyncio.gather(
                asynchronous.embed(TEXTS), asynchronous.similarity([(TEXTS[0], TEXTS[1])]), asynchronous.health()
            )
            streamed = [array async for array in asynchronous.embed_stream(TEXTS, batch_size=2)]
            return embeddings, scores, health, streamed

    embeddings, scores, health, streamed = asyncio.run(gather())
    np.testing.assert_allclose(embeddings.facet_embeddings, client.embed(TEXTS).facet_embeddings, atol=2e-3)
    np.testing.assert_allclose(np.stack(streamed), embeddings.facet_embeddings, atol=2e-3)
    assert scores.pairs[0].score == pytest.approx(client.similarity([(TEXTS[0], TEXTS[1])]).pairs[0].score, abs=1e-3)
    assert health == client.health()
    assert set(health.values()) <= {"SERVING", "SERVICE_UNKNOWN"}  # unknown: of tasks without a model
    assert health["facets.v1.EmbeddingService"] == "SERVING"


def test_explain(client):
    text = "The king played the guitar \U0001f3b8 in the city."
    (explanation,) = client.explain([text], num_words=3)
    for token in explanation.tokens:
        assert text[token.start : token.end] == token.text
        assert token.attention >= 0
    assert [facet.facet for facet in explanation.facets] == list(range(client.model().num_facets))
    assert all(len(facet.words) == 3 for facet in explanation.facets)


def test_score_and_its_explanation(client):
    scores = client.similarity([(TEXTS[0], TEXTS[0]), (TEXTS[0], TEXTS[1])], method="max_facet", explain=True)
    same, other = scores.pairs
    assert same.score == pytest.approx(1.0, abs=1e-3)
    assert other.score < same.score
    assert sum(match.contribution for match in same.matches) == pytest.approx(1.0, abs=1e-3)
    assert same.first_tokens and same.matches[0].first_words


def test_summarize(client):
    text = " ".join(TEXTS)
    (summary,) = client.summarize([text], num_sentences=2)
    assert len(summary.sentences) == 2
    for sentence in summary.sentences:
        assert text[sentence.start : sentence.end] == sentence.text
    (given,) = client.summarize([TEXTS], num_sentences=1, order="selection", query="music")
    assert given.sentences[0].text in TEXTS
    assert given.num_sentences_in_document == len(TEXTS)


def test_documents_and_search(client, collection):
    written = client.upsert(collection, documents(40))
    assert written.num_documents == 40
    found = client.search(
        collection,
        [documents(40)[7].text, documents(40)[8].text],
        top_k=3,
        evidence=True,
        num_words=2,
        min_revision=written.index_revision,
    )
    assert [hits[0].id for hits in found] == ["d0007", "d0008"]
    best = found[0].hits[0]
    assert best.facets_score == pytest.approx(1.0, abs=1e-2)
    assert best.payload == {"n": 7, "kind": TEXTS[2][:6]}
    assert len(best.evidence[0].first_words) == 2
    assert found.index_revision >= written.index_revision
    facets = np.asarray(client.embed([documents(40)[7].text]))[0]
    assert client.search(collection, [facets], top_k=1)[0].hits[0].id == "d0007"


def test_filters_reach_the_store(client, collection):
    client.upsert(collection, documents(40))
    where = AllOf((Range("n", gte=10, lt=20), NoneOf((Equals("kind", TEXTS[0][:6]),))))
    expected = [f"d{i:04}" for i in range(10, 20) if i % 5]
    assert [document.id for document in client.list_documents(collection, where=where, page_size=3)] == expected
    assert client.count_documents(collection, where=where) == len(expected)
    hits = client.search(collection, ["the sea"], top_k=40, where=where, exact=True)[0].hits
    assert sorted(hit.id for hit in hits) == expected
    assert client.count_documents(collection, where=Exists("nope")) == 0
    assert client.delete_documents(collection, where=where).num_documents == len(expected)
    assert client.count_documents(collection) == 40 - len(expected)


def test_get_and_delete(client, collection):
    client.upsert(collection, documents(3))
    found = client.get_documents(collection, ["d0002", "nope", "d0000"], include_facets=True)
    assert [document.id for document in found.documents] == ["d0002", "d0000"]
    assert found.missing_ids == ("nope",)
    model = client.model()
    assert found.documents[0].facet_embeddings.shape == (model.num_facets, model.dim)
    assert client.delete_documents(collection, ["d0002", "nope"]).num_documents == 1
    assert client.get_documents(collection, ["d0002"]).documents == ()


def test_own_facets_are_stored_as_given(client, collection):
    facets = np.asarray(client.embed([TEXTS[0]]))[0]
    client.upsert(collection, [Document("own", "something else entirely", facet_embeddings=facets)])
    hit = client.search(collection, [TEXTS[0]], top_k=1, mode="facets")[0].hits[0]
    assert (hit.id, hit.text) == ("own", "something else entirely")
    assert hit.score == pytest.approx(1.0, abs=1e-2)
    with pytest.raises(InvalidArgumentError, match="shape"):
        client.upsert(collection, [Document("bad", "text", facet_embeddings=facets[:, :-1])])
    with pytest.raises(InvalidArgumentError, match="finite"):
        client.upsert(collection, [Document("bad", "text", facet_embeddings=facets * np.nan)])


def test_upsert_stream_rejects_what_is_bad_and_stores_the_rest(client, collection):
    sent = documents(30)
    sent[11] = Document("empty", " ")
    acks = list(client.upsert_stream(collection, iter(sent), batch_size=8))
    assert [ack.sequence for ack in acks] == [1, 2, 3, 4]
    assert sum(ack.num_upserted for ack in acks) == 29
    (rejected,) = acks[1].rejected
    assert (rejected.position, rejected.id, rejected.code) == (3, "empty", "INVALID_ARGUMENT")
    assert client.count_documents(collection) == 29


def test_payload_of_every_kind_comes_back(client, collection):
    payload = {"a": [1, 2.5, "x", True, None, {"b": []}], "\u00e9 \u4e2d": "\U0001f600", "big": 2**53, "e": {}}
    client.upsert(collection, [Document("p", TEXTS[0], payload)])
    assert client.get_documents(collection, ["p"]).documents[0].payload == payload


def test_errors_carry_their_reason(client, collection):
    with pytest.raises(NotFoundError, match="nope") as caught:
        client.search("nope", ["x"])
    assert caught.value.reason and caught.value.request_id
    with pytest.raises(AlreadyExistsError):
        client.create_collection(collection)
    with pytest.raises(InvalidArgumentError) as caught:
        client.embed(["good"] * 600 + [""])
    assert [violation.field for violation in caught.value.field_violations] == ["texts[600]"]
    with pytest.raises(NotFoundError):
        client.embed(["x"], model="nope")
