"""Search of a large collection: ``python -m benchmarks.search [--documents 100000] [--peers]``; prints JSON.

One process fills an engine and builds its index; a new one opens it again. Reports seconds to open, recall, queries per
processor second, memory and disk per document; for ours also whether a document is found as soon as it is stored, and
the longest search while documents are added and while the index is built. Facets are synthetic clusters with a fixed
seed; several facets of a query are ranked by MaxSim.

Flat FAISS over all facets and, with ``--peers``, qdrant-edge-py (``pip install qdrant-edge-py``) do the same. The
effort of each engine rises until it finds the share ``--recall`` of the exact best documents. Ours and qdrant-edge
store everything durably, with a text and default settings.
"""

import argparse
import gc
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.measuring import in_child, make_facets, percentiles, print_report, resident_bytes, spent
from facets.arrays import Floats
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_BATCH = 512
_NAME = "bench"
_TEXT = "a text of some words " * 5
_QUERIES_SEED = 0  # documents use seeds 1 and up

# Engines over a directory; documents are numbered. ``efforts`` of a search rise; the last one is exact. ``add`` stores
# documents numbered from ``first``, which are searchable on return; ``search`` returns the best, and ``build`` builds
# the index.


class _Ours:
    """Our document engine; every hit has exact scores, text and payload."""

    efforts = (0, 1)  # default; exact

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        self.engine = CollectionEngine.open(directory, EngineConfig(background=False, device=options.device))
        self._top_k = options.top_k
        if not self.engine.list_collections():
            shape = {"num_facets": options.facets, "dim": options.dim}
            self.engine.create_collection(_NAME, model="synthetic", model_revision="1", **shape)

    def add(self, first: int, facets_NKD: Floats) -> None:
        numbered = enumerate(facets_NKD, first)
        documents = [Document(id=f"{n:08}", text=_TEXT, facet_embeddings=own, payload={"n": n}) for n, own in numbered]
        self.engine.upsert(_NAME, documents)

    def build(self) -> None:
        self.engine.maintain()

    def search(self, query_JD: Floats, effort: int) -> list[int]:
        request = SearchRequest(facets=query_JD[None], top_k=self._top_k, exact=effort == 1, reasons=False)
        return [int(hit.id) for hit in self.engine.search(_NAME, request).hits[0]]

    def close(self) -> None:
        self.engine.close()


