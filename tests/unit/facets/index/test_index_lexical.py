"""The lexical index against BM25 written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import reference_bm25

from facets.index.lexical import LexicalIndex, TermCounts

NONE = np.empty(0, dtype=np.int64)


def counts(rng: np.random.Generator) -> TermCounts:
    terms = np.sort(rng.choice(30, rng.integers(0, 12), replace=False))
    return TermCounts(terms.astype(np.uint32), rng.integers(1, 5, len(terms)).astype(np.uint16))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), num_documents=st.integers(1, 80), batch=st.integers(1, 20))
def test_scores_match_reference_through_writes(seed: int, num_documents: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    documents = [counts(rng) for _ in range(num_documents)]
    index = LexicalIndex()
    for start in range(0, num_documents, batch):
        rows = 3 * np.arange(start, min(num_documents, start + batch))
        index.apply(start, added=rows, removed=NONE, terms=documents[start : start + batch])
    gone = rng.random(num_documents) < 0.3
    index.apply(7, added=NONE, removed=3 * np.flatnonzero(gone))
    kept = np.flatnonzero(~gone)
    assert len(index) == len(kept)
    query = rng.integers(0, 35, 4).tolist()
    found = index.search(query, num_documents, also=3 * np.arange(num_documents))
    assert found.rows.tolist() == (3 * kept).tolist() and found.revision == 7
    if len(kept):
        expected = reference_bm25(query, [documents[n] for n in kept])
        np.testing.assert_allclose(found.scores, expected, rtol=1e-4, atol=1e-5)
        assert (found.scores <= found.upper_bound).all()
        held = [{term for term in query if term in documents[n].hashes} for n in kept]
        shares = [sum(found.rarities[term] for term in of) / sum(found.rarities.values()) for of in held]
        np.testing.assert_allclose(found.coverage, shares, rtol=1e-4, atol=1e-5)


def test_only_the_best_and_allowed_documents_come_back() -> None:
    index = LexicalIndex()
    one = TermCounts(np.array([5], dtype=np.uint32), np.array([1], dtype=np.uint16))
    long = TermCounts(np.array([5, 6], dtype=np.uint32), np.array([1, 9], dtype=np.uint16))
    index.apply(1, added=np.array([1, 2, 3]), removed=NONE, terms=[long, one, long])
    assert index.search([5], 1).rows.tolist() == [2]
    assert index.search([5], 1, allowed_rows=np.array([3])).rows.tolist() == [3]
    assert index.search([5], 1, also=np.array([1, 9])).rows.tolist() == [1, 2]
    assert index.search([99], 5).rows.tolist() == []
    assert index.having_all([5, 6]).tolist() == [1, 3]


def test_best_document_comes_before_hundreds_of_ties() -> None:
    index = LexicalIndex()
    common = TermCounts(np.array([5, 7], dtype=np.uint32), np.array([1, 1], dtype=np.uint16))
    rare = TermCounts(np.array([5, 6], dtype=np.uint32), np.array([1, 1], dtype=np.uint16))
    index.apply(1, added=np.arange(500), removed=NONE, terms=[common] * 499 + [rare])
    found = index.search([5, 6], 10)
    assert found.rows[found.scores.argmax()] == 499 and len(found.rows) <= 20


def test_removed_documents_leave_no_trace() -> None:
    rng = np.random.default_rng(1)
    documents = [counts(rng) for _ in range(3000)]
    index = LexicalIndex()
    index.apply(1, added=np.arange(3000), removed=NONE, terms=documents)
    index.apply(2, added=NONE, removed=np.arange(0, 2900))
    index.apply(3, added=np.arange(3000, 3010), removed=NONE, terms=documents[:10])
    found = index.search([3, 4], 200, also=np.arange(2900, 3010))
    assert found.rows.tolist() == list(range(2900, 3010))
    expected = reference_bm25([3, 4], documents[2900:] + documents[:10])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("query", [[], [1, 2, 3]])
def test_empty_index_finds_nothing(query: list[int]) -> None:
    assert len(LexicalIndex().search(query, 5).rows) == 0
