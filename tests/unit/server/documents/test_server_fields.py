"""Titles, other fields and odd filters through a server with a model of passages, its client and the command."""

import json
import warnings

import pytest
from facets_client import Document, FacetsClient, InvalidArgumentError, OddFilterWarning
from facets_client.cli.main import app
from facets_client.filters import Equals
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.texts.passages import ServedPassages
from prometheus_client import CollectorRegistry
from toys import shared_passage_model
from typer.testing import CliRunner

TITLED = [
    Document("guitar", "A man plays music in the garage.", {"title": "Zyzzyva quarterly", "year": 2020}),
    Document("dog", "The dog is in the garage.", {"subject": "Invoice AB-1234", "year": 2021}),
    Document("weights", "A man is lifting weights.", {"authors": ["Ada Lovelace", "Mary Shelley"], "year": 2022}),
    Document("bare", "", {"title": "Only a title"}),
]


@pytest.fixture
def running(make_server):
    served = ServedPassages(shared_passage_model(), BatcherConfig(), BatchMetrics(CollectorRegistry()))
    return make_server(others=[served])


def target_of(running):
    return f"127.0.0.1:{running.server.port}"


@pytest.fixture
def client(running):
    with FacetsClient(target_of(running)) as made:
        made.create_collection("news")
        made.upsert("news", TITLED)
        yield made


def first(client, query, collection="news"):
    (hits,) = client.search(collection, [query], top_k=3, evidence=True)
    return hits[0]


@pytest.mark.parametrize(
    ("query", "expected", "field", "text"),
    [
        ("Zyzzyva quarterly", "guitar", "title", "Zyzzyva quarterly"),
        ("zyzzyva", "guitar", "title", "Zyzzyva quarterly"),
        ("AB-1234", "dog", "subject", "Invoice AB-1234"),
        ("only a title", "bare", "title", "Only a title"),
        ("lifting weights", "weights", "", "A man is lifting weights."),
    ],
)
def test_field_that_met_is_said(client, query, expected, field, text):
    hit = first(client, query)
    assert (hit.id, hit.answer.field, hit.answer.text) == (expected, field, text)
    held = hit.payload[field] if field else hit.text
    assert held[hit.answer.start : hit.answer.end] == text


def test_default_fields_are_shown_with_the_collection(client):
    fields = {one.name: one.weight for one in client.get_collection("news").search_fields}
    assert fields == dict.fromkeys(("title", "subject", "headline", "heading", "name"), 2.0)


def test_fields_are_chosen_at_creation_and_by_reindex(client):
    client.create_collection("people", search_fields={"authors": 1.0})
    client.upsert("people", TITLED[:3])
    hit = first(client, "lovelace", "people")
    assert (hit.id, hit.answer.field, hit.answer.text) == ("weights", "authors", "Ada Lovelace")
    assert first(client, "zyzzyva", "people").matched_words == ()
    *_, last = client.reindex_collection("people", search_fields={"title": 3.0})
    assert [(one.name, one.weight) for one in last.collection.search_fields] == [("title", 3.0)]
    assert first(client, "zyzzyva", "people").answer.field == "title"
    assert first(client, "lovelace", "people").matched_words == ()


def test_facets_of_titles_come_back_as_they_were_stored(client):
    (found,) = client.get_documents("news", ["guitar"], include_facets=True).documents
    assert max(span.end for span in found.facet_spans if span) > len(found.text), "the title stands behind the text"
    client.create_collection("copy")
    client.upsert("copy", [found])
    (again,) = client.get_documents("copy", ["guitar"], include_facets=True).documents
    assert again.facet_spans == found.facet_spans
    assert first(client, "zyzzyva", "copy").answer.field == "title"


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (Document("a", "", {"author": "Ada"}), "at least one word"),
        (Document("a", " ", {"title": "\n"}), "at least one word"),
        (Document("a", "Text.", {"title": "word " * 200_000}), "payload.*65536"),
    ],
)
def test_documents_that_say_nothing_or_too_much_are_refused(client, document, match):
    with pytest.raises(InvalidArgumentError, match=match):
        client.upsert("news", [document])


def test_long_title_is_read_whole(client):
    client.upsert("news", [Document("long", "A dog.", {"title": "weights " * 2_000 + "garage"})])
    assert "long" in {hit.id for hit in client.search("news", ["garage"])[0].hits}


def test_client_warns_of_odd_filters(client):
    with pytest.warns(OddFilterWarning, match="did you mean 'year'"):
        assert client.count_documents("news", where=Equals("yaer", 2020)) == 0
    with pytest.warns(OddFilterWarning, match="compared with strings, the documents have numbers"):
        found = client.search("news", ["dog"], where=Equals("year", "2020"))
    assert [one.field for one in found.warnings] == ["year"]
    with pytest.warns(OddFilterWarning, match="yaer"):
        assert client.delete_documents("news", where=Equals("yaer", 1)).num_documents == 0
    with pytest.warns(OddFilterWarning, match="yaer"):
        assert list(client.list_documents("news", where=Equals("yaer", 1))) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.count_documents("news", where=Equals("year", 2020)) == 1


@pytest.fixture
def facets(client, running, tmp_path, monkeypatch):
    monkeypatch.setenv("FACETS_TARGET", target_of(running))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run(*args, code=0):
        with warnings.catch_warnings():
            done = CliRunner().invoke(app, [str(arg) for arg in args])
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    return run


def test_command_shows_the_field_that_met(facets):
    out = facets("search", "zyzzyva quarterly", "-c", "news", "--min-confidence", 0, "-k", 1).stdout
    assert "title: Zyzzyva quarterly" in out


def test_command_warns_of_odd_filters(facets):
    done = facets("search", "dog", "-c", "news", "--where", "yaer=2020")
    assert "warning: no document has a field 'yaer': did you mean 'year'?" in done.stderr
    assert "compared with strings" in facets("documents", "count", "-c", "news", "-w", 'year="2020"').stderr
    found = json.loads(facets("--json", "search", "dog", "-c", "news", "--where", "yaer=2020").stdout)
    assert [one["field"] for one in found["warnings"]] == ["yaer"]


def test_command_indexes_titles_of_a_table(facets, tmp_path):
    (tmp_path / "table.csv").write_text(
        "id,Title,text,authors\n1,Zyzzyva weekly,A dog.,Ada\n2,Garage,A man plays.,Bo\n"
    )
    facets("index", "table.csv", "-c", "table", "--create", "--search-field", "title", "--search-field", "authors:1")
    found = json.loads(facets("--json", "search", "ada", "-c", "table").stdout)
    assert (found["hits"][0]["id"], found["hits"][0]["answer"]["field"]) == ("1", "authors")
    found = json.loads(facets("--json", "search", "weekly", "-c", "table").stdout)
    assert found["hits"][0]["answer"]["text"] == "Zyzzyva weekly"


@pytest.mark.parametrize("option", ["title:x", "title:-1", 'a"b'])
def test_command_refuses_search_fields_out_of_the_rules(facets, option):
    facets("collections", "create", "odd", "--search-field", option, code=2)
