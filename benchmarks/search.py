"""Search latency and recall: ``python -m benchmarks.search [--documents 20000]``; JSON on standard output.

Recall is of the order that search promises: the sum over the facets of the query of the document's best facet.
Ours is the whole engine: index, exact rescoring from the store, text and payload of every hit. The baselines only
score: a loop over documents in NumPy, flat FAISS over all facets whose documents are scored by hand, and flat FAISS
over one vector a document (the mean of its facets), which is faster and finds other documents.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import make_facets, percentiles, print_report
from facets.documents import CollectionEngine, Document, EngineConfig, Equals, SearchRequest

_BATCH = 512
_LOOP_QUERIES = 3  # the NumPy loop is slow

Search = Callable[[NDArray[np.float32]], Sequence[str]]
QueryT = TypeVar("QueryT")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--facets", type=int, default=10)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--code", choices=["fp16", "int8"], default="fp16")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        config = EngineConfig(background=False, code=options.code, snapshot_on_close=False)
        with CollectionEngine.open(directory, config) as engine:
            facets = fill(engine, options.documents, options.facets, options.dim)
            report = measure(engine, facets, options.queries, options.top_k)
    report["parameters"] = vars(options)
    print_report(report)


def fill(engine: CollectionEngine, num_documents: int, num_facets: int, dim: int) -> NDArray[np.float16]:
    """Stores the collection and returns its facets, ``[N, K, D]``."""
    engine.create_collection("bench", model="synthetic", model_revision="1", num_facets=num_facets, dim=dim)
    kept = np.empty((num_documents, num_facets, dim), dtype=np.float16)
    for start in range(0, num_documents, _BATCH):
        count = min(_BATCH, num_documents - start)
        facets = make_facets(count, num_facets, dim, seed=1 + start)
        kept[start : start + count] = facets
        documents = [
            Document(
                id=f"{start + n:08}",
                text="a text of some words " * 10,
                facet_embeddings=facets[n],
                payload={"n": n % 10},
            )
            for n in range(count)
        ]
        engine.upsert("bench", documents)
    engine.maintain()
    return kept


def measure(engine: CollectionEngine, facets: NDArray[np.float16], num_queries: int, top_k: int) -> dict[str, object]:
    """Latencies in milliseconds, ratios against ours, recall of the exact best ``top_k``."""
    queries = make_facets(num_queries, *facets.shape[1:], seed=0)
    searches = ways(engine, facets, top_k)
    truth = [set(searches["numpy_loop"](query)) for query in queries]
    figures = {
        name: timed(search, list(queries[: _LOOP_QUERIES if name == "numpy_loop" else num_queries]), truth, top_k)
        for name, search in searches.items()
    }
    figures["ours_filtered"].pop("recall")  # another question: it has another truth
    ours_ms = figures["ours"]["p50_ms"]
    return {
        "benchmark": "search",
        "index": engine.get_collection("bench").index_kind,
        "figures": figures,
        "times_ours": {name: round(figure["p50_ms"] / ours_ms, 2) for name, figure in figures.items()},
    }


def ways(engine: CollectionEngine, facets: NDArray[np.float16], top_k: int) -> dict[str, Search]:
    """Ways to find the best ``top_k`` documents for a query, by name."""
    _, num_facets, dim = facets.shape
    vectors = unit(facets.reshape(-1, dim).astype(np.float32))  # as stored, so that the truth is ours
    flat = faiss.IndexFlatIP(dim)
    flat.add(vectors)
    single = faiss.IndexFlatIP(dim)
    single.add(unit(facets.astype(np.float32).mean(axis=1)))

    def ours(query: NDArray[np.float32]) -> Sequence[str]:
        return [hit.id for hit in engine.search("bench", SearchRequest(facets=query[None], top_k=top_k)).hits[0]]

    def ours_exact(query: NDArray[np.float32]) -> Sequence[str]:
        return [
            hit.id for hit in engine.search("bench", SearchRequest(facets=query[None], top_k=top_k, exact=True)).hits[0]
        ]

    def ours_filtered(query: NDArray[np.float32]) -> Sequence[str]:
        found = engine.search("bench", SearchRequest(facets=query[None], top_k=top_k, filter=Equals("n", 3)))
        return [hit.id for hit in found.hits[0]]

    def numpy_loop(query: NDArray[np.float32]) -> Sequence[str]:
        scores = np.array([(query @ document.T).max(axis=1).sum() for document in vectors.reshape(facets.shape)])
        return [f"{row:08}" for row in np.argsort(-scores, kind="stable")[:top_k]]

    def flat_faiss(query: NDArray[np.float32]) -> Sequence[str]:
        rows = np.unique(flat.search(query, top_k * num_facets)[1] // num_facets)
        # [C, K, D] x [D, J] -> [C, K, J] -> best facet for each of the query's, added up [C]
        scores = (vectors.reshape(facets.shape)[rows] @ query.T).max(axis=1).sum(axis=1)
        return [f"{row:08}" for row in rows[np.argsort(-scores, kind="stable")[:top_k]]]

    def single_vector(query: NDArray[np.float32]) -> Sequence[str]:
        return [f"{row:08}" for row in single.search(unit(query.mean(axis=0, keepdims=True)), top_k)[1][0]]

    searches = (ours, ours_exact, ours_filtered, numpy_loop, flat_faiss, single_vector)
    return {search.__name__: search for search in searches}


def timed(
    search: Callable[[QueryT], Sequence[str]], queries: Sequence[QueryT], truth: Sequence[set[str]], top_k: int
) -> dict[str, float]:
    """Median and 95th percentile of single queries, and recall."""
    search(queries[0])
    times, found = [], 0
    for query, best in zip(queries, truth, strict=False):
        start = time.perf_counter()
        answer = search(query)
        times.append(1000 * (time.perf_counter() - start))
        found += len(best & set(answer))
    return {
        **percentiles(times, (50, 95), digits=3, unit="_ms"),
        "recall": round(found / (top_k * len(times)), 4),
    }


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to unit norm."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


if __name__ == "__main__":
    main()
