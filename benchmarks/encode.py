"""Texts per second of a model on the CPU, compared with MiniLM in sentence-transformers on the same texts.

``python -m benchmarks.encode [--num-texts 2000] [--threads 2] [--model NAME]``
"""

import argparse
import itertools
import json
import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from facets_lab.evaluation.comparison import minilm

import facets
from benchmarks.measuring import percentiles, print_report, spent
from facets.language.sentences import sentences_of
from facets.model import FacetModel


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-texts", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = list(itertools.islice(itertools.cycle(sample_sentences()), options.num_texts))
    model = facets.load(options.model, FacetModel)
    peer = minilm()
    # Alternates, so that other load on the machine affects both; the best run of each counts.
    runs = [tuple(texts_per_second(encode, texts) for encode in (model.encode, peer)) for _ in range(options.repeats)]
    ours, theirs = (max(rates) for rates in zip(*runs, strict=True))
    rows = model.tokenize(texts)
    rows_rate = texts_per_second(lambda _: model.encode_rows(rows), texts)
    tokens = sum(len(row) for row in rows)
    result = {
        "benchmark": "encode",
        "machine": {"processor": platform.processor() or platform.machine(), "threads": options.threads},
        "texts": len(texts),
        "tokens_per_text": round(tokens / len(texts), 1),
        "facets": {"model": model.name, "texts_per_s": round(ours, 1), "texts_per_s_tokenized": round(rows_rate, 1)},
        "minilm": {"texts_per_s": round(theirs, 1)},
        "ratio": round(ours / theirs, 2),
        "single_text_ms": percentiles([1e3 * spent(partial(model.encode, [text])).wall for text in texts[:200]], (50,)),
    }
    print_report(result)


def sample_sentences() -> list[str]:
    """Sentences of the samples."""
    lines = (line for file in sorted(Path("samples").glob("*.jsonl")) for line in file.read_text("utf-8").splitlines())
    return [sentence.text for line in lines for sentence in sentences_of(json.loads(line)["text"])]


def texts_per_second(encode: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    """Measures the rate after a warm-up with some of the texts."""
    encode(texts[:64])
    return len(texts) / spent(lambda: encode(texts)).wall


if __name__ == "__main__":
    main()
