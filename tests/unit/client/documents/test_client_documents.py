"""Methods of the clients about collections and documents, and search results in a notebook and as text."""

from operator import methodcaller
from xml.etree import ElementTree

import numpy as np
import pytest
from facets_client import Document, NotFoundError, UnavailableError
from facets_client.documents.results import SearchResult, SearchResults
from facets_client.filters import AllOf, AnyOf, Contains, Equals, Exists, NoneOf, OneOf, Range
from facets_client.generated.types import FacetMatch, ModelVersion, NearestWord, SearchHit, Span, Timings
from fake_server import DIM, NUM_FACETS, fake_facets

in_notebook = methodcaller("_repr_html_")  # what a notebook calls


def documents(number, **payload):
    return [Document(f"d{i:03}", f"text number {i}", {"n": i, **payload}) for i in range(number)]


def test_collections(client, world):
    created = client.create_collection("second", search_fields={"title": 2.0})
    assert (created.name, created.num_facets, created.dim) == ("second", NUM_FACETS, DIM)
    assert [(field.name, field.weight) for field in world.calls[-1][1].search_fields.fields] == [("title", 2.0)]
    assert created.create_time.tzinfo is not None
    for name in "abc":
        client.create_collection(name)
    assert [item.name for item in client.list_collections()] == ["a", "b", "c", "news", "second"]
    client.add(documents(3), collection="a")
    assert client.get_collection("a").num_documents == 3
    assert client.delete_collection("a").num_documents == 3
    with pytest.raises(NotFoundError, match="'a' does not exist"):
        client.get_collection("a")


def test_documents_are_stored_read_listed_counted_and_deleted(client, world):
    payload = {"tags": ["x", 1, True, None], "deep": {"year": 1999, "share": 0.5}, "name": "\u00fc\u4e2d"}
    assert client.add(documents(20, **payload), collection="news").num_documents == 20
    assert client.count_documents("news") == 20
    found = client.get_documents("news", ["d005", "nope", "d001"], include_facets=True)
    assert [document.id for document in found] == ["d005", "d001"] and found.missing_ids == ("nope",)
    assert found[0].payload == {"n": 5, **payload} and isinstance(found[0].payload["n"], int)
    np.testing.assert_array_equal(found[1].facet_embeddings, fake_facets("text number 1"))
    listed = list(client.list_documents("news"))
    assert [document.id for document in listed] == [f"d{i:03}" for i in range(20)]
    assert world.count("ListDocuments") == 7 and listed[0].facet_embeddings is None
    assert client.delete_documents("news", ["d000", "nope"]).num_documents == 1
    assert client.delete_documents("news", where=Equals("n", 3)).num_documents == 19
    assert world.calls[-1][1].where.field.equals.number_value == 3


