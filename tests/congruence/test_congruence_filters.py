"""Every node of filters means the same in every store: what the evaluator in Python says.

Left out is where SQLite itself differs: it ends strings at a NUL, and compares integers beyond 64 bits as floats.
"""

from typing import Any

import pytest
from congruence.conftest import NAME, Pair
from congruence.corpus import make_corpus, payload_of
from filter_reference import matches

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
)

# The index has no part in filters.
pytestmark = pytest.mark.parametrize("combination", ["sqlite+faiss", "postgres+faiss"], indirect=True, scope="module")
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, 14, 14.0, 2.5, -0.0, "14", "", "x", "a1", "\u00e9\U0001f410", "z\u0001", "nul\u0001"),
    *(2**60, float(2**60), 2**60 + 1, 9007199254740993, 9007199254740992.0, 1e300, 1e-300, "back\\u0000slash"),
    *(1e23, -1e300, 2**63 - 1, -(2**63)),
]
PATHS = ["number", "half", "mixed", "mixed.a", "author", "author.name", "tags", "tags.0", "tags.deep", "date", "absent"]
PATHS += ["big", "odd", "huge", "e\u00e9 f"]
RANGES: list[Filter] = [
    *(Range(path, **{bound: value}) for path in PATHS for bound in ("gt", "gte", "lt", "lte") for value in SCALARS[3::4]
      if not isinstance(value, bool)),
    *(Range("number", gt=3, lte=17.5), Range("date", gte="2010", lt="2020"), Range("half", gt=1, lt=1)),
]  # fmt: skip
LEAVES: list[Filter] = [
    *(kind(path, value) for kind in (Equals, Contains) for path in PATHS for value in SCALARS),
    *(Exists(path) for path in PATHS),
    *(OneOf(path, SCALARS[place : place + 7]) for path in PATHS for place in range(0, len(SCALARS), 6)),
    OneOf("number", list(range(0, 9000, 3))),
]
JOINED: list[Filter] = [
    *(AllOf([]), AnyOf([]), NoneOf([]), NoneOf([NoneOf([])]), NoneOf([Exists("big")])),
    *(kind([Equals("mixed", 14), Range("number", lt=40), Exists("odd")]) for kind in (AllOf, AnyOf, NoneOf)),
    AllOf([AnyOf([Equals("author.name", "a1"), Contains("tags", "t2")]), NoneOf([Equals("mixed", None)])]),
]


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    return make_corpus()[:100]


def ids(engine: CollectionEngine, filter: Filter) -> list[str]:
    return [document.id for document in engine.list_documents(NAME, page_size=1000, where=filter).documents]


@pytest.mark.parametrize("filters", [LEAVES, RANGES, JOINED], ids=["leaves", "ranges", "joined"])
def test_filters_mean_what_the_evaluator_says(filled: Pair, corpus: list[Document], filters: list[Filter]) -> None:
    there = {document.id: document for document in filled.found.list_documents(NAME, page_size=1000).documents}
    wrong = []
    for filter in filters:
        expected = sorted(id for id, document in there.items() if matches(filter, document.payload))
        if ids(filled.found, filter) != expected:
            wrong.append(filter)
    assert not wrong


def test_payloads_come_back_as_they_were(filled: Pair, corpus: list[Document]) -> None:
    held = {document.id: document for document in filled.found.list_documents(NAME, page_size=1000).documents}
    written = {document.id: document for document in corpus}
    for id, document in held.items():
        assert repr(document.payload) == repr(dict(written[id].payload)), id
        assert document.text == written[id].text
    assert repr(payload_of(1)["huge"]) == "1e+300"


def test_warnings_about_filters_are_the_same(filled: Pair) -> None:
    for path in (*PATHS, "autor.name", "numbr", "author.bron"):
        for filter in (Equals(path, "x"), Equals(path, 3), Contains(path, 1), Range(path, gt="a")):
            filled.agree(lambda engine, filter=filter: engine.count(NAME, where=filter).warnings)
