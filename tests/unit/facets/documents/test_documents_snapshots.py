"""Indexes in mapped files: damage where nobody has looked yet, and what comes and goes after opening."""

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting import wait_until

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.index.backends import FaissBackend
from facets.index.base import MappedFile

OpenEngine = Callable[..., CollectionEngine]
MakeDocuments = Callable[..., list[Document]]


def facets_of(documents: list[Document]) -> NDArray[np.float32]:
    return np.stack([one.facet_embeddings for one in documents]).astype(np.float32)


def best(
    engine: CollectionEngine, queries: NDArray[np.float32], *, exact: bool = False
) -> list[list[tuple[str, float]]]:
    found = engine.search("docs", SearchRequest(facets=queries, top_k=5, exact=exact))
    return [[(hit.id, hit.score) for hit in hits] for hits in found.hits]


def fill(open_engine: OpenEngine, documents: list[Document]) -> None:
    with open_engine(exact_max_facets=1000) as engine:
        engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
        engine.upsert("docs", documents)
        engine.maintain()


@pytest.mark.parametrize(("wanted_by", "where"), [("search", 0.4), ("exact", 0.7), ("folding", 0.5)])
def test_damage_that_opening_does_not_look_at_is_met_before_an_answer(
    open_engine: OpenEngine,
    make_documents: MakeDocuments,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    wanted_by: str,
    where: float,
) -> None:
    monkeypatch.setattr(MappedFile, "BLOCK_BYTES", 128)
    documents, more = make_documents(600), make_documents(200, seed=6, prefix="more")
    fill(open_engine, documents)
    snapshot = tmp_path / "data" / "indexes" / "1.index"
    content = bytearray(snapshot.read_bytes())
    content[int(where * len(content))] ^= 1
    snapshot.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        engine = open_engine(exact_max_facets=1000)
        assert not caplog.records, "opening reads neither lists nor codes"
        if wanted_by == "folding":
            engine.upsert("docs", more)
            engine.maintain()
        found = best(engine, facets_of(documents), exact=wanted_by == "exact")
    assert "set aside" in caplog.text and snapshot.with_suffix(".damaged").exists()
    assert found == best(engine, facets_of(documents), exact=True)
    engine.maintain()
    engine.close()
    assert snapshot.exists()
    with open_engine(exact_max_facets=1000) as engine:
        assert engine.get_collection("docs").index_kind == "faiss-ivf-int8"
        assert best(engine, facets_of(documents), exact=True) == found
        assert engine.count("docs").num_documents == (800 if wanted_by == "folding" else 600)


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
