"""Stores side by side: ``python -m benchmarks.stores [--store sqlite --store postgres://...]``; JSON on stdout.

Documents of made vectors, nothing encoded: what is measured is store and index. Stores take turns in slices of the
documents and of the queries, so that whatever else the machine does befalls all alike. A PostgreSQL must be empty.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.measuring import print_report
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

_WORDS = [f"word{number}" for number in range(3000)]
_QUERIES_AT_A_TIME = 10


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", help="sqlite, or the address of an empty PostgreSQL; repeat")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--facets", type=int, default=12)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args(arguments)
    stores = options.store or ["sqlite", "sqlite"]
    with ExitStack() as held:
        engines = []
        for store in stores:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
            # Older trees, put on the path to be compared with, know SQLite alone.
            config = EngineConfig(background=False, **({} if store == "sqlite" else {"store": store}))
            engines.append(held.enter_context(CollectionEngine.open(folder / "data", config)))
        report = measure(engines, options)
    names = [store.partition(":")[0] for store in stores]
    first = {name: values[0] for name, values in report.items()}
    print_report(
        {
            "stores": [
                {"store": name, **{key: report[key][place] for key in report}} for place, name in enumerate(names)
            ],
            "ratios": {key: [round(value / first[key], 3) for value in values] for key, values in report.items()},
            "parameters": {name: value for name, value in vars(options).items() if name != "store"},
        }
    )


def measure(engines: Sequence[CollectionEngine], options: argparse.Namespace) -> dict[str, list[float]]:
    """Documents and queries a second of wall time, of each engine; the median slice counts."""
    for engine in engines:
        engine.create_collection(
            "bench", model="synthetic", model_revision="1", num_facets=options.facets, dim=options.dim
        )
    upserts: list[list[float]] = [[] for _ in engines]
    for first in range(0, options.documents, options.batch):
        documents = _documents(first, options)
        for place in _turns(len(engines), first // options.batch):
            start = time.perf_counter()
            engines[place].upsert("bench", documents)
            upserts[place].append(time.perf_counter() - start)
    for engine in engines:
        engine.maintain()
    searches: list[list[float]] = [[] for _ in engines]
    rng = np.random.default_rng(3)
    for turn in range(max(1, options.queries // _QUERIES_AT_A_TIME)):
        requests = [_request(rng, options) for _ in range(_QUERIES_AT_A_TIME)]
        for place in _turns(len(engines), turn):
            start = time.perf_counter()
            for request in requests:
                engines[place].search("bench", request)
            searches[place].append(time.perf_counter() - start)
    return {
        "documents_per_s": [options.batch / float(np.median(spent)) for spent in upserts],
        "queries_per_s": [_QUERIES_AT_A_TIME / float(np.median(spent)) for spent in searches],
    }


def _turns(number: int, turn: int) -> list[int]:
    return [(place + turn) % number for place in range(number)]


def _documents(first: int, options: argparse.Namespace) -> list[Document]:
    rng = np.random.default_rng(first)
    facets = rng.standard_normal((options.batch, options.facets, options.dim)).astype(np.float32)
    return [
        Document(
            id=f"d{first + place:07}",
            text=" ".join(rng.choice(_WORDS, 80)),
            facet_embeddings=one,
            payload={"number": first + place, "title": " ".join(rng.choice(_WORDS, 4))},
        )
        for place, one in enumerate(facets)
    ]


def _request(rng: np.random.Generator, options: argparse.Namespace) -> SearchRequest:
    facets = rng.standard_normal((1, 2, options.dim)).astype(np.float32)
    return SearchRequest(facets=facets, texts=[" ".join(rng.choice(_WORDS, 3))], top_k=10)


if __name__ == "__main__":
    main()
