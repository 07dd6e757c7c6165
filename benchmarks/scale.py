"""A collection of a million facets: ``python -m benchmarks.scale [--documents 100000]``; JSON on standard output.

One process fills a collection and folds it, a fresh one opens it again: seconds to restart, recall, queries a
processor second beside flat FAISS over all facets, whether a document is found as soon as it is stored, the longest
search beside folding, memory and disk a document. Facets are synthetic clusters with a fixed seed.
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
from facets.index.backends import make_backend

_BATCH = 512
_NAME = "bench"
_QUERIES_SEED = 0  # documents have seeds from 1 on


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--query-facets", type=int, default=1)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--new", type=int, default=5_000, help="documents added while searches run")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        figures = in_child(_fill, Path(directory), options)
        figures |= in_child(_use, Path(directory), options)
    report = {"benchmark": "scale", "vectors": options.documents * options.facets, **figures}
    print_report(report | {"parameters": vars(options)})


def make_batch(first: int, count: int, num_facets: int, dim: int) -> list[Document]:
    """Documents ``first`` to ``first + count``."""
    facets = make_facets(count, num_facets, dim, seed=1 + first)
    text = "a text of some words " * 10
    return [
        Document(id=f"{first + n:08}", text=text, facet_embeddings=facets[n], payload={"n": n}) for n in range(count)
    ]


def _config(options: argparse.Namespace) -> EngineConfig:
    return EngineConfig(background=False)


def _fill(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    spent = 0.0
    with CollectionEngine.open(directory, _config(options)) as engine:
        engine.create_collection(
            _NAME, model="synthetic", model_revision="1", num_facets=options.facets, dim=options.dim
        )
        for first in range(0, options.documents, _BATCH):
            documents = make_batch(first, min(_BATCH, options.documents - first), options.facets, options.dim)
            start = time.process_time()
            engine.upsert(_NAME, documents)
            spent += time.process_time() - start
        start = time.process_time()
        engine.maintain()
        train_s = time.process_time() - start
    return {"fill": {"documents_per_cpu_s": round(options.documents / spent), "training_cpu_s": round(train_s, 1)}}


def _use(directory: Path, options: argparse.Namespace) -> dict[str, object]:
    before = resident_bytes()
    start, cpu = time.perf_counter(), time.process_time()
    with CollectionEngine.open(directory, _config(options)) as engine:
        engine.search(_NAME, SearchRequest(facets=_queries(options, 1)[0][None], top_k=1))
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
            "search": beside_flat(engine, options),
            "adding": adding(engine, options),
        }


def _queries(options: argparse.Namespace, count: int) -> NDArray[np.float32]:
    return make_facets(count, options.query_facets, options.dim, seed=_QUERIES_SEED)


def beside_flat(engine: CollectionEngine, options: argparse.Namespace) -> dict[str, object]:
    """Queries a processor second, ours and by flat FAISS; recall of the exact best."""
    queries = _queries(options, options.queries)
    flat = faiss.IndexFlatIP(options.dim)
    for first in range(0, options.documents, _BATCH):
        count = min(_BATCH, options.documents - first)
        flat.add(make_facets(count, options.facets, options.dim, seed=1 + first).reshape(-1, options.dim))

    def ours(query: NDArray[np.float32]) -> list[str]:
        return [hit.id for hit in engine.search(_NAME, SearchRequest(facets=query[None], top_k=options.top_k)).hits[0]]

    def by_flat(query: NDArray[np.float32]) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = flat.search(query, options.top_k * options.facets)[1] // options.facets
        return rows

    truth = [
        {
            hit.id
            for hit in engine.search(_NAME, SearchRequest(facets=query[None], top_k=options.top_k, exact=True)).hits[0]
        }
        for query in queries
    ]
    ours(queries[0])
    found, cpu, wall_ms = 0, time.process_time(), []
    for query, best in zip(queries, truth, strict=True):
        start = time.perf_counter()
        found += len(best & set(ours(query)))
        wall_ms.append(1000 * (time.perf_counter() - start))
    ours_s = (time.process_time() - cpu) / len(queries)
    by_flat(queries[0])
    cpu = time.process_time()
    for query in queries:
        by_flat(query)
    flat_s = (time.process_time() - cpu) / len(queries)
    return {
        "recall": round(found / sum(map(len, truth)), 4),
        "queries_per_cpu_s": {"ours": round(1 / ours_s, 1), "flat_faiss": round(1 / flat_s, 2)},
        "times_flat_faiss": round(flat_s / ours_s, 1),
        **percentiles(wall_ms, (50, 99), digits=2, unit="_ms"),
    }


def adding(engine: CollectionEngine, options: argparse.Namespace) -> dict[str, object]:
    """Adds documents and folds them while another thread searches; the longest search of each phase."""
    queries = _queries(options, options.queries)
    longest = {"alone": 0.0, "adding": 0.0, "folding": 0.0}
    phase, stop, first_done = ["alone"], threading.Event(), threading.Event()

    def search() -> None:
        while not stop.is_set():
            for query in queries:
                during, start = phase[0], time.perf_counter()
                engine.search(_NAME, SearchRequest(facets=query[None], top_k=options.top_k))
                longest[during] = max(longest[during], 1000 * (time.perf_counter() - start))
            first_done.set()

    searcher = threading.Thread(target=search)
    searcher.start()
    first_done.wait()
    phase[0] = "adding"
    missed = 0
    for first in range(options.documents, options.documents + options.new, _BATCH):
        documents = make_batch(first, _BATCH, options.facets, options.dim)
        engine.upsert(_NAME, documents)
        hits = engine.search(_NAME, SearchRequest(facets=documents[-1].facet_embeddings[None], top_k=1)).hits[0]
        missed += [hit.id for hit in hits] != [documents[-1].id]
    make_backend(_config(options)).enter_background()  # as the engine's own thread folds
    phase[0], start = "folding", time.perf_counter()
    engine.maintain()
    folding_s = time.perf_counter() - start
    stop.set()
    searcher.join()
    return {
        "not_found_at_once": missed,
        "folding_s": round(folding_s, 2),
        "longest_search_ms": {name: round(ms, 1) for name, ms in longest.items()},
    }


if __name__ == "__main__":
    main()
