"""Indexes side by side, and what a cluster needs: ``python -m benchmarks.cluster``; JSON on standard output.

The same synthetic documents in every index, each in a process of its own: documents a second into store and index,
memory, recall of the best 10 against everything compared, processor time of a search, plain and with a filter that 5 %
of the documents pass.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import in_child, make_facets, percentiles, print_report, resident_bytes
from facets.documents import CollectionEngine, Document, EngineConfig, Equals, Filter, SearchRequest

INDEXES = ("exact", "faiss", "edge")
_BATCH = 512
_QUERY_FACETS = 3
_WEIGHTS = (0.6, 0.3, 0.1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--facets", type=int, default=12)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--indexes", nargs="+", default=INDEXES)
    options = parser.parse_args(arguments)
    shape = (options.documents, options.facets, options.dim)
    found = {name: in_child(measure, name, shape, options.queries) for name in options.indexes}
    print_report({"indexes": found, "sizing": sizing(), "parameters": vars(options)})


def measure(index: str, shape: tuple[int, int, int], num_queries: int) -> dict[str, object]:
    """One index: ingest, memory, recall and processor time."""
    num_documents, num_facets, dim = shape
    facets = make_facets(num_documents + num_queries, num_facets, dim, seed=1)
    queries, weights = facets[num_documents:, :_QUERY_FACETS], np.tile(_WEIGHTS, (num_queries, 1))
    before = resident_bytes()
    with tempfile.TemporaryDirectory() as folder:
        config = EngineConfig(index=index, exact_max_facets=1_000, background=False, snapshot_on_close=False)
        with CollectionEngine.open(Path(folder), config) as engine:
            engine.create_collection("docs", model="m", model_revision="1", num_facets=num_facets, dim=dim)
            started = time.perf_counter()
            for first in range(0, num_documents, _BATCH):
                some = range(first, min(first + _BATCH, num_documents))
                documents = [_document(n, facets[n]) for n in some]
                engine.upsert("docs", documents)
            stored = time.perf_counter()
            engine.maintain()
            indexed = time.perf_counter()
            report: dict[str, object] = {
                "index_kind": engine.get_collection("docs").index_kind,
                "stored_per_s": round(num_documents / (stored - started)),
                "indexed_per_s": round(num_documents / (indexed - stored)),
            }
            for name, where in (("all", None), ("filter of 5 %", Equals("twentieth", 3))):
                report[name] = _searched(engine, queries, weights, where=where)
            report["memory_mb"] = round((resident_bytes() - before) / 1e6)
    return report


def _document(number: int, facets: np.ndarray) -> Document:
    return Document(id=f"d{number}", text="", payload={"twentieth": number % 20}, facet_embeddings=facets)


def _searched(
    engine: CollectionEngine, queries: np.ndarray, weights: np.ndarray, *, where: Filter | None
) -> dict[str, object]:
    ms, walls, hits = list[float](), list[float](), 0
    for query, weight in zip(queries, weights, strict=True):
        request = SearchRequest(facets=query[None], weights=weight[None], top_k=10, where=where)
        wall, cpu = time.perf_counter(), time.process_time()
        found = engine.search("docs", request).hits[0]
        ms.append(1e3 * (time.process_time() - cpu))
        walls.append(1e3 * (time.perf_counter() - wall))
        exact = SearchRequest(facets=query[None], weights=weight[None], top_k=10, where=where, exact=True)
        hits += len({hit.id for hit in found} & {hit.id for hit in engine.search("docs", exact).hits[0]})
    times = percentiles(ms, (50, 90), unit="_cpu_ms") | percentiles(walls, (50, 90), unit="_ms")
    return {"recall_10": round(hits / (10 * len(queries)), 3), **times}


def sizing(
    num_documents: int = 100_000_000, *, num_facets: int = 12, dim: int = 384, copies: int = 2
) -> dict[str, float]:
    """What so many documents need, in GB of 10^9 bytes.

    ``truth`` is PostgreSQL: facets of one byte a number, their norms and spans, and for text, payload, terms and lines
    of tables some 1,550 bytes a document, which is an assumption. ``vectors`` is Qdrant's disk, half precision;
    ``codes`` its memory, a bit a number; ``ids`` the numbers, versions and links of points there, some 340 bytes a
    document, an estimate. ``memory_a_node`` is that of codes and ids in all copies over the nodes: the rest of 96 GB
    keeps vectors near that are scored again.

    Example:
        >>> sizing()
        {'truth': 630.2, 'vectors': 921.6, 'codes': 57.6, 'ids': 34.0, 'memory_a_node': 61.1, 'nodes': 3}
    """
    numbers = num_documents * num_facets * dim
    sizes = {
        "truth": numbers + num_documents * (12 * num_facets + 1_550),
        "vectors": 2 * numbers,
        "codes": numbers / 8,
        "ids": 340 * num_documents,
    }
    nodes = 3
    in_memory = copies * (sizes["codes"] + sizes["ids"]) / nodes
    rounded = {name: round(size / 1e9, 1) for name, size in sizes.items()}
    return rounded | {"memory_a_node": round(in_memory / 1e9, 1), "nodes": nodes}


if __name__ == "__main__":
    main()
