"""Several facets of a query: a document answers all of them, or any; against the obvious sum and maximum."""

from pathlib import Path

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.index.config import EngineConfig

DIM, NUM = 8, 60


def unit(facets: np.ndarray) -> np.ndarray:
    return (facets / np.linalg.norm(facets, axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture
def facets() -> np.ndarray:
    return unit(np.random.default_rng(1).standard_normal((NUM, 3, DIM)))


@pytest.fixture
def engine(tmp_path: Path, facets: np.ndarray):
    with CollectionEngine.open(tmp_path, EngineConfig(background=False)) as opened:
        opened.create_collection("all", model="m", model_revision="r", num_facets=3, dim=DIM, space="s")
        documents = [
            Document(id=f"{row:02d}", text=f"text {row}", facet_embeddings=own) for row, own in enumerate(facets)
        ]
        opened.upsert("all", documents)
        yield opened


@pytest.mark.parametrize("combine", ["sum", "any", None])
def test_scores_are_the_sum_or_the_best_of_the_facets(engine, facets: np.ndarray, combine) -> None:
    random = np.random.default_rng(2)
    queries, weights = unit(random.standard_normal((4, 3, DIM))), random.random((4, 3))
    weights[0, 1] = 0.0
    queries[0, 1] = 0.0
    weights[1] = 1.0
    request = SearchRequest(facets=queries, weights=weights, combine=combine, mode="facets", top_k=12)
    cosines_QJN = np.einsum("qjd,nkd->qjnk", queries, facets).max(axis=3)
    whole = weights.max(axis=1) if combine == "any" else weights.sum(axis=1)
    shares_QJN = cosines_QJN * (weights / whole[:, None])[:, :, None]
    shares_QJN[0, 1] = -np.inf if combine == "any" else 0.0
    expected_QN = shares_QJN.max(axis=1) if combine == "any" else shares_QJN.sum(axis=1)
    for hits, expected in zip(engine.search("all", request).hits, expected_QN, strict=True):
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(expected)[::-1][:12], atol=0.02)


@pytest.mark.parametrize("combine", ["sum", "any"])
def test_query_of_zero_facets_finds_documents_without_score(engine, combine) -> None:
    request = SearchRequest(facets=np.zeros((1, 3, DIM), dtype=np.float32), combine=combine, top_k=2)
    assert [(hit.id, hit.score) for hit in engine.search("all", request).hits[0]] == [("00", 0.0), ("01", 0.0)]
