"""A second backend needs its own file and a line in the table: one of a few lines serves the whole engine."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from references import reference_search

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.index import backends
from facets.index.base import Chunks, FacetIndex, IndexBackend
from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, select_candidates


class MatrixIndex(FacetIndex):
    """All facets in one matrix: searching only, no training, no snapshots."""

    kind = "matrix"
    score_error = HALF_PRECISION_ERROR

    def __init__(self, num_facets: int, dim: int) -> None:
        super().__init__(num_facets=num_facets, dim=dim)
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._facets: NDArray[np.floating] = np.empty((0, num_facets, dim), dtype=np.float16)

    @property
    def slots(self) -> NDArray[np.int64]:
        return self._rows

    def add(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> None:
        self._rows = np.concatenate([self._rows, rows])
        self._facets = np.concatenate([self._facets, facets_SKD])
        self._num_documents += len(rows)

    def search(
        self,
        query_QKD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        scores = reference_search(query_QKD, self._facets)
        scores[:, ~self.allowed_slots(allowed_rows)] = -np.inf
        lines = np.broadcast_to(self._rows, scores.shape)
        return select_candidates(lines, scores, top_k, margin=2 * self.score_error, exhaustive=True)


class MatrixBackend(IndexBackend):
    """Builds the matrix; there is nothing to restore."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> MatrixIndex | None:
        index = None
        for rows, facets in chunks():
            index = index or MatrixIndex(num_facets, facets.shape[2])
            index.add(rows, facets)
        return index


def documents(num: int, prefix: str = "d") -> list[Document]:
    facets = np.random.default_rng(len(prefix)).standard_normal((num, 2, 32))
    return [
        Document(id=f"{prefix}{number}", text="t", facet_embeddings=facets[number], payload={"even": number % 2 == 0})
        for number in range(num)
    ]


def test_backend_that_only_searches_serves_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    queries = np.random.default_rng(9).standard_normal((3, 2, 32)).astype(np.float32)
    answers = []
    for name, made in (("faiss", backends.BACKENDS["faiss"]), ("matrix", MatrixBackend)):
        monkeypatch.setitem(backends.BACKENDS, "faiss", made)
        config = EngineConfig(background=False, exact_max_facets=100)
        with CollectionEngine.open(tmp_path / name, config) as engine:
            engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
            engine.upsert("docs", documents(200))
            engine.maintain()
            engine.delete("docs", ids=["d3", "d4"])
            engine.upsert("docs", documents(60, prefix="more"))
            engine.maintain()
            assert engine.get_collection("docs").index_kind.startswith(name)
        with CollectionEngine.open(tmp_path / name, config) as engine:
            engine.maintain()
            assert engine.get_collection("docs").index_kind.startswith(name)
            found = engine.search("docs", SearchRequest(facets=queries, top_k=10, exact=True))
            answers.append([[(hit.id, hit.score) for hit in hits] for hits in found.hits])
    assert answers[0] == answers[1]
