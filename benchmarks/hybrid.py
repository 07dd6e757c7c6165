"""Search by facets and words at size: ``python -m benchmarks.hybrid [--documents 100000]``; JSON on standard output.

Documents have the shape of passages, without a model: 200 words by Zipf's law, 10 to 16 facets of 384 dimensions with
spans; one document in ``--long-every`` has 128 facets and 2,000 words. Ours is the whole engine, query by query, with
evidence, text and payload of every hit. The baselines only score and give numbers of documents: flat FAISS over every
facet (half precision), bm25s, and both of them. Recall is that of the exact best ten by facets.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import bm25s
import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import make_facets, percentiles, print_report
from facets.documents import CollectionEngine, Document, EngineConfig, SearchMode, SearchRequest

_BATCH = 512
_FACETS, _DIM = 16, 384
_LEAST_FACETS, _LONG_FACETS = 10, 128
_WORDS, _LONG_WORDS, _VOCABULARY, _QUERY_WORDS = 200, 2_000, 50_000, 6
_TOP_K = 10

Search = Callable[[int], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Queries:
    """``facets`` ``[Q, J, D]`` of unit norm, and as many texts."""

    facets: NDArray[np.float32]
    texts: list[str]


class Baselines:
    """What others need to answer, filled beside the engine."""

    def __init__(self) -> None:
        self.facets = faiss.IndexScalarQuantizer(_DIM, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        self.owners: list[int] = []
        self.texts: list[str] = []
        self.ids: list[str] = []

    def add(self, documents: Sequence[Document]) -> None:
        """Takes documents."""
        for document in documents:
            used = document.facet_embeddings[document.facet_embeddings.any(axis=1)]
            self.facets.add(np.ascontiguousarray(used, dtype=np.float32))
            self.owners += [len(self.ids)] * len(used)
            self.ids.append(document.id)
            self.texts.append(document.text)

    def searches(self, queries: Queries) -> dict[str, Search]:
        """Ways to the best documents, by name."""
        owners, retriever = np.array(self.owners), bm25s.BM25()
        retriever.index(bm25s.tokenize(self.texts, show_progress=False), show_progress=False)

        def flat_faiss(query: int) -> list[str]:
            found = owners[self.facets.search(queries.facets[query][:1], _TOP_K * _FACETS)[1][0]]
            return [self.ids[owner] for owner in list(dict.fromkeys(found.tolist()))[:_TOP_K]]

        def lexical(query: int) -> list[str]:
            tokens = bm25s.tokenize(queries.texts[query], show_progress=False)
            found, _ = retriever.retrieve(tokens, k=_TOP_K, show_progress=False)
            return [self.ids[place] for place in found[0].tolist()]

        return {
            "flat_faiss": flat_faiss,
            "bm25s": lexical,
            "flat_faiss+bm25s": lambda query: [*flat_faiss(query), *lexical(query)],
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--long-every", type=int, default=0, help="0: no long documents")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--skip-baselines", action="store_true")
    options = parser.parse_args(arguments)
    config = EngineConfig(background=False)
    with tempfile.TemporaryDirectory() as directory:
        baselines = None if options.skip_baselines else Baselines()
        with CollectionEngine.open(directory, config) as engine:
            report = fill(engine, options.documents, options.long_every, baselines)
            report |= measure(engine, options.queries, baselines)
        size = {name: sum(path.stat().st_size for path in Path(directory).glob(name)) for name in _STORED}
        size["documents.sqlite3"] -= int(report.pop("text_bytes"))
        report["bytes_per_document"] = {name: round(size[key] / options.documents) for key, name in _STORED.items()}
        started = time.perf_counter()
        with CollectionEngine.open(directory, config):
            report["restart_s"] = round(time.perf_counter() - started, 2)
    print_report({"benchmark": "hybrid", **report, "parameters": vars(options)})


_STORED = {"documents.sqlite3": "store_beside_text", "indexes/*.index": "snapshot"}


def fill(engine: CollectionEngine, num: int, long_every: int, baselines: Baselines | None) -> dict[str, object]:
    """Stores the collection; returns how fast."""
    engine.create_collection("bench", model="synthetic", model_revision="1", num_facets=_FACETS, dim=_DIM)
    spent, text_bytes = 0.0, 0
    for documents in batches(num, long_every):
        started = time.perf_counter()
        engine.upsert("bench", documents)
        spent += time.perf_counter() - started
        text_bytes += sum(len(document.text) for document in documents)
        if baselines is not None:
            baselines.add(documents)
    started = time.perf_counter()
    engine.maintain()
    training_s = round(time.perf_counter() - started, 2)
    return {"documents_per_s": round(num / spent), "training_s": training_s, "text_bytes": text_bytes}


def batches(num: int, long_every: int) -> Iterator[list[Document]]:
    """Synthetic documents; the same ones for the same numbers."""
    rng = np.random.default_rng(0)
    for start in range(0, num, _BATCH):
        numbers = range(start, min(start + _BATCH, num))
        short = make_facets(len(numbers), _FACETS, _DIM, seed=1 + start)
        used = rng.integers(_LEAST_FACETS, _FACETS + 1, len(numbers))
        short[np.arange(_FACETS) >= used[:, None]] = 0
        documents = []
        for facets, number in zip(short, numbers, strict=True):
            is_long = long_every > 0 and number % long_every == 0
            held = make_facets(1, _LONG_FACETS, _DIM, seed=10**8 + number)[0] if is_long else facets
            text = _text(rng, _LONG_WORDS if is_long else _WORDS)
            bounds = np.arange(len(held) + 1) * len(text) // len(held)
            spans = np.stack([bounds[:-1], bounds[1:]], axis=1) * held.any(axis=1)[:, None]
            documents.append(Document(id=f"{number:08}", text=text, facet_embeddings=held, facet_spans=spans))
        yield documents


def _text(rng: np.random.Generator, num_words: int) -> str:
    """Words by Zipf's law: the n-th one comes about 1 / n times as often as the first."""
    ranks = np.exp(rng.random(num_words) * np.log(_VOCABULARY)).astype(np.int64)
    return " ".join(f"w{rank}" for rank in ranks.tolist())


