"""Mining a corpus, and scoring patterns against relations: ``python -m benchmarks.relations``.

Prints one JSON object: sentences a second that are mined, beside spaCy's matcher finding the same names in the same
text; patterns a second that are scored, beside scoring them one by one.
"""

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import spacy
import torch
from facets_lab.relations.entity_pairs import bare_name, distinctive_names, read_titled_documents
from facets_lab.relations.mining import mine_cells
from facets_lab.training.corpus import expand_files
from spacy.matcher import PhraseMatcher

from benchmarks.measuring import print_report, spent
from facets.relations.engine import RelationEngine

_SENTENCE_WORDS = 21  # of the corpus, on average; to compare with spaCy, which splits no sentences here


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", action="append", metavar="FILES", help="corpus files to mine; left out: no mining")
    parser.add_argument("--model", default=None, help="relation model; default: the shipped one")
    parser.add_argument("--patterns", type=int, default=10_000, help="patterns to score")
    parser.add_argument("--single", type=int, default=200, help="patterns scored one by one")
    parser.add_argument("--threads", type=int, default=2, help="cores to use")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    report: dict[str, object] = {"threads": options.threads, "scoring": _scoring(options)}
    if options.corpus:
        report["mining"] = _mining(options)
    print_report(report)


def _scoring(options: argparse.Namespace) -> dict[str, object]:
    engine = RelationEngine.load(options.model)
    known = list(engine.model.table.rows)
    # A number makes each pattern new, so that nothing is looked up.
    patterns = [known[n % len(known)].replace(" ", f" {n} ", 1) for n in range(options.patterns)]
    engine.score_arrays(patterns[:500])
    seconds, cpu_seconds = spent(lambda: engine.score_arrays(patterns))
    alone = spent(lambda: [engine.score_arrays([pattern]) for pattern in patterns[: options.single]]).wall
    return {
        "patterns": len(patterns),
        "relations": len(engine.relations()),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),  # of all cores together: what a busy machine does not change
        "patterns_per_second": round(len(patterns) / seconds, 1),
        "one_by_one_per_second": round(options.single / alone, 1),
        "ratio": round(len(patterns) / seconds / (options.single / alone), 2),
    }


def _mining(options: argparse.Namespace) -> dict[str, object]:
    files = expand_files(options.corpus)
    with tempfile.TemporaryDirectory() as folder:
        report = mine_cells(files, Path(folder), num_workers=options.threads, show_progress=False)
    matched = _spacy_words_per_second(files)
    return {
        "sentences": report.num_sentences,
        "cells": report.num_cells,
        "seconds": report.seconds,
        "sentences_per_second": report.sentences_per_second,
        "spacy_matcher_sentences_per_second": round(matched / _SENTENCE_WORDS * options.threads, 1),
        "ratio": round(report.sentences_per_second / (matched / _SENTENCE_WORDS * options.threads), 2),
    }


def _spacy_words_per_second(files: list[Path]) -> float:
    """Words a second that spaCy tokenizes and matches on one core; finding names only, no patterns."""
    documents = [d for file in files[:1] for d in islice(read_titled_documents(file), 200)]
    texts = [paragraph for _, paragraphs in documents for paragraph in paragraphs]
    nlp = spacy.blank("en")
    matcher = PhraseMatcher(nlp.vocab)
    names = distinctive_names([bare_name(title) for file in files for title, _ in read_titled_documents(file)], texts)
    matcher.add("name", [nlp.make_doc(name) for name in names])
    num_words = 0
    start = time.perf_counter()
    for doc in map(nlp.make_doc, texts):
        num_words += len(doc)
        matcher(doc)
    return num_words / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
