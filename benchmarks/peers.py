"""Facets compared with qdrant-edge-py: ``python -m benchmarks.peers [--vectors 200000]``; prints JSON.

qdrant-edge-py takes part if it is installed (``pip install qdrant-edge-py``). Two tasks over the same synthetic
vectors: documents and queries of one vector each, and documents of ten vectors ranked by MaxSim for queries of eight.
An engine is filled in one process and searched in a new one, with rising effort; the first effort that finds 0.98 of
the exact best ten counts. Each engine stores everything durably, with a text and default settings.
"""

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import in_child, make_facets, percentiles, print_report, resident_bytes
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_BATCH = 512
_TOP_K = 10
_TEXT = "a text of some words " * 5
_QUERIES_SEED = 0  # documents use seeds 1 and up
_QUESTIONS = {"one_vector": (1, 1), "max_sim": (10, 8)}  # facets per document, facets per query


# Engines over a directory; documents are numbered. ``efforts`` of a search rise; the last one is exact. ``add`` stores
# documents numbered from ``first``, which are searchable and durable on return; ``search`` returns the best ten.


class _Ours:
    """Our document engine; every hit has exact scores, text and payload."""

    efforts = (0, 1)  # default; exact

    def __init__(self, directory: Path, num_facets: int, dim: int) -> None:
        self._engine = CollectionEngine.open(directory, EngineConfig(background=False))
        if not self._engine.list_collections():
            self._engine.create_collection("bench", model="toy", model_revision="1", num_facets=num_facets, dim=dim)

    def add(self, first: int, facets_NKD: NDArray[np.float32]) -> None:
        numbered = enumerate(facets_NKD, first)
        self._engine.upsert(
            "bench", [Document(id=str(n), text=_TEXT, facet_embeddings=facets) for n, facets in numbered]
        )

    def build(self) -> None:
        self._engine.maintain()

    def search(self, query_JD: NDArray[np.float32], effort: int) -> list[int]:
        found = self._engine.search(
            "bench", SearchRequest(facets=query_JD[None], top_k=_TOP_K, exact=effort == 1, reasons=False)
        )
        return [int(hit.id) for hit in found.hits[0]]

    def close(self) -> None:
        self._engine.close()


class _QdrantEdge:
    """A shard with HNSW; the effort is its ``ef``."""

    efforts = (32, 64, 128, 256, 512, 0)

    def __init__(self, directory: Path, num_facets: int, dim: int) -> None:
        import qdrant_edge as edge

        self._edge, self._single = edge, num_facets == 1
        several = None if self._single else edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        params = edge.EdgeVectorParams(dim, edge.Distance.Cosine, multivector_config=several)
        if any(directory.iterdir()):
            self._shard = edge.EdgeShard.load(str(directory))
        else:
            self._shard = edge.EdgeShard.create(str(directory), edge.EdgeConfig(vectors={"v": params}))

    def add(self, first: int, facets_NKD: NDArray[np.float32]) -> None:
        points = [
            self._edge.Point(n, {"v": (facets[0] if self._single else facets).tolist()}, {"text": _TEXT})
            for n, facets in enumerate(facets_NKD, first)
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(points))
        self._shard.flush()

    def build(self) -> None:
        self._shard.optimize()

    def search(self, query_JD: NDArray[np.float32], effort: int) -> list[int]:
        asked = (query_JD[0] if self._single else query_JD).tolist()
        request = self._edge.QueryRequest(
            limit=_TOP_K,
            query=self._edge.Query.Nearest(asked, using="v"),
            with_payload=True,
            params=self._edge.SearchParams(hnsw_ef=effort or None, exact=effort == 0),
        )
        return [point.id for point in self._shard.query(request)]

    def close(self) -> None:
        self._shard.close()


_ENGINES = {"facets": _Ours, "qdrant-edge-py": _QdrantEdge}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--recall", type=float, default=0.98)
    options = parser.parse_args(arguments)
    engines = list(_ENGINES)[: 2 if find_spec("qdrant_edge") else 1]
    figures: dict[str, dict[str, object]] = {}
    for question in _QUESTIONS:
        options.question = question
        options.truth, figures[question] = _truth(options), {}
        for name in engines:
            options.engine = name
            with tempfile.TemporaryDirectory() as directory:
                figure = in_child(_fill, Path(directory), options)
                figures[question][name] = figure | in_child(_use, Path(directory), options)
                sys.stderr.write(f"{question}, {name}: {figures[question][name]}\n")
    report = {
        "benchmark": "peers",
        "versions": {name: version(name) for name in engines[1:]},
        "figures": figures,
        "parameters": {"vectors": options.vectors, "dim": options.dim, "queries": options.queries},
    }
    print_report(report)


def _documents(options: argparse.Namespace) -> int:
    return int(options.vectors // _QUESTIONS[options.question][0])


def _batch(first: int, count: int, options: argparse.Namespace) -> NDArray[np.float32]:
    return make_facets(count, _QUESTIONS[options.question][0], options.dim, seed=1 + first)


def _queries(options: argparse.Namespace) -> NDArray[np.float32]:
    return make_facets(options.queries, _QUESTIONS[options.question][1], options.dim, seed=_QUERIES_SEED)


def _truth(options: argparse.Namespace) -> list[set[int]]:
    """The exact best ten for every query."""
    num = _documents(options)
    facets_NKD = np.concatenate([_batch(first, min(_BATCH, num - first), options) for first in range(0, num, _BATCH)])
    scores = ((facets_NKD @ query_JD.T).max(axis=1).sum(axis=1) for query_JD in _queries(options))
    return [set(np.argsort(-scores_N, kind="stable")[:_TOP_K].tolist()) for scores_N in scores]


def _fill(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    num, spent = _documents(options), 0.0
    engine = _open(directory, options)
    for first in range(0, num, _BATCH):
        facets = _batch(first, min(_BATCH, num - first), options)
        start = time.process_time()
        engine.add(first, facets)
        spent += time.process_time() - start
    start = time.process_time()
    engine.build()
    built = time.process_time() - start
    engine.close()
    return {"vectors_stored_per_cpu_s": round(options.vectors / spent), "build_cpu_s": round(built, 1)}


def _open(directory: Path, options: argparse.Namespace) -> Any:
    return _ENGINES[options.engine](directory, _QUESTIONS[options.question][0], options.dim)


def _use(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    queries = _queries(options)
    with tempfile.TemporaryDirectory() as empty:
        _open(Path(empty), options).close()  # to exclude the memory of the libraries themselves
    disk = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    gc.collect()
    before = resident_bytes()
    engine = _open(directory, options)
    engine.search(queries[0], engine.efforts[0])
    for effort in engine.efforts:
        cpu, found, wall_ms = time.process_time(), 0, []
        for query, best in zip(queries, options.truth, strict=True):
            start = time.perf_counter()
            found += len(best & set(engine.search(query, effort)))
            wall_ms.append(1000 * (time.perf_counter() - start))
        cpu, recall = time.process_time() - cpu, found / (_TOP_K * len(queries))
        if recall >= options.recall:
            break
    memory = resident_bytes() - before
    engine.close()
    return {
        "recall": round(recall, 4),
        "effort": effort,
        "queries_per_cpu_s": round(len(queries) / cpu, 1),
        **percentiles(wall_ms, (50,), digits=2, unit="_ms"),
        "bytes_per_vector": {"memory": round(memory / options.vectors), "disk": round(disk / options.vectors)},
    }


if __name__ == "__main__":
    main()
