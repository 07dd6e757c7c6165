"""Filters: SQL against the Python reference, and what is refused."""

import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import numpy as np
import pytest
from filter_reference import matches
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.documents import (
    AllOf,
    AnyOf,
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
from facets.documents.dialects import SQLITE
from facets.documents.filters import MAX_FILTER_DEPTH, filter_warnings, validate
from facets.errors import InvalidInputError
from facets.index.config import MAX_FILTER_NODES

KEYS = st.sampled_from(["a", "b", "c.d", "e\u00e9 f"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 1.0, -2.5, "", "1", "true", "x", "xy", "\u00e9", "2020-01-01", "it's", 'say "hi"']),
)
PATHS = st.sampled_from(["a", "b", "a.b", "a.a", "b.a.b", "e\u00e9 f", '"c.d"', '"a"."c.d".b'])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)
NUMBERS = st.integers(-3, 3) | st.floats(-3, 3)
TEXTS = st.sampled_from(["", "x", "xy", "2020", "\u00e9"])


def ranges(path: str) -> st.SearchStrategy[Filter]:
    bounds = st.sampled_from([("gt",), ("gte",), ("lt",), ("lte",), ("gt", "lte"), ("gte", "lt")])
    values = st.sampled_from([NUMBERS, TEXTS]).flatmap(lambda one: st.tuples(one, one))
    return st.builds(lambda names, chosen: Range(path, **dict(zip(names, chosen, strict=False))), bounds, values)


LEAVES = st.one_of(
    st.builds(Equals, PATHS, SCALARS),
    st.builds(OneOf, PATHS, st.lists(SCALARS, min_size=1, max_size=4)),
    st.builds(Exists, PATHS),
    st.builds(Contains, PATHS, SCALARS),
    PATHS.flatmap(ranges),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, max_size=3)),
        st.builds(AnyOf, st.lists(inner, max_size=3)),
        st.builds(NoneOf, st.lists(inner, max_size=3)),
    ),
    max_leaves=6,
)


def sql_matches(filter: Filter, payload: object) -> int:
    expression, parameters = SQLITE.filter_sql(filter)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (payload TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", (json.dumps(payload, ensure_ascii=False),))
        return int(connection.execute(f"SELECT {expression} FROM t", parameters).fetchone()[0])


@settings(max_examples=150)
@given(filter=FILTERS, payload=PAYLOADS)
def test_sql_agrees_with_reference(filter: Filter, payload: dict[str, object]) -> None:
    validate(filter)
    assert sql_matches(filter, payload) == matches(filter, payload)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "filter",
    [
        Equals("", 1),
        Equals("a..b", 1),
        Equals('a"b', 1),
        Equals('"a', 1),
        Equals('"a"b', 1),
        Equals("a\\b", 1),
        Equals("a", float("nan")),
        Equals("a", 2**63),
        Equals("a", "x\0y"),
        Equals("a", [1]),  # type: ignore[arg-type]
        OneOf("a", []),
        OneOf("a", "abc"),
        Range("a"),
        Range("a", gt=1, lt="x"),
        Range("a", gt=True),
        AllOf([Equals("a", 1), "a = 1"]),  # type: ignore[list-item]
        AllOf([Exists("a")] * MAX_FILTER_NODES),
        reduce(lambda inner, _: NoneOf([inner]), range(MAX_FILTER_DEPTH), Exists("a")),
    ],
)
def test_invalid_filter_is_refused(filter: Filter) -> None:
    with pytest.raises(InvalidInputError) as caught:
        validate(filter)
    assert caught.value.field == "where"


STORED: list[dict[str, object]] = [
    {"year": 2020, "author": {"full name": "Ada"}, "tags": ["a", "b"], "mixed": 1, "open": True},
    {"year": 2021.5, "author": {"full name": "Bo"}, "tags": ["c"], "mixed": "one", "nothing": None},
]


@pytest.fixture
def engine(open_engine: Callable[..., CollectionEngine]) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=1, dim=2)
    documents = [
        Document(id=f"d{n}", text="Text.", payload=payload, facet_embeddings=np.eye(1, 2))  # type: ignore[arg-type]
        for n, payload in enumerate(STORED)
    ]
    made.upsert("docs", documents)
    return made


def told(engine: CollectionEngine, filter: Filter) -> list[str]:
    request = SearchRequest(texts=["text"], mode="lexical", top_k=5, where=filter)
    warnings = engine.search("docs", request).warnings
    assert warnings == engine.count("docs", where=filter).warnings
    assert warnings == engine.list_documents("docs", where=filter).warnings
    assert warnings == engine.delete("docs", where=filter).warnings
    return [one.message for one in warnings]


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
    ],
)
def test_filter_that_may_find_something_is_not_odd(engine: CollectionEngine, filter: Filter) -> None:
    assert told(engine, filter) == []


def test_a_field_that_only_documents_in_the_middle_have_is_not_odd_where_some_match(engine: CollectionEngine) -> None:
    for name, payload in (("a", {"size": 1}), ("b", {"status": "open"}), ("e", {"depth": 2})):
        facets = np.eye(1, 2)
        batch = [Document(id=f"{name}{n}", text="Text.", payload=payload, facet_embeddings=facets) for n in range(200)]
        engine.upsert("docs", batch)  # type: ignore[arg-type]
    (message,) = told(engine, AllOf([Equals("status", "closed")]))
    assert message.startswith("no examined document has a field 'status'")
    assert told(engine, Equals("dept", 1)) == ["no examined document has a field 'dept': did you mean 'depth'?"]
    assert told(engine, Equals("status", "open")) == []
    assert engine.count("docs").num_documents == 400 + len(STORED)


@pytest.mark.parametrize("filter", [AllOf([]), AnyOf([]), NoneOf([AnyOf(())]), AnyOf([Exists("year"), AllOf([])])])
def test_a_filter_without_conditions_deletes_nothing(engine: CollectionEngine, filter: Filter) -> None:
    with pytest.raises(InvalidInputError, match=r"where has an empty list of conditions, .* expected at least one"):
        engine.delete("docs", where=filter)
    assert engine.count("docs").num_documents == len(STORED)


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


def test_warnings_cost_little_however_many_fields_documents_and_filter_have(engine: CollectionEngine) -> None:
    facets = np.eye(1, 2)
    for n in range(60):
        payload = {f"key {n} {i}": None for i in range(3000)}
        engine.upsert("docs", [Document(id=f"wide{n}", text="Text.", payload=payload, facet_embeddings=facets)])
    where = AnyOf([Exists(f"yeer{i}") for i in range(12)] + [Exists("y" * 10_000), Exists("year")])
    tracemalloc.start()
    try:
        warnings = engine.count("docs", where=where).warnings
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20
    assert [one.field for one in warnings] == [f"yeer{i}" for i in range(12)] + ["y" * 10_000]
    assert warnings[0].message == "no examined document has a field 'yeer0': did you mean 'year'?"
    assert sum("did you mean" in one.message for one in warnings) < len(warnings)


def test_writes_do_not_wait_for_the_warnings_of_a_delete(
    engine: CollectionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create_collection("other", model="m", model_revision="1", num_facets=1, dim=2)
    document = Document(id="a", text="Text.", facet_embeddings=np.eye(1, 2))
    with ThreadPoolExecutor(1) as other_call:

        def after_a_write(*arguments: object, **options: object) -> object:
            other_call.submit(engine.upsert, "other", [document]).result(timeout=10)
            return filter_warnings(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr("facets.documents.view.filter_warnings", after_a_write)
        (warning,) = engine.delete("docs", where=Exists("yaer")).warnings
    assert warning.field == "yaer"
