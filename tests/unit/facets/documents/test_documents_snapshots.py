"""Snapshots of indexes, and their maintenance after an error."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting import wait_until

from facets.documents import CollectionEngine, Contains, Document, EngineConfig, SearchRequest
from facets.index.backends import FaissBackend

OpenEngine = Callable[..., CollectionEngine]
MakeDocuments = Callable[..., list[Document]]


def facets_of(documents: list[Document]) -> NDArray[np.float32]:
    return np.stack([one.facet_embeddings for one in documents]).astype(np.float32)


def test_maintenance_goes_on_after_a_mistake_of_ours(
    open_engine: OpenEngine, make_documents: MakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = list[str]()
    build = FaissBackend.build

    def fails_once(*arguments: object, **keywords: object) -> object:
        attempts.append("one")
        assert len(attempts) > 1, "a mistake of ours"
        return build(*arguments, **keywords)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(FaissBackend, "build", fails_once)
    monkeypatch.setattr("facets.documents.index_manager.RETRY_S", 0.01)
    engine = open_engine(exact_max_facets=1000, background=True)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    documents = make_documents(600)
    engine.upsert("docs", documents)
    request = SearchRequest(facets=facets_of(documents[:1]), top_k=1)
    wait_until(lambda: engine.search("docs", request).index_kind != "exact")
    assert len(attempts) == 2


GOLDEN = Path(__file__).resolve().parents[3] / "golden"


def best_pairs(engine: CollectionEngine, query: NDArray[np.float32], exact: bool) -> list[tuple[str, list[float]]]:
    """The five best documents by the closest pair of facets, which is what the files hold: id, cosine, pair."""
    found = engine.search("golden", SearchRequest(facets=query[:, None, :], top_k=5, exact=exact))
    best: dict[str, list[float]] = {}
    for facet, hits in enumerate(found.hits):
        for hit in hits:
            line = [hit.score, facet, hit.evidence[0].second_facet]
            best[hit.id] = max(best.get(hit.id, line), line)
    return sorted(best.items(), key=lambda entry: -entry[1][0])[:5]


@pytest.mark.parametrize("version", ["index_v1"])
def test_golden_data_directory_loads(version: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))
    shutil.copytree(GOLDEN / version / "directory", tmp_path / "data")
    with caplog.at_level(logging.WARNING):
        engine = CollectionEngine.open(tmp_path / "data", EngineConfig(background=False, exact_max_facets=10_000))
    with engine:
        assert not caplog.records, "the snapshot must be used, not set aside"
        info = engine.get_collection("golden")
        assert (info.num_facets, info.dim, info.num_documents) == (2, 32, 59)
        assert info.index_kind == "faiss-ivf-int8"
        assert engine.revision == expected["revision"]
        queries = np.array(expected["queries"], dtype=np.float32)
        for exact in (True, False):
            for query, wanted in zip(queries, expected["hits"], strict=True):
                best = best_pairs(engine, query, exact)
                assert [(id, *pair) for id, (_, *pair) in best] == [(id, *pair) for id, _, *pair in wanted]
                np.testing.assert_allclose([line[0] for _, line in best], [line[1] for line in wanted], atol=1e-6)
        result = engine.get("golden", ["d05", "d07"], include_facets=True)
        assert result.missing_ids == ("d07",)
        stored = result.documents[0]
        assert (stored.text, stored.payload) == (expected["d05"]["text"], expected["d05"]["payload"])
        assert stored.facet_embeddings is not None
        np.testing.assert_allclose(stored.facet_embeddings, expected["d05"]["facets"], atol=1.5e-2)
        assert info.space == "toys"
        assert (stored.num_tokens, stored.num_read) == (9, 8)
        assert stored.facet_spans is not None and stored.facet_spans.tolist() == [[0, 4], [5, 7]]
        assert engine.search("golden", SearchRequest(texts=["text 31"], mode="lexical", top_k=3)).hits[0][0].id == "d31"
        assert engine.count("golden", where=Contains("tags", "odd")).num_documents == 29
