"""Documents summarized a second, beside LexRank of sumy on the same documents in the same run.

``python -m benchmarks.summarize [--data FILE.jsonl.xz] [--num-documents 100] [--threads 1] [--model NAME]``

LexRank compares every pair of sentences, we encode every sentence once: the ratio grows with the length of the
document. So documents of several lengths are measured: those of the data as they are, and longer ones made by joining
their sentences. Rates are documents for each second of CPU time, which neighbours on the machine disturb less than the
time on the clock; with one thread and an idle machine both are the same. ``words`` is our method without facets
(``word_share`` 1), the floor of tokenizing and selecting.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from facets_lab.texts.evaluation import read_summaries
from facets_lab.texts.systems import by_graph

import facets
from benchmarks.measuring import machine, print_report
from facets.language.tokenizer import Tokenizer
from facets.model import FacetModel
from facets.texts.coverage import CoverageConfig
from facets.texts.summarization import summarize

Document = Sequence[str]


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None, help="documents with sentences; default: samples/")
    parser.add_argument("--num-documents", type=int, default=100)
    parser.add_argument("--lengths", type=int, nargs="*", default=[100, 400], help="sentences of joined documents")
    parser.add_argument("--long", type=int, default=100_000, help="words of the longest document, ours alone; 0: none")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = facets.load(options.model, FacetModel)
    documents = _documents(options.data, model.tokenizer)
    sentences = [sentence for document in documents for sentence in document]
    sets = {"as they are": documents[: options.num_documents]}
    for length in options.lengths:
        sets[f"{length} sentences"] = [_joined(sentences, length)]
    result = {
        "benchmark": "summarize",
        "machine": machine(options.threads),
        "model": model.name,
        "data": str(options.data or "samples"),
        "sets": {name: _compare(model, some, options.repeats) for name, some in sets.items()},
    }
    if options.long:
        result["long"] = _long(model, sentences, options.long)
    print_report(result)


def _documents(path: Path | None, tokenizer: Tokenizer) -> list[Document]:
    if path is not None:
        return list(read_summaries(path).documents)
    lines = [line for file in sorted(Path("samples").glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    return [[s.text for s in tokenizer.sentences(json.loads(line)["text"])] for line in lines if line.strip()]


def _joined(sentences: Sequence[str], length: int) -> Document:
    return [sentences[i % len(sentences)] for i in range(length)]


def _compare(model: FacetModel, documents: Sequence[Document], repeats: int) -> dict[str, float]:
    vocabulary = model.words.vocabulary
    stop_words = [word for word, is_stop in zip(vocabulary.words, vocabulary.is_stop[:-1], strict=True) if is_stop]
    rank = by_graph("lexrank", model.tokenizer, stop_words)
    systems: dict[str, Callable[[], object]] = {
        "facets": lambda: summarize(model, documents),
        "words": lambda: summarize(model, documents, coverage=CoverageConfig(word_share=1.0)),
        "lexrank": lambda: [rank(document) for document in documents],
    }
    # In turns, so that all meet the same neighbours on the machine; the best of each counts.
    summarize(model, documents[:1])
    rates = {name: max(values) for name, values in _rates(systems, len(documents), repeats).items()}
    num_sentences = sum(map(len, documents))
    return {
        "documents": len(documents),
        "sentences_per_document": round(num_sentences / len(documents), 1),
        **{f"{name}_documents_per_cpu_s": round(rate, 2) for name, rate in rates.items()},
        "facets_over_lexrank": round(rates["facets"] / rates["lexrank"], 2),
        "words_over_lexrank": round(rates["words"] / rates["lexrank"], 2),
    }


def _rates(systems: dict[str, Callable[[], object]], num_documents: int, repeats: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(repeats):
        for name, run in systems.items():
            started = time.process_time()
            run()
            rates[name].append(num_documents / (time.process_time() - started))
    return rates


def _long(model: FacetModel, sentences: Sequence[str], num_words: int) -> dict[str, float]:
    document: list[str] = []
    left = num_words
    while left > 0:
        document.append(sentences[len(document) % len(sentences)])
        left -= len(document[-1].split())
    started = time.process_time()
    (summary,) = summarize(model, [document], num_sentences=20)
    return {
        "sentences": summary.num_sentences_in_document,
        "words": num_words - left,
        "cpu_s": round(time.process_time() - started, 2),
    }


if __name__ == "__main__":
    main()
