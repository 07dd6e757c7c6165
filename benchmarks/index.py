"""Indexing speed, size and restart: ``python -m benchmarks.index [--documents 20000]``; JSON on standard output.

Ours stores durably and is searchable when upsert returns. Baselines in the same run: the same documents in one
SQLite transaction each (what a loop of single writes costs), and flat FAISS in float32, which keeps nothing but
vectors in memory.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import make_facets, print_report
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_SINGLES = 300  # documents of the slow baseline


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        report = measure(Path(directory), options.documents, options.facets, options.dim, options.batch)
    report["parameters"] = vars(options)
    print_report(report)


def measure(directory: Path, num_documents: int, num_facets: int, dim: int, batch: int) -> dict[str, object]:
    """Documents per second, bytes per document and seconds to restart, ours and the baselines'."""
    config = EngineConfig(background=False)
    start = time.perf_counter()
    with CollectionEngine.open(directory / "data", config) as engine:
        engine.create_collection("bench", model="synthetic", model_revision="1", num_facets=num_facets, dim=dim)
        spent = 0.0
        for first in range(0, num_documents, batch):
            documents = make_batch(first, min(batch, num_documents - first), num_facets, dim)
            start = time.perf_counter()
            engine.upsert("bench", documents)
            spent += time.perf_counter() - start
        start = time.perf_counter()
        engine.maintain()
        train_s = time.perf_counter() - start
    ours = num_documents / spent
    with_snapshot = restart(directory / "data", config)
    for path in (directory / "data" / "indexes").glob("*.index"):
        path.unlink()
    without_snapshot = restart(directory / "data", config)
    singles = single_writes(directory / "singles.sqlite3", num_facets, dim)
    flat = flat_adds(num_documents, num_facets, dim, batch)
    stored = os.path.getsize(directory / "data" / "documents.sqlite3")
    raw = num_facets * dim * np.dtype(np.float32).itemsize
    return {
        "benchmark": "index",
        "documents_per_s": {"ours": round(ours), "single_writes": round(singles), "flat_faiss_memory": round(flat)},
        "ratio": {"single_writes": round(ours / singles, 2), "flat_faiss_memory": round(ours / flat, 3)},
        "bytes_per_document": {
            "store": round(stored / num_documents),
            "float32_facets": raw,
            "ratio": round(stored / num_documents / raw, 3),
        },
        "train_s": round(train_s, 2),
        "restart_s": {"with_snapshot": round(with_snapshot, 3), "without_snapshot": round(without_snapshot, 3)},
    }


def make_batch(first: int, count: int, num_facets: int, dim: int) -> list[Document]:
    """Documents ``first`` to ``first + count``."""
    facets = make_facets(count, num_facets, dim, seed=1 + first)
    text = "a text of some words " * 10
    return [
        Document(id=f"{first + n:08}", text=text, facet_embeddings=facets[n], payload={"n": n}) for n in range(count)
    ]


def restart(data_dir: Path, config: EngineConfig) -> float:
    """Seconds until the data directory answers searches again."""
    start = time.perf_counter()
    with CollectionEngine.open(data_dir, config) as engine:
        info = engine.list_collections()[0]
        engine.search("bench", SearchRequest(facets=np.ones((1, info.num_facets, info.dim), dtype=np.float32), top_k=1))
        return time.perf_counter() - start


def single_writes(path: Path, num_facets: int, dim: int) -> float:
    """Documents per second with one durable transaction each."""
    documents = make_batch(0, _SINGLES, num_facets, dim)
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, text TEXT, facets BLOB)")
        start = time.perf_counter()
        for document in documents:
            blob: NDArray[np.float16] = document.facet_embeddings.astype(np.float16)
            values = (document.id, document.text, blob.tobytes())
            connection.execute("INSERT INTO documents VALUES (?, ?, ?)", values)
        return _SINGLES / (time.perf_counter() - start)


def flat_adds(num_documents: int, num_facets: int, dim: int, batch: int) -> float:
    """Documents per second into flat FAISS: in memory, gone at the next restart."""
    index = faiss.IndexFlatIP(dim)
    spent = 0.0
    for first in range(0, num_documents, batch):
        vectors = make_facets(min(batch, num_documents - first), num_facets, dim, seed=1 + first).reshape(-1, dim)
        start = time.perf_counter()
        index.add(vectors)
        spent += time.perf_counter() - start
    return num_documents / spent


if __name__ == "__main__":
    main()
