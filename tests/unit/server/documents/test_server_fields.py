"""Titles, other fields and odd filters through a server with a model of passages, its client and the command."""

import pytest
from facets_client import Document, FacetsClient, InvalidArgumentError
from server_fakes import served_passages

TITLED = [
    Document("guitar", "A man plays music in the garage.", {"title": "Zyzzyva quarterly", "year": 2020}),
    Document("dog", "The dog is in the garage.", {"subject": "Invoice AB-1234", "year": 2021}),
    Document("weights", "A man is lifting weights.", {"authors": ["Ada Lovelace", "Mary Shelley"], "year": 2022}),
    Document("bare", "", {"title": "Only a title"}),
]


@pytest.fixture(scope="module")
def running(make_module_server):
    return make_module_server(others=[served_passages()])


def target_of(running):
    return f"127.0.0.1:{running.server.port}"


@pytest.fixture(scope="module")
def client(running):
    with FacetsClient(target_of(running)) as made:
        made.create_collection("news")
        made.add(TITLED, collection="news")
        yield made


def first(client, query, collection="news"):
    (hits,) = client.search(collection, [query], top_k=3, evidence=True)
    return hits[0]


@pytest.mark.parametrize(
    ("query", "expected", "field", "text"),
    [
        ("Zyzzyva quarterly", "guitar", "", "A man plays music in the garage."),  # the hit shows its title anyway
        ("AB-1234", "dog", "", "The dog is in the garage."),
        ("only a title", "bare", "title", "Only a title"),
        ("lifting weights", "weights", "", "A man is lifting weights."),
    ],
)
def test_field_that_met_is_said(client, query, expected, field, text):
    hit = first(client, query)
    assert (hit.id, hit.answer.field, hit.answer.text) == (expected, field, text)
    held = hit.payload[field] if field else hit.text
    assert held[hit.answer.start : hit.answer.end] == text


def test_fields_are_chosen_at_creation_and_by_reindex(client):
    client.create_collection("people", search_fields={"authors": 1.0})
    client.add(TITLED[:3], collection="people")
    hit = first(client, "lovelace", "people")
    assert (hit.id, hit.answer.field, hit.answer.text) == ("weights", "authors", "Ada Lovelace\nMary Shelley")
    assert first(client, "zyzzyva", "people").matched_words == ()
    *_, last = client.reindex_collection("people", search_fields={"title": 3.0})
    assert [(one.name, one.weight) for one in last.collection.search_fields] == [("title", 3.0)]
    assert first(client, "zyzzyva", "people").id == "guitar"
    assert first(client, "lovelace", "people").matched_words == ()


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (Document("a", "", {"author": "Ada"}), "has no words"),
        (Document("a", " ", {"title": "\n"}), "has no words"),
        (Document("a", "Text.", {"title": "word " * 200_000}), "payload.*65536"),
    ],
)
def test_documents_that_say_nothing_or_too_much_are_refused(client, document, match):
    with pytest.raises(InvalidArgumentError, match=match):
        client.add([document], collection="news")
