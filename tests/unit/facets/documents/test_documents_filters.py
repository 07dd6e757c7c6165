"""Filters: SQL against the Python reference, and what is refused."""

import json
import sqlite3

import pytest
from filter_reference import matches
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.documents import AllOf, AnyOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range
from facets.documents.dialects import SQLITE
from facets.documents.filters import MAX_FILTER_DEPTH, MAX_FILTER_NODES, validate
from facets.errors import InvalidInputError

KEYS = st.sampled_from(["a", "b", "c.d", "e\u00e9 f"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 1.0, -2.5, "", "1", "true", "x", "xy", "\u00e9", "2020-01-01", "it's", 'say "hi"']),
)
PATHS = st.sampled_from(["a", "b", "a.b", "a.a", "b.a.b", "e\u00e9 f"])
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
    ],
)
def test_invalid_filter_is_refused(filter: Filter) -> None:
    with pytest.raises(InvalidInputError) as caught:
        validate(filter)
    assert caught.value.field == "where"


def test_too_deep_filter_is_refused() -> None:
    deep: Filter = Exists("a")
    for _ in range(MAX_FILTER_DEPTH):
        deep = NoneOf([deep])
    with pytest.raises(InvalidInputError, match="deeper"):
        validate(deep)
