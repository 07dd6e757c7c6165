from pathlib import Path

import numpy as np
import pytest
from facets_lab.documents.baselines import (
    DEFAULT_FUSION,
    FUSION_PREFIX,
    FUSIONS,
    FusedBaseline,
    OneSignalBaseline,
    convex_sum,
    reciprocal_ranks,
    sentence_facets,
    z_scores,
)
from facets_lab.documents.beir import RetrievalData, read_beir
from facets_lab.documents.systems import Bm25Scorer, FacetScorer, SummedScorer, VectorScorer, best_rows
from numpy.testing import assert_allclose, assert_array_equal
from toy_retrieval import write_beir

from facets.language.vectors import unit_rows


@pytest.fixture
def data(tmp_path: Path) -> RetrievalData:
    return read_beir(write_beir(tmp_path / "toy"))


def random_units(*shape: int, seed: int = 0) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def bm25(data: RetrievalData) -> Bm25Scorer:
    return Bm25Scorer(data.documents, data.queries)


def test_bm25_finds_what_shares_terms_and_nothing_else(data: RetrievalData) -> None:
    (first, second) = OneSignalBaseline("bm25", "lexical", bm25).rank(data).rankings["lexical"]
    assert first == ["dog"]
    assert second == ["lift"], "by their stems"


@pytest.mark.parametrize("texts", [["", "..."], ["the of"]])
def test_bm25_of_documents_without_terms_finds_nothing(texts: list[str]) -> None:
    assert_array_equal(Bm25Scorer(texts, ["dogs", ""]).scores(slice(0, 2)), np.zeros((2, len(texts))))


def test_vectors_rank_by_cosine(data: RetrievalData) -> None:
    units, queries = random_units(4, 8), random_units(2, 8, seed=1)
    ranked = OneSignalBaseline("v", "vector", lambda data: VectorScorer(units, queries)).rank(data).rankings["vector"]
    for row, ranking in enumerate(ranked):
        assert ranking == [data.document_ids[n] for n in np.argsort(-(units @ queries[row]))]


def test_sentences_add_their_best_cosine_to_the_document_s_own() -> None:
    own, queries = random_units(3, 8), random_units(2, 8, seed=1)
    facets = [random_units(n, 8, seed=n) for n in (1, 4, 2)]
    scorer = SummedScorer(VectorScorer(own, queries), FacetScorer(facets, queries))
    slow = [[own[n] @ query + max(facet @ query for facet in facets[n]) for n in range(3)] for query in queries]
    assert_allclose(scorer.scores(slice(0, 2)), slow, rtol=1e-5)
    assert scorer.num_vectors == pytest.approx(1 + 7 / 3)


def test_few_sentences_stay_and_many_become_centres() -> None:
    units = random_units(6, 8)
    kept = sentence_facets(np.concatenate([units, units[:3]]), 6, seed=0)
    assert_array_equal(kept, units[np.lexsort(units.T[::-1])]), "sentences that are there twice are one"
    close = unit_rows(np.repeat(units[:2], 5, axis=0) + 0.01 * random_units(10, 8, seed=2))
    centres = sentence_facets(close, 2, seed=0)
    assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-5)
    assert_allclose((units[:2] @ centres.T).max(axis=1), 1, atol=1e-3)


def test_a_fusion_scores_the_candidates_of_both_sides(data: RetrievalData) -> None:
    units, queries = random_units(4, 8), random_units(2, 8, seed=1)
    vectors = VectorScorer(units, queries)
    ranked = FusedBaseline("v+bm25", lambda data: vectors, bm25).rank(data).rankings
    assert set(ranked) == {"hybrid", *(f"{FUSION_PREFIX}{name}" for name in FUSIONS)}
    for row, ranking in enumerate(ranked["hybrid"]):
        block = slice(row, row + 1)
        fused = convex_sum(vectors.scores(block)[0], bm25(data).scores(block)[0], lexical_weight=0.5)
        assert ranking == [data.document_ids[n] for n in np.argsort(-fused)]


def test_best_rows_break_ties_by_row_at_any_length() -> None:
    scores = np.random.default_rng(0).integers(0, 5, 200).astype(np.float32)
    order = sorted(range(200), key=lambda row: (-scores[row], row))
    for length in (1, 7, 100, 200, 300):
        assert best_rows(scores, length).tolist() == order[:length]


VECTOR = np.array([0.9, 0.5, 0.1], dtype=np.float32)
LEXICAL = np.array([0.0, 30.0, 10.0], dtype=np.float32)


def test_z_scores_have_mean_0_and_deviation_1() -> None:
    assert_allclose([z_scores(LEXICAL).mean(), z_scores(LEXICAL).std()], [0, 1], atol=1e-12)
    assert_allclose(z_scores(np.ones(3)), 0)


def test_a_convex_sum_does_not_depend_on_scales() -> None:
    fused = convex_sum(VECTOR, LEXICAL, lexical_weight=0.3)
    assert_allclose(fused, convex_sum(VECTOR * 7 - 2, LEXICAL / 3 + 5, lexical_weight=0.3), atol=1e-6)
    assert_allclose(fused, 0.7 * z_scores(VECTOR) + 0.3 * z_scores(LEXICAL))


@pytest.mark.parametrize(("weight", "first"), [(0.05, 0), (0.95, 1)])
def test_the_weight_decides_who_wins(weight: float, first: int) -> None:
    assert convex_sum(VECTOR, LEXICAL, lexical_weight=weight).argmax() == first


def test_reciprocal_ranks_are_summed() -> None:
    assert_allclose(reciprocal_ranks(VECTOR, LEXICAL), [1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def test_the_default_is_one_of_the_table() -> None:
    assert_allclose(FUSIONS[DEFAULT_FUSION](VECTOR, LEXICAL), convex_sum(VECTOR, LEXICAL, lexical_weight=0.5))