class _FlatFaiss:
    """All facets in memory, compared with each query facet; the best ones of each are joined."""

    efforts = (0,)

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        self._path, self._options = directory / "flat.faiss", options
        self._index = faiss.read_index(str(self._path)) if self._path.exists() else faiss.IndexFlatIP(options.dim)

    def add(self, _first: int, facets_NKD: Floats) -> None:
        self._index.add(facets_NKD.reshape(-1, self._options.dim))

    def build(self) -> None:
        faiss.write_index(self._index, str(self._path))

    def search(self, query_JD: Floats, _effort: int) -> list[int]:
        cosines, places = self._index.search(query_JD, self._options.top_k * self._options.facets)
        order = np.argsort(-cosines, axis=None, kind="stable")
        return list(dict.fromkeys((places.ravel()[order] // self._options.facets).tolist()))[: self._options.top_k]

    def close(self) -> None:
        """Nothing to close."""


class _QdrantEdge:
    """A shard with HNSW; the effort is its ``ef``."""

    efforts = (32, 64, 128, 256, 512, 0)

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        import qdrant_edge as edge

        self._edge, self._single, self._top_k = edge, options.facets == 1, options.top_k
        several = None if self._single else edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        params = edge.EdgeVectorParams(options.dim, edge.Distance.Cosine, multivector_config=several)
        if any(directory.iterdir()):
            self._shard = edge.EdgeShard.load(str(directory))
        else:
            self._shard = edge.EdgeShard.create(str(directory), edge.EdgeConfig(vectors={"v": params}))

    def add(self, first: int, facets_NKD: Floats) -> None:
        points = [
            self._edge.Point(n, {"v": (facets[0] if self._single else facets).tolist()}, {"text": _TEXT})
            for n, facets in enumerate(facets_NKD, first)
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(points))
        self._shard.flush()

    def build(self) -> None:
        self._shard.optimize()

    def search(self, query_JD: Floats, effort: int) -> list[int]:
        asked = (query_JD[0] if self._single else query_JD).tolist()
        request = self._edge.QueryRequest(
            limit=self._top_k,
            query=self._edge.Query.Nearest(asked, using="v"),
            with_payload=True,
            params=self._edge.SearchParams(hnsw_ef=effort or None, exact=effort == 0),
        )
        return [int(point.id) for point in self._shard.query(request)]

    def close(self) -> None:
        self._shard.close()


_ENGINES: dict[str, Any] = {"facets": _Ours, "flat_faiss": _FlatFaiss, "qdrant_edge": _QdrantEdge}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--query-facets", type=int, default=1)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--recall", type=float, default=0.98)
    parser.add_argument("--new", type=int, default=5_000, help="documents added while searches run")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device that searches our index")
    parser.add_argument("--peers", action="store_true", help="measure qdrant-edge-py too")
    options = parser.parse_args(arguments)
    parameters, figures = dict(vars(options)), {}
    options.truth = _truth(options)
    for name in list(_ENGINES)[: 3 if options.peers else 2]:
        options.engine = name
        with tempfile.TemporaryDirectory() as directory:
            figures[name] = in_child(_fill, Path(directory), options) | in_child(_use, Path(directory), options)
        sys.stderr.write(f"{name}: {figures[name]}\n")
    print_report({"benchmark": "search", "parameters": parameters, "figures": figures})


def _facets(first: int, options: argparse.Namespace) -> Floats:
    count = min(_BATCH, options.documents - first)
    return make_facets(count, options.facets, options.dim, seed=1 + first)


def _queries(options: argparse.Namespace) -> Floats:
    return make_facets(options.queries, options.query_facets, options.dim, seed=_QUERIES_SEED)


def _truth(options: argparse.Namespace) -> list[set[int]]:
    queries, blocks = _queries(options), []
    for first in range(0, options.documents, _BATCH):
        cosines_QJNK = np.tensordot(queries, _facets(first, options), axes=(2, 2))
        blocks.append(cosines_QJNK.max(axis=3).sum(axis=1))
    order_QN = np.argsort(-np.concatenate(blocks, axis=1), axis=1, kind="stable")
    return [set(order_N[: options.top_k].tolist()) for order_N in order_QN]


def _fill(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    engine, stored_s = _ENGINES[options.engine](directory, options), 0.0
    for first in range(0, options.documents, _BATCH):
        stored_s += spent(partial(engine.add, first, _facets(first, options))).cpu
    built_s = spent(engine.build).cpu
    engine.close()
    return {"documents_stored_per_cpu_s": round(options.documents / stored_s), "build_cpu_s": round(built_s, 1)}


def _use(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    queries, kind = _queries(options), _ENGINES[options.engine]
    with tempfile.TemporaryDirectory() as empty:
        kind(Path(empty), options).close()  # to exclude the memory of the libraries themselves
    disk = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    gc.collect()
    before, start, cpu = resident_bytes(), time.perf_counter(), time.process_time()
    engine = kind(directory, options)
    engine.search(queries[0], engine.efforts[0])
    opened = {"seconds": round(time.perf_counter() - start, 2), "cpu_s": round(time.process_time() - cpu, 2)}
    for effort in engine.efforts:
        cpu, found, wall_ms = time.process_time(), 0, []
        for query, best in zip(queries, options.truth, strict=True):
            start = time.perf_counter()
            found += len(best & set(engine.search(query, effort)))
            wall_ms.append(1000 * (time.perf_counter() - start))
        cpu, recall = time.process_time() - cpu, found / sum(map(len, options.truth))
        if recall >= options.recall:
            break
    memory = resident_bytes() - before
    adding = {"adding": measure_adding(engine, options)} if isinstance(engine, _Ours) else {}
    engine.close()
    return {
        "open": opened,
        "recall": round(recall, 4),
        "effort": effort,
        "queries_per_cpu_s": round(len(queries) / cpu, 1),
        **percentiles(wall_ms, (50, 99), digits=2, unit="_ms"),
        "bytes_per_document": {"memory": round(memory / options.documents), "disk": round(disk / options.documents)},
        **adding,
    }


def measure_adding(ours: _Ours, options: argparse.Namespace) -> dict[str, object]:
    """Adds documents and builds the index while another thread searches; reports the longest search of each phase."""
    queries = _queries(options)
    longest = {"alone": 0.0, "adding": 0.0, "building": 0.0}
    phase, stop, first_round = "alone", threading.Event(), threading.Event()

    def search() -> None:
        while not stop.is_set():
            for query in queries:
                current, start = phase, time.perf_counter()
                ours.search(query, 0)
                longest[current] = max(longest[current], 1000 * (time.perf_counter() - start))
            first_round.set()

    searcher = threading.Thread(target=search)
    searcher.start()
    first_round.wait()
    phase, num_missed = "adding", 0
    for first in range(options.documents, options.documents + options.new, _BATCH):
        facets_NKD = make_facets(_BATCH, options.facets, options.dim, seed=1 + first)
        ours.add(first, facets_NKD)
        num_missed += ours.search(facets_NKD[-1], 0)[:1] != [first + _BATCH - 1]
    phase = "building"
    building_s = spent(ours.build).wall
    stop.set()
    searcher.join()
    return {
        "not_found_at_once": num_missed,
        "building_s": round(building_s, 2),
        "longest_search_ms": {name: round(ms, 1) for name, ms in longest.items()},
    }


if __name__ == "__main__":
    main()
