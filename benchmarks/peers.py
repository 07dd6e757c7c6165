"""Facets compared with other embedded engines: ``python -m benchmarks.peers [--vectors 200000]``; prints JSON.

qdrant-edge-py and LanceDB take part if they are installed (``pip install qdrant-edge-py lancedb``). Two tasks over
the same synthetic vectors: documents and queries of one vector each, and documents of ten vectors ranked by MaxSim
for queries of eight. An engine is filled in one process and searched in a new one, with rising effort; the first
effort that finds 0.98 of the exact best ten counts. Each engine stores everything durably, with a text and default
settings; flat FAISS keeps only float32 vectors.
"""

import argparse
import gc
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import in_child, make_facets, percentiles, print_report, resident_bytes
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_BATCH = 512
_TOP_K = 10
_NEW = 20  # documents added one by one at the end
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


class _LanceDB:
    """A table with inverted lists (IVF_FLAT); the effort is the number of probed lists."""

    efforts = (4, 8, 16, 32, 64, 128, 0)

    def __init__(self, directory: Path, num_facets: int, dim: int) -> None:
        import lancedb
        import pyarrow

        self._arrow, self._single = pyarrow, num_facets == 1
        vector = pyarrow.list_(pyarrow.float32(), dim)
        self._type = vector if self._single else pyarrow.list_(vector)
        fields = [("id", pyarrow.int64()), ("text", pyarrow.string()), ("v", self._type)]
        database = lancedb.connect(str(directory))
        self._table = database.create_table("bench", schema=pyarrow.schema(fields), exist_ok=True)

    def add(self, first: int, facets_NKD: NDArray[np.float32]) -> None:
        num, num_facets, dim = facets_NKD.shape
        values = self._arrow.FixedSizeListArray.from_arrays(self._arrow.array(facets_NKD.ravel()), dim)
        if not self._single:
            starts = self._arrow.array(np.arange(num + 1, dtype=np.int32) * num_facets)
            values = self._arrow.ListArray.from_arrays(starts, values)
        columns = {"id": np.arange(first, first + num), "text": [_TEXT] * num, "v": values}
        self._table.add(self._arrow.table(columns))

    def build(self) -> None:
        from lancedb.index import IvfFlat

        count = self._table.count_rows() * (1 if self._single else 10)
        config = IvfFlat(distance_type="cosine", num_partitions=max(1, 2 * math.isqrt(count)))
        self._table.optimize()
        self._table.create_index("v", config=config)

    def search(self, query_JD: NDArray[np.float32], effort: int) -> list[int]:
        asked = self._table.search(query_JD[0] if self._single else query_JD, vector_column_name="v")
        asked = asked.distance_type("cosine").limit(_TOP_K).select(["id", "text", "_distance"])
        asked = asked.nprobes(effort) if effort else asked.bypass_vector_index()
        found: list[int] = asked.to_arrow()["id"].to_pylist()
        return found

    def close(self) -> None:
        pass


_ENGINES = {
    "facets": (_Ours, "facets"),
    "qdrant-edge-py": (_QdrantEdge, "qdrant_edge"),
    "lancedb": (_LanceDB, "lancedb"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--recall", type=float, default=0.98)
    parser.add_argument("--engines", nargs="+", choices=list(_ENGINES), default=list(_ENGINES))
    parser.add_argument("--questions", nargs="+", choices=list(_QUESTIONS), default=list(_QUESTIONS))
    options = parser.parse_args(arguments)
    there = {name: find_spec(_ENGINES[name][1]) is not None for name in options.engines}
    figures: dict[str, dict[str, object]] = {}
    for question in options.questions:
        options.question = question
        options.truth, flat = _truth(options)
        figures[question] = {"faiss_flat": flat}
        for name in (name for name, installed in there.items() if installed):
            options.engine = name
            with tempfile.TemporaryDirectory() as directory:
                figure = in_child(_fill, Path(directory), options)
                figures[question][name] = figure | in_child(_use, Path(directory), options)
                sys.stderr.write(f"{question}, {name}: {figures[question][name]}\n")
    report = {
        "benchmark": "peers",
        "versions": {name: version(name) for name, installed in there.items() if installed and name != "facets"},
        "not_installed": [name for name, installed in there.items() if not installed],
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


def _truth(options: argparse.Namespace) -> tuple[list[set[int]], dict[str, object]]:
    """The exact best ten for every query, and the rate of flat FAISS over all vectors."""
    num_facets = _QUESTIONS[options.question][0]
    flat, queries, num = faiss.IndexFlatIP(options.dim), _queries(options), _documents(options)
    for first in range(0, num, _BATCH):
        flat.add(_batch(first, min(_BATCH, num - first), options).reshape(-1, options.dim))
    vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * options.dim).reshape(flat.ntotal, options.dim)
    truth = []
    for query in queries:
        scores = (vectors @ query.T).reshape(num, num_facets, -1).max(axis=1).sum(axis=1)
        truth.append(set(np.argsort(-scores, kind="stable")[:_TOP_K].tolist()))
    cpu = time.process_time()
    for query in queries:
        flat.search(query, _TOP_K * num_facets)
    return truth, {"queries_per_cpu_s": round(len(queries) / (time.process_time() - cpu), 1)}


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
    kind = _ENGINES[options.engine][0]
    return kind(directory, _QUESTIONS[options.question][0], options.dim)


def _use(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    num, queries = _documents(options), _queries(options)
    with tempfile.TemporaryDirectory() as empty:
        _open(Path(empty), options).close()  # to exclude the memory of the libraries themselves
    disk = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    gc.collect()
    before, cpu = resident_bytes(), time.process_time()
    engine = _open(directory, options)
    engine.search(queries[0], engine.efforts[0])
    opening = time.process_time() - cpu
    tried = {}
    for effort in engine.efforts:
        cpu, found, wall_ms = time.process_time(), 0, []
        for query, best in zip(queries, options.truth, strict=True):
            start = time.perf_counter()
            found += len(best & set(engine.search(query, effort)))
            wall_ms.append(1000 * (time.perf_counter() - start))
        cpu, recall = time.process_time() - cpu, found / (_TOP_K * len(queries))
        tried[effort] = round(recall, 3)
        if recall >= options.recall:
            break
    memory = resident_bytes() - before
    return {
        "recall": round(recall, 4),
        "effort": effort,
        "recall_by_effort": tried,
        "queries_per_cpu_s": round(len(queries) / cpu, 1),
        **percentiles(wall_ms, (50,), digits=2, unit="_ms"),
        "open_cpu_s": round(opening, 2),
        "bytes_per_vector": {"memory": round(memory / options.vectors), "disk": round(disk / options.vectors)},
        "new_documents": _insert(engine, num, effort, options),
    }


def _insert(engine: Any, num: int, effort: int, options: argparse.Namespace) -> dict[str, object]:
    """Adds documents one by one to the full collection, and searches for each immediately."""
    missed, cpu, wall_ms = 0, time.process_time(), []
    for number in range(num, num + _NEW):
        facets = _batch(number, 1, options)
        start = time.perf_counter()
        engine.add(number, facets)
        missed += engine.search(facets[0], effort)[:1] != [number]
        wall_ms.append(1000 * (time.perf_counter() - start))
    cpu = time.process_time() - cpu
    engine.close()
    return {
        "not_first_at_once": missed,
        "cpu_ms_each": round(1000 * cpu / _NEW, 2),
        **percentiles(wall_ms, (50,), digits=2, unit="_ms"),
    }


if __name__ == "__main__":
    main()
