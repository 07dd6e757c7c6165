"""A GPU against the processor: the tests that need one, then encoding and exact search on both.

``python -m benchmarks.gpu [--device cuda] [--num-texts 4000] [--num-documents 100000] [--skip-tests]``

Results must agree: vectors within ``--tolerance`` of cosine 1, and the same best documents but for ties. The floor of a
search on the card is reading every facet once, in half precision, at the rate of its memory.
"""

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import facets
from benchmarks.encode import sentences
from benchmarks.measuring import print_report
from facets.devices import compute_device
from facets.errors import ConfigError
from facets.index.exact import ExactIndex
from facets.model import FacetModel, PassageModel

SEED = 1
NUM_FACETS, DIM, TOP_K = 16, 384, 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tests, measures, and prints one JSON object; 1 when a test fails or results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--num-texts", type=int, default=4000)
    parser.add_argument("--num-documents", type=int, default=100_000)
    parser.add_argument("--num-queries", type=int, default=64)
    parser.add_argument("--tolerance", type=float, default=0.01, help="how far from 1 a cosine may be")
    parser.add_argument("--skip-tests", action="store_true")
    options = parser.parse_args(arguments)
    try:
        device = compute_device(options.device)
    except ConfigError as error:
        parser.error(str(error))
    tests_passed = options.skip_tests or _run_tests()
    texts = list(itertools.islice(itertools.cycle(sentences(Path("samples"))), options.num_texts))
    encoding = {name: encode(name, texts, device) for name in ("facets-passages-en", "facets-en")}
    search = search_exactly(options.num_documents, options.num_queries, device)
    agrees = search["same_documents"] >= 0.99 and all(
        result["least_cosine"] >= 1 - options.tolerance for result in encoding.values()
    )
    result = {
        "benchmark": "gpu",
        "device": torch.cuda.get_device_name(device) if device != "cpu" else "cpu",
        "tests_passed": tests_passed,
        "results_agree": agrees,
        "encoding": encoding,
        "search": search,
    }
    print_report(result)
    return 0 if tests_passed and agrees else 1


def encode(name: str, texts: list[str], device: str) -> dict[str, Any]:
    """Texts a second on both, and the least cosine of a text's vectors on one with those on the other."""
    found = {}
    for place in ("cpu", device):
        encoder = _encoder(name, place)
        encoder(texts[:32])  # warm
        vectors, seconds = _timed(lambda encoder=encoder: encoder(texts), place)
        found[place] = vectors, len(texts) / seconds
    (ours, rate), (reference, reference_rate) = found[device], found["cpu"]
    return {
        "texts_per_s": round(rate, 1),
        "texts_per_s_cpu": round(reference_rate, 1),
        "ratio": round(rate / reference_rate, 2),
        "least_cosine": round(float(_cosines(ours, reference).min()), 5),
    }


def search_exactly(num_documents: int, num_queries: int, device: str) -> dict[str, Any]:
    """Queries a second on both over the same made facets, and the share of best documents that are the same."""
    rng = np.random.default_rng(SEED)
    indexes = {place: ExactIndex(num_facets=NUM_FACETS, dim=DIM, device=place) for place in {"cpu", device}}
    for start in range(0, num_documents, 4096):
        count = min(4096, num_documents - start)
        documents = rng.standard_normal((count, NUM_FACETS, DIM), dtype=np.float32)
        documents /= np.linalg.norm(documents, axis=2, keepdims=True)
        for index in indexes.values():
            index.add(np.arange(start, start + count), documents.astype(np.float16))
    queries = rng.standard_normal((num_queries, 1, DIM), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=2, keepdims=True)
    found = {}
    for place, index in indexes.items():
        index.search(queries[:1], TOP_K)  # warm
        candidates, seconds = _timed(lambda index=index: index.search(queries, TOP_K), place)
        found[place] = candidates.rows[:, :TOP_K], num_queries / seconds
    (rows, rate), (reference, reference_rate) = found[device], found["cpu"]
    same = [len(set(one) & set(other)) / TOP_K for one, other in zip(rows.tolist(), reference.tolist(), strict=True)]
    return {
        "documents": num_documents,
        "queries_per_s": round(rate, 1),
        "queries_per_s_cpu": round(reference_rate, 1),
        "ratio": round(rate / reference_rate, 2),
        "same_documents": round(float(np.mean(same)), 4),
    }


def _encoder(name: str, device: str) -> Callable[[list[str]], NDArray[np.float32]]:
    model = facets.load(name, device=device)
    if isinstance(model, PassageModel):
        return model.embed
    assert isinstance(model, FacetModel)
    return lambda texts: model.encode(texts).reshape(-1, model.dim)


def _cosines(ours: NDArray[np.float32], reference: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(reference, axis=1)
    cosines: NDArray[np.float32] = (ours * reference).sum(axis=1)[lengths > 0] / lengths[lengths > 0]
    return cosines


def _timed(work: Callable[[], Any], device: str) -> tuple[Any, float]:
    started = time.perf_counter()
    result = work()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return result, time.perf_counter() - started


def _run_tests() -> bool:
    """The tests marked gpu, their output on standard error."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu"]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
