"""Titles and other fields of payloads are searched with the text."""

from collections.abc import Callable

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.documents.fields import SearchedText, count_terms, field_texts, hash_terms
from facets.documents.types import JsonValue
from facets.errors import InvalidInputError

OpenEngine = Callable[..., CollectionEngine]
DOCUMENTS: dict[str, tuple[str, dict[str, JsonValue]]] = {
    "zyzzyva": ("Contents of the spring number.", {"title": "Zyzzyva quarterly"}),
    "bees": ("They make honey and pollinate plants.", {"Title": "On the life of bees"}),
    "invoice": ("Please find the amount due below.", {"subject": "Invoice AB-1234 is overdue"}),
    "storm": ("Roofs were torn off in three villages.", {"headline": "Storm Bertha hits the coast"}),
    "kettle": ("Switches itself off when it boils.", {"name": "Electric kettle", "author": {"name": "Ada Lovelace"}}),
    "tags": ("Nothing to see here.", {"title": ["first heading", 2024, None, True]}),
    "plain": ("The kettle in the kitchen boils every quarter of an hour.", {}),
    "empty": ("", {"title": "Only a title"}),
}


@pytest.fixture
def engine(open_engine: OpenEngine) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=32)
    store(made, "docs")
    return made


def store(engine: CollectionEngine, collection: str) -> None:
    engine.upsert(
        collection,
        [
            Document(id=id, text=text, payload=payload, facet_embeddings=np.eye(2, 32))
            for id, (text, payload) in DOCUMENTS.items()
        ],
    )


def found(engine: CollectionEngine, query: str, collection: str = "docs") -> list[str]:
    request = SearchRequest(texts=[query], mode="lexical", top_k=10)
    return [hit.id for hit in engine.search(collection, request).hits[0]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Zyzzyva quarterly", "zyzzyva"),
        ("bee", "bees"),
        ("AB-1234", "invoice"),
        ("overdue invoices", "invoice"),
        ("storm bertha", "storm"),
        ("electric kettles", "kettle"),
        ("2024", "tags"),
        ("only a title", "empty"),
        ('"only a title"', "empty"),
        ('"kettle in the kitchen"', "plain"),
    ],
)
def test_words_of_a_field_find_the_document(engine: CollectionEngine, query: str, expected: str) -> None:
    assert found(engine, query)[0] == expected


def test_words_of_fields_are_matched_and_cover_the_query(engine: CollectionEngine) -> None:
    first, second = (
        engine.search("docs", SearchRequest(texts=[query], mode="lexical", top_k=1)).hits[0][0]
        for query in ('"zyzzyva quarterly"', '"quarterly contents"')
    )
    assert first.id == second.id == "zyzzyva"
    assert first.lexical_score > 2 * second.lexical_score, "no phrase goes over the border of title and text"
    assert first.matched_words == ("zyzzyva", "quarterly") and first.signals["coverage"] == pytest.approx(1.0)


def test_search_fields_of_a_collection_replace_the_default(open_engine: OpenEngine) -> None:
    engine = open_engine()
    engine.create_collection(
        "docs", model="m", model_revision="1", num_facets=2, dim=32, search_fields={"author.name": 1.0}
    )
    store(engine, "docs")
    assert found(engine, "lovelace") == ["kettle"]
    assert found(engine, "electric") == []
    assert engine.get_collection("docs").search_fields == {"author.name": 1.0}


def test_words_of_a_field_count_as_often_as_it_weighs() -> None:
    said = SearchedText("bees fly", field_texts({"title": "bees bees", "note": "wasp"}, {"title": 2.0, "note": 0.1}))
    counted = count_terms(said, "en", id="bees")
    counts = dict(zip(counted.hashes.tolist(), counted.counts.tolist(), strict=True))
    assert [counts[hash] for hash in hash_terms(["bee", "fli", "wasp"])] == [5, 1, 1]


@pytest.mark.parametrize(
    ("payload", "texts"),
    [
        ({"title": "  "}, []),
        ({"title": None}, []),
        ({"title": True}, []),
        ({"title": {"en": "Bees"}}, []),
        ({"title": [["nested"], {"a": "b"}, "kept"]}, ["kept"]),
        ({"title": 3.5}, ["3.5"]),
        ({"TITLE": "loud", "title": "exact"}, ["exact"]),
        ({"Title": "capital"}, ["capital"]),
        ({}, []),
    ],
)
def test_values_of_any_kind_are_read_or_passed_over(payload: dict[str, JsonValue], texts: list[str]) -> None:
    assert [one.text for one in field_texts(payload, {"title": 2.0})] == texts


def test_a_key_with_a_dot_stands_in_quotes() -> None:
    payload: dict[str, JsonValue] = {"V1.0": {"note": "Bees"}, "v1": {"0": "wasps"}}
    fields = field_texts(payload, {'"v1.0".note': 1.0, "v1.0": 1.0})
    assert [(one.name, one.text) for one in fields] == [('"V1.0".note', "Bees"), ("v1.0", "wasps")]


@pytest.mark.parametrize(
    "fields",
    [
        {"": 1.0},
        {'a"b': 1.0},
        {"title": 0.0},
        {"title": float("nan")},
        {"title": 101.0},
        {f"f{n}": 1.0 for n in range(33)},
    ],
)
def test_search_fields_out_of_the_rules_are_refused(open_engine: OpenEngine, fields: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match="search_fields"):
        open_engine().create_collection(
            "docs", model="m", model_revision="1", num_facets=2, dim=32, search_fields=fields
        )
