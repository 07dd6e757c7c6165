"""Scoring pairs of sentences by every method, beside MiniLM through sentence-transformers: JSON on standard output.

``python -m benchmarks.similarity [--data STS.tsv] [--pairs 1500] [--threads 1] [--wmd]``

Without a file, neighbouring sentences of the bundled samples are the pairs. Both systems get the texts as strings and
encode each distinct one once; the best of the repeats, taken in turns, counts. Times are wall-clock and CPU seconds: on
a machine with other work the CPU seconds are the ones to read. ``command`` is ``facets-eval sts`` as a process of its
own, imports and loading of the model included.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from facets_lab.evaluation.comparison import minilm
from facets_lab.texts.evaluation import read_sts
from facets_lab.texts.systems import PAIR_METHODS, EmbeddingPairs, FacetPairs, PairSystem

import facets
from benchmarks.measuring import Spent, print_report, spent
from facets.model import FacetModel

Pairs = Sequence[tuple[str, str]]

_SAMPLES = Path("samples/wikipedia.jsonl")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="score<TAB>sentence<TAB>sentence; default: pairs from the samples")
    parser.add_argument("--pairs", type=int, default=1500, help="at most so many pairs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default=None)
    parser.add_argument("--wmd", action="store_true", help="also the word mover's distances")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    model = facets.load(options.model, FacetModel)
    pairs = (_pairs_of_samples(model) if options.data is None else read_sts(options.data).pairs)[: options.pairs]
    methods = tuple(str(name) for name in PAIR_METHODS if options.wmd or "wmd" not in name)
    ours: dict[str, PairSystem] = {"all": FacetPairs(model.name, model, methods)}
    ours |= {name: FacetPairs(model.name, model, (name,)) for name in methods}
    minilm_pairs = EmbeddingPairs("minilm", minilm())
    runs: list[dict[str, Spent]] = []
    for _ in range(options.repeats):
        run = {name: spent(partial(_score, system, pairs)) for name, system in ours.items()}
        run["minilm"] = spent(partial(_score, minilm_pairs, pairs))
        runs.append(run)
    best = {name: Spent(*(min(times) for times in zip(*(run[name] for run in runs), strict=True))) for name in runs[0]}
    theirs = best.pop("minilm")
    report = {
        "benchmark": "similarity",
        "data": str(options.data or _SAMPLES),
        "pairs": len(pairs),
        "texts": len({text for pair in pairs for text in pair}),
        "threads": options.threads,
        "model": model.name,
        "minilm_s": _rounded(theirs),
        "facets_s": {name: _rounded(seconds) for name, seconds in best.items()},
        "pairs_per_cpu_s": {name: round(len(pairs) / seconds.cpu) for name, seconds in best.items()},
        "times_minilm": {name: round(theirs.cpu / seconds.cpu, 2) for name, seconds in best.items()},
        "command_s": _rounded(_command(pairs, methods, options)),
    }
    print_report(report)


def _score(system: PairSystem, pairs: Pairs) -> None:
    for _ in system.scores(pairs):
        pass


def _command(pairs: Pairs, methods: Sequence[str], options: argparse.Namespace) -> Spent:
    """One run of ``facets-eval sts`` on the same pairs."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "pairs.tsv"
        lines = [f"{row % 6}\t{first}\t{second}\n" for row, (first, second) in enumerate(pairs)]
        data.write_text("".join(lines), encoding="utf-8")
        command = [sys.executable, "-m", "facets_lab.evaluation", "sts", str(data)]
        command += [part for method in methods for part in ("--method", method)]
        command += ["--model", options.model] if options.model else []
        environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
        before, wall = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Spent(time.perf_counter() - wall, cpu)


def _pairs_of_samples(model: FacetModel) -> tuple[tuple[str, str], ...]:
    records = [json.loads(line) for line in _SAMPLES.read_text(encoding="utf-8").splitlines()]
    sentences = [
        " ".join(sentence.text.split())
        for record in records
        for sentence in model.tokenizer.sentences(str(record["text"]))
    ]
    return tuple(zip(sentences[::2], sentences[1::2], strict=False))


def _rounded(seconds: Spent) -> dict[str, float]:
    return {clock: round(value, 2) for clock, value in seconds._asdict().items()}


if __name__ == "__main__":
    main()