def nested(levels):
    return {"x": nested(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"x": float("nan")}, "finite"),
        ({"x": [1, {"y": float("inf")}]}, "finite"),
        ({"x": 2**53 + 1}, "2\\*\\*53"),
        ({"x": 10**400}, "2\\*\\*53"),
        ({"x": {1: 2}}, "must be a JSON object"),
        ({"x": object()}, "a value that JSON has"),
        ({"x": "\ud800"}, "valid Unicode"),
        (nested(40), "20 levels"),
    ],
)
def test_payloads_that_a_message_cannot_carry_are_rejected(client, world, payload, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        client.add([Document("a", "text", payload)], collection="news")
    assert not world.documents["news"]


def test_documents_not_read_to_their_end_are_reported_by_their_position(client, world):
    world.max_documents, world.max_tokens = 2, 3
    texts = ["one", "two", "three", "a b c d e", "four", "a b c d"]
    written = client.add([Document(f"d{i}", text) for i, text in enumerate(texts)], collection="news")
    assert [(item.position, item.id) for item in written.truncated] == [(3, "d3"), (5, "d5")]
    stats = written.truncated[0].token_stats
    assert (stats.num_tokens, stats.num_tokens_in_text, stats.truncated) == (3, 5, True)
    acks = list(client.upsert_stream("news", [Document("a", "b"), Document("c", "a b c d e")], batch_size=2))
    assert [item.id for ack in acks for item in ack.truncated] == ["c"]


def test_a_stream_continues_with_its_token(client, world):
    world.break_after_acks.append(1)
    acks = []
    with pytest.raises(UnavailableError):
        for ack in client.upsert_stream("news", documents(20), batch_size=5):
            acks.append(ack)
    # The connection may break before the client has read the one ack; then it starts again.
    assert len(acks) <= 1
    token = acks[0].resume_token if acks else ""
    rest = client.upsert_stream("news", documents(20)[5 * len(acks) :], batch_size=5, resume_token=token)
    assert [ack.sequence for ack in rest] == list(range(len(acks) + 1, 5))
    assert len(world.documents["news"]) == 20


def test_searches_with_evidence_stay_within_their_limit(client, world):
    world.max_evidence_hits = 10
    for options in ({"top_k": 10, "evidence": True}, {"evidence": True}, {"top_k": 10}):
        client.search("news", ["a", "b", "c"], **options)
    requests = [len(request.queries) for method, request in world.calls if method == "Search"]
    assert requests == [1, 1, 1, 2, 1, 2, 1]


def test_search_by_facets_with_a_filter(client, world):
    where = AllOf(
        (
            Equals("a", "x"),
            OneOf("b", [np.int64(1), True, None]),
            AnyOf((Range("c", gte=1, lt=2), Range("d", gt="2020-01-01"))),
            NoneOf((Exists("e"), Contains("f", "y"))),
        )
    )
    client.search("news", ["x"])
    plain = {field.name for field, _ in world.calls[-1][1].ListFields()}
    assert plain == {"collection", "queries"}, "only what the caller has set is sent"
    client.search("news", [fake_facets("x")], where=where, exact=True, min_revision=7, diversify=0.0)
    request = world.calls[-1][1]
    assert request.HasField("diversify")
    assert list(request.queries[0].facet_embeddings.shape) == [NUM_FACETS, DIM]
    assert request.exact and request.min_revision == 7
    equals, one_of, any_of, none_of = request.where.all_of.filters
    assert equals.field.equals.string_value == "x"
    kinds = [value.WhichOneof("kind") for value in one_of.field.one_of.values]
    assert kinds == ["number_value", "bool_value", "null_value"]
    number, text = any_of.any_of.filters
    assert (number.field.range.gte, number.field.range.lt, number.field.range.HasField("gt")) == (1, 2, False)
    assert text.field.string_range.gt == "2020-01-01"
    assert none_of.none_of.filters[0].field.exists is True
    assert none_of.none_of.filters[1].field.contains.string_value == "y"


TEXT = 'A & B <script>alert("x")</script> were wed in 1900. No one came.'


def hit(**fields):
    word = (NearestWord("<i>wed", 0.5),)
    start = TEXT.index("wed")
    known = {
        **{"id": 'a"<b>', "score": 0.5, "text": TEXT, "payload": {"title": "Q&A <1>"}},
        **{"evidence": (FacetMatch(0, 1, 0.7, 1.0, word, word),), "revision": 1, "facets_score": 0.5},
        **{
            "lexical_score": 1.0,
            "matched_words": ("wed",),
            "answer": Span(start, start + 11, text="wed in 1900"),
            "confidence": 0.9,
        },
        **{"matched_spans": (Span(start, start + 3),), "part": None, "part_number": 0, "num_parts": 1},
    }
    return SearchHit(**{**known, **fields})


def results(*hits):
    return SearchResults(
        tuple(map(SearchResult, hits)), 1, True, ModelVersion("m", "r"), Timings(), "exact", (), None, ""
    )


ROW = Span(0, 10, columns=("Model", "<b>"), cells=("X-20S", "3.1 kg"))
WIDE_ROW = Span(
    0, 10, columns=tuple(f"Column number {i}" for i in range(12)), cells=tuple(f"value {i}" for i in range(12))
)
SOLUTION = Span(0, 10, field="fix", text="Turn it on.", problem="It is <dark>.")


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (
            results((hit(),)),
            ['query 1 1 confidence 0.90 a"<b> Q&A <1>', "were wed in 1900. ... score", "words 1.00: wed"],
        ),
        (results((hit(),)), ["score 0.500, facets 0.500", "facet 0 (<i>wed) matches document facet 1 (<i>wed)"]),
        (results((), (hit(confidence=None),)), ["nothing found", "1 0.5000"]),
        (results((hit(answer=ROW, matched_spans=()),)), ["Model <b>", "X-20S 3.1 kg"]),
        (results((hit(answer=WIDE_ROW, matched_spans=()),)), ["Column number 3: value 3; Column number 4: value 4"]),
        (results((hit(answer=SOLUTION, matched_spans=()),)), ["It is <dark>. fix: Turn it on."]),
        (results(*[(hit(text=TEXT * 9999, answer=None),) * 9] * 99), ["query 20", "and 79 more"]),
    ],
)
def test_hits_are_the_same_text_in_a_terminal_and_a_notebook(found, lines):
    shown, html = " ".join(repr(found).split()), in_notebook(found)
    assert all(line in shown for line in lines), shown
    tree = ElementTree.fromstring(html)
    assert " ".join("".join(tree.itertext()).split()) == shown and len(html) < 400_000
    assert tree.find(".//script") is None


def test_a_hit_is_a_row():
    (row,) = results((hit(),)).to_dicts()
    assert (row["input"], row["id"], row["payload.title"], row["answer"]) == (0, 'a"<b>', "Q&A <1>", "wed in 1900")
    assert all(isinstance(value, str | int | float | None) for value in row.values())
    (row,) = results((hit(answer=ROW),)).to_dicts()
    assert row["answer"] == "Model: X-20S; <b>: 3.1 kg"


def test_collections_and_documents_are_tables(client):
    client.add([Document("a<b>", "text", {"title": "T"})], collection="news")
    assert "num_documents" in in_notebook(client.get_collection("news"))
    found = client.get_documents("news", ["a<b>"])
    assert repr(found).split()[-3:] == ["a<b>", "text", "T"]
    assert "payload.title" in in_notebook(found[0]) and "payload.title" in found.to_dicts()[0]
    assert "news" in repr(client.list_collections())
