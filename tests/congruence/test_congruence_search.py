"""Every combination of store and index gives the reference's pages: exact ones to the bit."""

from typing import Any

import numpy as np
import pytest
from congruence.conftest import NAME, Pair
from congruence.corpus import WORDS, facets_of, make_corpus, overlap, said

from facets.documents import CollectionEngine, Equals, Filter, Range, SearchRequest, SearchResult

QUERIES = np.stack([facets_of(seed) for seed in range(5000, 5012)])
TEXTS = [f"{WORDS[n % 12]} {WORDS[(n * 5 + 1) % 12]}" for n in range(len(QUERIES))]


def search(engine: CollectionEngine, **request: object) -> SearchResult:
    return engine.search(NAME, SearchRequest(**{"top_k": 10, **request}))  # type: ignore[arg-type]  # any field


REQUESTS = {
    "facets": {"facets": QUERIES},
    "one facet": {"facets": QUERIES[:, :1]},
    "many facets": {"facets": np.concatenate([QUERIES, QUERIES[::-1], QUERIES[:, :2]], axis=1)},
    "weights": {"facets": QUERIES, "weights": np.tile([0.7, 0.05, 0.25], (len(QUERIES), 1))},
    "a weight of zero": {"facets": QUERIES, "weights": np.tile([0.0, 1.0, 2.0], (len(QUERIES), 1))},
    "a facet of zeros": {"facets": QUERIES * np.array([1, 0, 1], dtype=np.float32)[None, :, None]},
    "any facet": {"facets": QUERIES, "combine": "any"},
    "ties": {"facets": facets_of(5)[None], "top_k": 60},
    "everything": {"facets": QUERIES[:1], "top_k": 1000},
    "hybrid": {"facets": QUERIES, "texts": TEXTS},
    "words": {"texts": TEXTS, "mode": "lexical"},
    "phrases": {"facets": QUERIES, "texts": [f'"{text}" {WORDS[0]}' for text in TEXTS]},
    "names": {"facets": QUERIES, "texts": [f"What is {one.id}?" for one in make_corpus()[: len(QUERIES)]]},
    "parts": {"facets": QUERIES, "texts": TEXTS, "group": False},
    "diverse": {"facets": QUERIES, "diversify": 0.4},
    "half of them": {"facets": QUERIES, "where": Equals("mixed", None), "texts": TEXTS},
    "a twentieth": {"facets": QUERIES, "where": Range("number", lt=20)},
    "none": {"facets": QUERIES, "where": Equals("number", "no number")},
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_exact_pages_are_equal_to_the_bit(filled: Pair, request_: dict[str, object]) -> None:
    expected, found = filled.expected, filled.found
    wanted, got = search(expected, exact=True, **request_), search(found, exact=True, **request_)
    assert said(got) == said(wanted)
    assert got.index_revision == wanted.index_revision
    assert got.exhaustive or request_.get("mode") == "lexical"


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_approximate_pages_overlap(filled: Pair, request_: dict[str, Any]) -> None:
    wanted, got = search(filled.expected, exact=True, **request_), search(filled.found, **request_)
    assert overlap(wanted, got) >= (0.98 if filled.approximate else 1.0)
    if "diversify" not in request_ and request_.get("group", True):
        first = {
            name: value[:1] if name in ("facets", "texts", "weights") else value for name, value in request_.items()
        }
        [hits] = search(filled.expected, **{**first, "top_k": 1000}).hits
        scores = {hit.id: hit.score for hit in hits}
        assert all(scores[hit.id] == hit.score for hit in got.hits[0])


def test_the_index_is_one_where_it_is_due(filled: Pair) -> None:
    """Else nothing here would be tested."""
    assert (filled.found.get_collection(NAME).index_kind != "exact") == filled.approximate


def test_filters_are_part_of_the_key_of_what_is_remembered(filled: Pair) -> None:
    filters: list[Filter] = [Equals("number", 30), Equals("number", 31), Equals("number", 30)]
    for filter in filters:
        filled.agree(lambda engine, filter=filter: said(search(engine, facets=QUERIES[:2], where=filter)))
