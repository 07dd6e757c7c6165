"""Exact and FAISS search against the obvious reference."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from references import reference_search

from facets.documents.encoding import decode_units, encode_units
from facets.index.backends import make_backend
from facets.index.base import FacetIndex
from facets.index.candidates import Meetings, meet, select_candidates
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex, document_codes
from facets.index.faiss_index import FaissIndex
from facets.language.vectors import unit_rows

Rows = NDArray[np.int64]


def weighted(facets: NDArray[np.floating]) -> NDArray[np.float32]:
    """Queries whose facets weigh the same: norms are weights."""
    return unit_rows(facets) / np.float32(facets.shape[-2])


def met_by(query: NDArray[np.floating], facets: NDArray[np.floating]) -> Meetings:
    """``meet`` for documents of equally many facets."""
    num, num_facets, dim = facets.shape
    return meet(query.astype(np.float32), facets.reshape(-1, dim), np.arange(num + 1) * num_facets)


def fill(kind: str, rows: Rows, facets: NDArray[np.float16], *, recall_target: float = 0.99) -> FacetIndex:
    if kind in ("exact", "preselected"):
        index = ExactIndex(num_facets=facets.shape[1], dim=facets.shape[2], preselect=kind == "preselected")
        half = len(rows) // 2
        index.add(rows[:half], facets[:half])
        index.add(rows[half:], facets[half:])
        return index
    backend = make_backend(EngineConfig(recall_target=recall_target))
    built = backend.build(
        lambda: ((rows[start : start + 100], facets[start : start + 100]) for start in range(0, len(rows), 100)),
        num_documents=len(rows),
        num_facets=facets.shape[1],
    )
    assert built is not None
    return built


def assert_contains_best(
    index: FacetIndex, queries: NDArray[np.float32], truth: NDArray[np.float32], rows: Rows, top_k: int
) -> None:
    """Every document at or above the top_k-th true score is a candidate of an exhaustive search, with a right score."""
    found = index.search(queries, top_k, allowed_rows=np.sort(rows), exhaustive=True)
    assert found.exhaustive
    for line, scores, true in zip(found.rows, found.scores, truth, strict=True):
        kth = np.sort(true)[::-1][min(top_k, len(true)) - 1]
        assert set(rows[true >= kth]) <= set(line[line >= 0])
        true_of = dict(zip(rows.tolist(), true, strict=True))
        expected = [true_of[row] for row in line[line >= 0].tolist()]
        np.testing.assert_allclose(scores[line >= 0], expected, atol=index.score_error)


@pytest.mark.parametrize("kind", ["exact", "preselected", "faiss"])
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    num_documents=st.integers(1, 300),
    num_facets=st.integers(1, 4),
    query_facets=st.integers(1, 3),
    top_k=st.integers(1, 20),
    copies=st.integers(0, 30),
)
def test_exhaustive_search_finds_reference_best(
    kind: str, seed: int, num_documents: int, num_facets: int, query_facets: int, top_k: int, copies: int
) -> None:
    rng = np.random.default_rng(seed)
    facets = unit_rows(rng.standard_normal((num_documents, num_facets, 32)))
    facets[: copies + 1] = facets[0]  # documents that tie
    facets = facets.astype(np.float16)
    queries = unit_rows(rng.standard_normal((3, query_facets, 32)))
    queries[0, 0] = facets[0, 0]
    queries = weighted(queries)
    rows = rng.permutation(10 * num_documents)[:num_documents].astype(np.int64)
    index = fill(kind, rows, facets)
    truth = reference_search(queries, facets)
    assert_contains_best(index, queries, truth, rows, top_k)
    allowed = rng.random(num_documents) < 0.3
    assert_contains_best(index, queries, truth[:, allowed], rows[allowed], top_k) if allowed.any() else None
    gone = rng.random(num_documents) < 0.5
    assert index.remove(rows[gone]) == gone.sum()
    assert len(index) == (~gone).sum()
    assert set(index.rows()) == set(rows[~gone])
    if not gone.all():
        assert_contains_best(index, queries, truth[:, ~gone], rows[~gone], top_k)


def test_approximate_search_reaches_recall_target() -> None:
    rng = np.random.default_rng(2)
    centers = unit_rows(rng.standard_normal((40, 32)))

    def texts(num: int) -> NDArray[np.float64]:
        """Two facets each, of one of ten topics of four clusters."""
        chosen = 4 * rng.integers(0, 10, (num, 1)) + rng.integers(0, 4, (num, 2))
        return centers[chosen] + 0.1 * rng.standard_normal((num, 2, 32))

    facets = unit_rows(texts(4000)).astype(np.float16)
    queries = weighted(texts(50))
    index = fill("faiss", np.arange(4000), facets)
    assert isinstance(index, FaissIndex)
    truth = np.stack([np.argsort(-met_by(query, facets).scores)[:10] for query in queries])
    found = index.search(queries, 10)
    assert not found.exhaustive, "the index should not need all its lists here"
    hits = [len(set(best) & set(line)) for best, line in zip(truth, found.rows, strict=True)]
    assert np.mean(hits) / 10 >= 0.95


def test_the_best_by_the_sum_is_found_behind_many_that_are_better_by_one_facet() -> None:
    rng = np.random.default_rng(4)
    num, num_others = 12_000, 9_000  # one facet of each of the others is nearly one of the query's
    facets = rng.standard_normal((num, 3, 16))
    which = np.arange(num_others)
    facets[which, which % 3] = 9 * np.eye(3, 16)[which % 3]
    facets[:, :, :3] += 0.1 * rng.standard_normal((num, 3, 3))
    facets[-1] = np.eye(3, 16) + 0.04 * rng.standard_normal((3, 16))
    facets /= np.linalg.norm(facets, axis=2, keepdims=True)
    index = fill("faiss", np.arange(num), facets.astype(np.float16), recall_target=0.8)
    found = index.search((np.eye(3, 16) / 3)[None].astype(np.float32), 1)
    assert not found.exhaustive
    assert num - 1 in found.rows[0]


def test_few_found_by_several_facets_are_compared_wherever_their_codes_lie() -> None:
    rng = np.random.default_rng(5)
    facets = unit_rows(rng.standard_normal((3000, 4, 16))).astype(np.float16)
    index = FaissIndex.train(facets.reshape(-1, 16)[:4000], num_facets=4, num_documents=200)  # so room has to be added
    for start in range(0, 3000, 500):
        index.add(np.arange(start, start + 500), facets[start : start + 500])
    index.num_probes = 1
    queries = weighted(rng.standard_normal((20, 2, 16)))
    found = index.search(queries, 200)  # as many as the lists give: fewer than are compared at most
    truth = reference_search(queries, facets)
    for rows, scores, true in zip(found.rows, found.scores, truth, strict=True):
        held = rows[rows >= 0]
        np.testing.assert_allclose(scores[: len(held)], true[held], atol=index.score_error)


def test_some_thousand_facets_behind_a_filter_are_all_compared() -> None:
    rng = np.random.default_rng(9)
    facets = unit_rows(rng.standard_normal((3000, 4, 32)))
    facets[::9, 1:] = 0
    facets = facets.astype(np.float16)
    index, queries = fill("faiss", np.arange(3000), facets), weighted(rng.standard_normal((4, 3, 32)))
    assert isinstance(index, FaissIndex)
    allowed, truth = np.arange(0, 3000, 2), reference_search(queries, facets[::2])
    found = index.search(queries, 10, allowed_rows=allowed)
    assert found.exhaustive and found.rows.shape[1] < 100
    for line, scores in zip(found.rows, truth, strict=True):
        assert set(allowed[np.argsort(-scores, kind="stable")[:10]]) <= set(line[line >= 0])


def test_purge_changes_no_answer() -> None:
    rng = np.random.default_rng(5)
    facets = unit_rows(rng.standard_normal((1000, 3, 32))).astype(np.float16)
    index = fill("faiss", np.arange(1000), facets)
    assert isinstance(index, FaissIndex)
    index.remove(np.arange(0, 1000, 3))
    queries = weighted(rng.standard_normal((5, 3, 32)))
    before = index.search(queries, 10, exhaustive=True)
    assert index.num_masked
    index.purge()
    assert index.num_masked == 0
    assert index.num_vectors == 3 * len(index)
    after = index.search(queries, 10, exhaustive=True)
    np.testing.assert_array_equal(before.rows, after.rows)
    np.testing.assert_array_equal(before.scores, after.scores)


def test_codes_of_the_store_are_held_as_they_are() -> None:
    units = unit_rows(np.random.default_rng(8).standard_normal((3000, 96)))
    codes = encode_units(units)
    again, inverse, errors = document_codes(decode_units(codes).reshape(500, 6, 96))
    np.testing.assert_array_equal(again.reshape(-1, 96), codes)
    np.testing.assert_allclose(1 / inverse.ravel(), np.linalg.norm(codes.astype(np.float32), axis=1), rtol=1e-6)
    assert errors.max() < 5e-4


@pytest.mark.parametrize("dim", [1, 2, 3, 31, 100])
def test_products_of_integers_are_those_of_the_reference_in_any_dimension(dim: int) -> None:
    rng = np.random.default_rng(dim)
    facets = np.where(rng.random((120, 2, dim)) < 0.5, -1.0, 1.0)  # the largest codes there are
    facets[:60] = rng.standard_normal((60, 2, dim))
    facets = unit_rows(facets).astype(np.float16)
    queries = weighted(np.concatenate([facets[90:93].astype(np.float32), rng.standard_normal((3, 2, dim))]))
    index, truth = fill("exact", np.arange(120), facets), reference_search(queries, facets)
    assert_contains_best(index, queries, truth, np.arange(120), 5)


@pytest.mark.parametrize("kind", ["exact", "preselected", "faiss"])
def test_zero_facets_are_none_and_padding_of_queries_weighs_nothing(kind: str) -> None:
    rng = np.random.default_rng(3)
    facets = unit_rows(rng.standard_normal((300, 4, 32)))
    facets[rng.random((300, 4)) < 0.5] = 0
    facets[7] = 0
    half = facets.astype(np.float16)
    index = fill(kind, np.arange(300), half)
    queries = np.zeros((6, 3, 32), dtype=np.float32)
    queries[:, 1] = unit_rows(rng.standard_normal((6, 32)))
    truth = reference_search(queries, half)
    assert truth.min() < 0, "a zero facet would be better than these"
    assert_contains_best(index, queries, truth, np.arange(300), 10)
    queries[3:, 2] = queries[3:, 0] = unit_rows(rng.standard_normal((3, 32)))
    queries[3:] /= 3
    assert_contains_best(index, queries, reference_search(queries, half), np.arange(300), 10)
    assert 7 in index.search(queries, 300, exhaustive=True).rows[0]
    if isinstance(index, FaissIndex):
        assert index.num_vectors == np.count_nonzero(facets.any(axis=2)) + (~facets.any(axis=(1, 2))).sum()


def test_collection_of_zero_facets_alone_is_built_and_searched() -> None:
    nothing = np.zeros((50, 2, 32), dtype=np.float16)
    index = fill("faiss", np.arange(50), nothing)
    found = index.search(unit_rows(np.ones((1, 1, 32))), 5, exhaustive=True)
    assert (found.rows >= 0).sum() >= 5 and found.scores.max() == 0


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), query_facets=st.integers(1, 5), num_facets=st.integers(1, 4))
def test_meet_matches_reference(seed: int, query_facets: int, num_facets: int) -> None:
    rng = np.random.default_rng(seed)
    facets = rng.standard_normal((7, num_facets, 32)).astype(np.float16)
    weights = rng.dirichlet(np.ones(query_facets)).astype(np.float32)
    query = unit_rows(rng.standard_normal((query_facets, 32))) * weights[:, None]
    met = met_by(query, facets)
    np.testing.assert_allclose(met.scores, reference_search(query[None], facets)[0], atol=1e-6)
    np.testing.assert_allclose(met.shares.sum(axis=1), met.scores, atol=1e-6)


@pytest.mark.parametrize("any_suffices", [False, True])
def test_a_document_as_a_whole_is_the_mean_of_its_facets(any_suffices: bool) -> None:
    rng = np.random.default_rng(3)
    facets = rng.standard_normal((20, 3, 32)).astype(np.float32)
    facets[:2, 1:] = 0
    query = weighted(rng.standard_normal((2, 32)))
    met = meet(query, facets.reshape(-1, 32), np.arange(21) * 3, any_suffices=any_suffices)
    units = facets / np.maximum(np.linalg.norm(facets, axis=2, keepdims=True), 1e-9)
    shares = unit_rows(units.mean(axis=1)) @ query.T
    np.testing.assert_allclose(met.whole, shares.max(axis=1) if any_suffices else shares.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(met.whole[:2], met.scores[:2], atol=1e-6, err_msg="one facet is the whole document")


def test_select_candidates_keeps_ties_and_drops_padding() -> None:
    rows = np.array([[1, 2, 3, -1], [4, 5, -1, -1]])
    scores = np.array([[0.5, 0.9, 0.5, -np.inf], [0.1, 0.2, -np.inf, -np.inf]], dtype=np.float32)
    found = select_candidates(rows, scores, 2, margin=0.0, exhaustive=True)
    assert found.rows.tolist() == [[2, 1, 3], [5, 4, -1]]


def test_a_search_leaves_no_thread_of_openblas_busy() -> None:
    code = """
import time
import numpy as np
from facets.documents.ranking import similarities
from facets.index.candidates import meet
vectors = np.random.default_rng(1).standard_normal((2000, 256)).astype(np.float32)
starts = np.arange(0, 2001, 10)
def work():
    meet(vectors[:8], vectors, starts)
    similarities(vectors, starts)
work()
used = []
for _ in range(3):
    work()
    before = time.process_time()
    time.sleep(0.05)
    used.append(time.process_time() - before)
print(min(used))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment["OMP_NUM_THREADS"] = "2"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.02, "seconds of processor time while nothing was to do"
