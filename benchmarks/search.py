"""Search of a large collection: ``python -m benchmarks.search [--documents 100000] [--device cuda]``; prints JSON.

One process fills a collection and builds its index; a new one opens it again. Reports seconds to restart, recall,
queries per processor second compared with flat FAISS over all facets, whether a document is found as soon as it is
stored, the longest search while documents are added and while the index is built, memory and disk per document.
Facets are synthetic clusters with a fixed seed.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import in_child, make_facets, percentiles, print_report, resident_bytes
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_BATCH = 512
_NAME = "bench"
_QUERIES_SEED = 0  # documents use seeds 1 and up


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--query-facets", type=int, default=1)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--new", type=int, default=5_000, help="documents added while searches run")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device that searches the index")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        figures = in_child(_fill, Path(directory), options)
        figures |= in_child(_use, Path(directory), options)
    report = {"benchmark": "search", "vectors": options.documents * options.facets, **figures}
    print_report(report | {"parameters": vars(options)})


def _config(options: argparse.Namespace) -> EngineConfig:
    return EngineConfig(background=False, device=options.device)


def _documents(first: int, count: int, options: argparse.Namespace) -> list[Document]:
    facets_NKD = make_facets(count, options.facets, options.dim, seed=1 + first)
    text = "a text of some words " * 10
    return [
        Document(id=f"{first + n:08}", text=text, facet_embeddings=facets_NKD[n], payload={"n": n})
        for n in range(count)
    ]


def _queries(options: argparse.Namespace) -> NDArray[np.float32]:
    return make_facets(options.queries, options.query_facets, options.dim, seed=_QUERIES_SEED)


def _search(engine: CollectionEngine, query_JD: NDArray[np.float32], top_k: int, *, exact: bool = False) -> list[str]:
    hits = engine.search(_NAME, SearchRequest(facets=query_JD[None], top_k=top_k, exact=exact)).hits[0]
    return [hit.id for hit in hits]


def _fill(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    upsert_s = 0.0
    with CollectionEngine.open(directory, _config(options)) as engine:
        engine.create_collection(
            _NAME, model="synthetic", model_revision="1", num_facets=options.facets, dim=options.dim
        )
        for first in range(0, options.documents, _BATCH):
            documents = _documents(first, min(_BATCH, options.documents - first), options)
            start = time.process_time()
            engine.upsert(_NAME, documents)
            upsert_s += time.process_time() - start
        start = time.process_time()
        engine.maintain()
        build_s = time.process_time() - start
    return {"fill": {"documents_per_cpu_s": round(options.documents / upsert_s), "build_cpu_s": round(build_s, 1)}}


def _use(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    before = resident_bytes()
    start, cpu = time.perf_counter(), time.process_time()
    with CollectionEngine.open(directory, _config(options)) as engine:
        _search(engine, _queries(options)[0], 1)
        restart = {"seconds": round(time.perf_counter() - start, 2), "cpu_s": round(time.process_time() - cpu, 2)}
        memory = (resident_bytes() - before) / options.documents
        disk = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / options.documents
        return {
            "index": engine.get_collection(_NAME).index_kind,
            "restart": restart,
            "bytes_per_document": {
                "memory": round(memory),
                "disk": round(disk),
                "float32_facets": options.facets * options.dim * 4,
            },
            "search": measure_beside_flat(engine, options),
            "adding": measure_adding(engine, options),
        }


def measure_beside_flat(engine: CollectionEngine, options: argparse.Namespace) -> dict[str, object]:
    """Measures queries per processor second of the engine and of flat FAISS, and recall against exact search."""
    queries = _queries(options)
    flat = faiss.IndexFlatIP(options.dim)
    for first in range(0, options.documents, _BATCH):
        count = min(_BATCH, options.documents - first)
        flat.add(make_facets(count, options.facets, options.dim, seed=1 + first).reshape(-1, options.dim))
    truth = [set(_search(engine, query, options.top_k, exact=True)) for query in queries]
    _search(engine, queries[0], options.top_k)
    num_found, cpu, wall_ms = 0, time.process_time(), []
    for query, best in zip(queries, truth, strict=True):
        start = time.perf_counter()
        num_found += len(best & set(_search(engine, query, options.top_k)))
        wall_ms.append(1000 * (time.perf_counter() - start))
    engine_s = (time.process_time() - cpu) / len(queries)
    flat.search(queries[0], options.top_k * options.facets)
    cpu = time.process_time()
    for query in queries:
        flat.search(query, options.top_k * options.facets)
    flat_s = (time.process_time() - cpu) / len(queries)
    return {
        "recall": round(num_found / sum(map(len, truth)), 4),
        "queries_per_cpu_s": {"engine": round(1 / engine_s, 1), "flat_faiss": round(1 / flat_s, 2)},
        "times_flat_faiss": round(flat_s / engine_s, 1),
        **percentiles(wall_ms, (50, 99), digits=2, unit="_ms"),
    }


def measure_adding(engine: CollectionEngine, options: argparse.Namespace) -> dict[str, object]:
    """Adds documents and builds the index while another thread searches; reports the longest search of each phase."""
    queries = _queries(options)
    longest = {"alone": 0.0, "adding": 0.0, "building": 0.0}
    phase, stop, first_round = "alone", threading.Event(), threading.Event()

    def search() -> None:
        while not stop.is_set():
            for query in queries:
                current, start = phase, time.perf_counter()
                _search(engine, query, options.top_k)
                longest[current] = max(longest[current], 1000 * (time.perf_counter() - start))
            first_round.set()

    searcher = threading.Thread(target=search)
    searcher.start()
    first_round.wait()
    phase, num_missed = "adding", 0
    for first in range(options.documents, options.documents + options.new, _BATCH):
        documents = _documents(first, _BATCH, options)
        engine.upsert(_NAME, documents)
        last = documents[-1]
        assert last.facet_embeddings is not None
        num_missed += _search(engine, last.facet_embeddings, 1) != [last.id]
    phase, start = "building", time.perf_counter()
    engine.maintain()
    building_s = time.perf_counter() - start
    stop.set()
    searcher.join()
    return {
        "not_found_at_once": num_missed,
        "building_s": round(building_s, 2),
        "longest_search_ms": {name: round(ms, 1) for name, ms in longest.items()},
    }


if __name__ == "__main__":
    main()