def measure(engine: CollectionEngine, num_queries: int, baselines: Baselines | None) -> dict[str, object]:
    """Latencies in milliseconds, ratios to the baseline of both sides, recall of the facets' best ten."""
    rng = np.random.default_rng(1)
    report: dict[str, object] = {"index": engine.get_collection("bench").index_kind}
    figures = {}
    for num_facets in (1, 8):
        facets = make_facets(num_queries, num_facets, _DIM, seed=0)
        queries = Queries(facets=facets, texts=[_text(rng, _QUERY_WORDS) for _ in facets])
        truth = [set(_ours(engine, queries, "facets", exact=True)(query)) for query in range(num_queries)]
        searches = {mode: _ours(engine, queries, mode) for mode in _MODES}
        if baselines is not None and num_facets == 1:
            searches |= baselines.searches(queries)
        for name, search in searches.items():
            figure = timed(search, range(num_queries), truth, _TOP_K)
            if name not in ("facets", "flat_faiss"):
                figure.pop("recall")  # words have a truth of their own
            figures[name if num_facets == 1 else f"{name}, {num_facets} facets"] = figure
    report["figures"] = figures
    if baselines is not None:
        both = figures["flat_faiss+bm25s"]["p50_ms"]
        report["times_faster"] = {name: round(both / figure["p50_ms"], 2) for name, figure in figures.items()}
    return report


_MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")


def _ours(engine: CollectionEngine, queries: Queries, mode: SearchMode, *, exact: bool = False) -> Search:
    def search(query: int) -> list[str]:
        asked, text = queries.facets[query : query + 1], queries.texts[query : query + 1]
        found = engine.search("bench", SearchRequest(facets=asked, texts=text, mode=mode, top_k=_TOP_K, exact=exact))
        return [hit.id for hit in found.hits[0]]

    return search


def timed(search: Search, queries: Sequence[int], truth: Sequence[set[str]], top_k: int) -> dict[str, float]:
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


if __name__ == "__main__":
    main()
