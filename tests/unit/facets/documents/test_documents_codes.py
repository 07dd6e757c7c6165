"""What the store keeps of facets: precision, and no bytes for facets that are zero."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.documents.encoding import decode_units, encode_units
from facets.index.config import EngineConfig


def unit_facets(num: int, num_facets: int, dim: int, seed: int) -> NDArray[np.float64]:
    facets = np.random.default_rng(seed).standard_normal((num, num_facets, dim))
    return np.asarray(facets / np.linalg.norm(facets, axis=2, keepdims=True))


def decoded(units: NDArray[np.float64]) -> NDArray[np.float16]:
    return decode_units(encode_units(units.reshape(-1, units.shape[2]))).reshape(units.shape)


def test_cosines_change_little() -> None:
    units = unit_facets(500, 4, 384, seed=0)
    query = unit_facets(1, 1, 384, seed=1)[0, 0]
    query = 0.6 * units[0, 0] + 0.8 * query
    kept = decoded(units).astype(np.float64)
    assert np.abs(kept @ query - units @ query).max() < 2e-3
    np.testing.assert_allclose(np.linalg.norm(kept, axis=2), 1.0, atol=2e-3)


def test_facets_come_back_wherever_they_are_zero(open_engine: Callable[..., CollectionEngine]) -> None:
    engine, facets = open_engine(), unit_facets(4, 3, 8, seed=4).astype(np.float32)
    for document, zeros in enumerate(([0], [1], [1, 2], [0, 1, 2])):
        facets[document, zeros] = 0
    facets[0, 2, 4:] = 0
    engine.create_collection("few", model="m", model_revision="1", num_facets=3, dim=8)
    engine.upsert("few", [Document(id=str(i), text="a", facet_embeddings=own) for i, own in enumerate(facets)])
    for own, document in zip(facets, engine.get("few", [*"0123"], include_facets=True).documents, strict=True):
        assert document.facet_embeddings is not None
        np.testing.assert_allclose(document.facet_embeddings, own, atol=2e-2)


def test_a_passage_takes_at_most_eight_kibibytes_beside_its_text(
    open_engine: Callable[..., CollectionEngine], tmp_path: Path
) -> None:
    engine = open_engine()
    engine.create_collection("wide", model="m", model_revision="1", num_facets=16, dim=384)
    num, rng = 300, np.random.default_rng(5)
    units = unit_facets(num, 16, 384, seed=3)
    spans = np.tile(np.array([[100, 250]]), (16, 1))
    texts = [" ".join(f"word{w}" for w in rng.zipf(1.3, 220) % 5000) for _ in range(num)]
    documents = [
        Document(id=f"passage-{n:06}", text=texts[n], facet_embeddings=units[n], facet_spans=spans) for n in range(num)
    ]
    engine.upsert("wide", documents)
    engine.close()
    stored = (tmp_path / "data" / "documents.sqlite3").stat().st_size - 8192  # pages of the index of sources
    assert (stored - sum(map(len, texts))) / num < 8192


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
