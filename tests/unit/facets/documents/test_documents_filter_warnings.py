"""Filters that can find nothing say so: fields that are not there, values of another type."""

from collections.abc import Callable

import numpy as np
import pytest

from facets.documents import (
    AllOf,
    CollectionEngine,
    Contains,
    Document,
    Equals,
    Exists,
    Filter,
    NoneOf,
    OneOf,
    Range,
    SearchRequest,
)

PAYLOADS: list[dict[str, object]] = [
    {"year": 2020, "author": {"full name": "Ada"}, "tags": ["a", "b"], "mixed": 1, "open": True},
    {"year": 2021.5, "author": {"full name": "Bo"}, "tags": ["c"], "mixed": "one", "nothing": None},
]


@pytest.fixture
def engine(open_engine: Callable[..., CollectionEngine]) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=1, dim=2)
    documents = [
        Document(id=f"d{n}", text="Text.", payload=payload, facet_embeddings=np.eye(1, 2))  # type: ignore[arg-type]
        for n, payload in enumerate(PAYLOADS)
    ]
    made.upsert("docs", documents)
    return made


def told(engine: CollectionEngine, filter: Filter) -> list[str]:
    request = SearchRequest(texts=["text"], mode="lexical", top_k=5, where=filter)
    found = [
        engine.search("docs", request).warnings,
        engine.count("docs", where=filter).warnings,
        engine.list_documents("docs", where=filter).warnings,
    ]
    assert found[0] == found[1] == found[2]
    return [one.message for one in found[0]]


@pytest.mark.parametrize(
    "filter",
    [
        Equals("year", 2020),
        Equals("year", 1.5),
        Equals("mixed", "two"),
        Equals("nothing", None),
        Equals("open", False),
        OneOf("mixed", [1, "x"]),
        Contains("tags", "z"),
        Range("year", gte=1),
        Exists("author.full name"),
        NoneOf([Equals("year", 3)]),
        AllOf([]),
    ],
)
def test_filter_that_may_find_something_is_not_odd(engine: CollectionEngine, filter: Filter) -> None:
    assert told(engine, filter) == []


@pytest.mark.parametrize(
    ("filter", "parts"),
    [
        (Equals("yaer", 2020), ["no document has a field 'yaer'", "did you mean 'year'?"]),
        (Equals("author.fullname", "Ada"), ["did you mean 'author.full name'?"]),
        (Exists("zzzzzz"), ["no document has a field 'zzzzzz'"]),
        (Equals("year", "2020"), ["'year' is compared with strings, the documents contain numbers"]),
        (Range("year", gte="2020-01-01"), ["compared with strings"]),
        (Equals("tags", "a"), ["compared with strings, the documents contain lists"]),
        (Contains("year", 2020), ["compared with lists, the documents contain numbers"]),
        (Equals("year", True), ["compared with booleans"]),
        (NoneOf([AllOf([Equals("yeer", 1)])]), ["'yeer'"]),
    ],
)
def test_odd_filter_says_what_is_odd(engine: CollectionEngine, filter: Filter, parts: list[str]) -> None:
    (message,) = told(engine, filter)
    assert all(part in message for part in parts), message


def test_delete_by_an_odd_filter_says_so(engine: CollectionEngine) -> None:
    done = engine.delete("docs", where=Equals("yaer", 2020))
    assert done.num_deleted == 0
    assert [one.field for one in done.warnings] == ["yaer"]
    assert engine.delete("docs", where=Equals("year", 2020)).warnings == ()
