"""What waits while new documents are folded into the index of the backend: little, however many there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from references import reference_bm25

from facets.index import exact, live
from facets.index.backends import FaissBackend
from facets.index.config import EngineConfig
from facets.index.exact import document_codes
from facets.index.faiss_index import FaissIndex
from facets.index.lexical import LexicalIndex, TermCounts
from facets.index.live import LiveIndex


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float16)


class Source:
    """Documents of four facets in memory."""

    num_facets, dim = 4, 32

    def __init__(self, num_documents: int) -> None:
        self.facets = unit(np.random.default_rng(1).standard_normal((num_documents, 4, 32)))

    def rows(self) -> NDArray[np.int64]:
        return np.arange(len(self.facets))

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        return rows, self.facets[rows]


def folded(source: Source) -> tuple[LiveIndex, FaissIndex]:
    """A collection whose first 500 documents are in inverted lists; the others wait to be folded."""
    config = EngineConfig(exact_max_facets=100)
    base = FaissBackend(config).build(
        lambda: [source.read(np.arange(500))], num_documents=500, num_facets=source.num_facets
    )
    assert base is not None
    index = LiveIndex(source, FaissBackend(config), config, base=base)
    index.catch_up()
    return index, base


class Vanishing(Source):
    """All documents are taken away after so many reads."""

    def __init__(self, num_documents: int, *, reads: int) -> None:
        super().__init__(num_documents)
        self.reads = reads

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        self.reads -= 1
        return super().read(rows if self.reads >= 0 else rows[:0])


def found(index: LiveIndex, source: Source, row: int) -> int:
    query = source.facets[row][None, :1].astype(np.float32)
    return int(index.search(query, 1, allowed_rows=None, exhaustive=True).candidates.rows[0, 0])


@pytest.mark.parametrize("reads", range(1, 4))
def test_documents_may_all_be_taken_away_while_their_index_is_built(reads: int) -> None:
    source, config = Vanishing(300, reads=reads), EngineConfig(exact_max_facets=100)
    index = LiveIndex(source, FaissBackend(config), config)
    index.catch_up()
    index.maintain(lambda: False)
    index.apply(1, added=np.empty(0, dtype=np.int64), removed=source.rows())
    index.maintain(lambda: False)
    query = source.facets[0][None, :1].astype(np.float32)
    assert len(index) == 0
    assert (index.search(query, 1, allowed_rows=None, exhaustive=False).candidates.rows < 0).all()


def test_folding_adds_facets_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "FOLD_FACETS", 40)
    source, sizes = Source(900), list[int]()
    index, base = folded(source)
    add = base.add_prepared
    monkeypatch.setattr(base, "add_prepared", lambda rows, *rest: (sizes.append(len(rows)), add(rows, *rest)))
    index.maintain(lambda: False)
    assert len(base) == len(index) == 900 and set(sizes) == {10}
    assert [found(index, source, row) for row in (3, 499, 500, 899)] == [3, 499, 500, 899]


def test_codes_come_from_lists_and_tail_but_not_of_removed_or_unknown_documents() -> None:
    source = Source(900)
    index, _ = folded(source)
    long = unit(np.random.default_rng(2).standard_normal((2, 4, 32)))
    index.apply(1, added=np.array([950, 950]), removed=np.array([7, 600]), units_SKD=long)
    rows = np.array([3, 8, 499, 500, 601, 950])
    held = index.codes_of(rows)
    assert held is not None
    expected = document_codes(np.concatenate([source.facets[rows[:-1]], long]))[0].reshape(-1, 32)
    np.testing.assert_array_equal(held[0], expected)
    assert held[1].tolist() == [0, 4, 8, 12, 16, 20, 28]
    assert all(index.codes_of(np.array([3, row])) is None for row in (7, 600, 901))


def test_the_oldest_documents_leave_the_exact_index_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(exact.BLOCK_FACETS, "cpu", 400)
    source = Source(5000)
    index = exact.ExactIndex(num_facets=4, dim=32)
    index.add(source.rows(), source.facets)
    for start in range(0, 4900, 350):
        index.remove(np.arange(start, start + 350))
        assert index.rows().tolist() == list(range(start + 350, 5000))
        assert len(index.slots) - len(index) < 100, "whole blocks of holes should have gone"
    index.add(np.array([5000]), source.facets[:1])
    assert index.oldest(101).tolist() == [*range(4900, 5001)]
    query = source.facets[4950][None, :1].astype(np.float32)
    assert index.search(query, 1).rows[0, 0] == 4950


NONE = np.empty(0, dtype=np.int64)


def counts(rng: np.random.Generator) -> TermCounts:
    terms = np.sort(rng.choice(30, rng.integers(0, 12), replace=False))
    return TermCounts(terms.astype(np.uint32), rng.integers(1, 5, len(terms)).astype(np.uint16))


@settings(max_examples=40)
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
