"""``python -m facets_lab.multicls``: several class tokens against one; prints one JSON object."""

import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.comparison import minilm, print_report
from facets_lab.evaluation.statistics import repeat_seeds
from facets_lab.program import run_program


def classify(
    train: Annotated[Path, typer.Argument(help="Sentence and class, in either order, separated by a tab.")],
    held_out: Annotated[Path, typer.Argument(help="Test data in the same format.")],
    corpus: Annotated[list[Path], typer.Option(help="'# Title', one paragraph per line, an empty line.")],
    work_dir: Annotated[Path, typer.Option(help="Folder of the runs; finished contrastive training is loaded.")],
    tokens: Annotated[list[int] | None, typer.Option("--tokens", metavar="K", help="Class tokens; repeatable.")] = None,
    examples: Annotated[list[int] | None, typer.Option(help="Number of labelled sentences; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per setting; seeds start at 1.")] = 4,
    steps: Annotated[int, typer.Option(min=1, help="Batches of the contrastive training.")] = 200,
    batch_size: Annotated[int, typer.Option(min=2, help="Groups of texts per such batch.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Batches of the classifier, as passes over 100 examples.")] = 20,
    limit: Annotated[int, typer.Option(min=0, help="Held-out sentences; 0: all.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: all.")] = 0,
) -> None:
    """Classifies sentences with few examples: K class tokens, and a logistic regression on MiniLM's vectors.

    Example: python -m facets_lab.multicls classify subj-train.tsv.xz subj-dev.tsv.xz --corpus shard-00.txt.xz ...
    """
    from facets_lab.multicls import classification as c
    from facets_lab.multicls.encoder import ContrastConfig, load_minilm
    from facets_lab.training.loop import OptimizerConfig

    data = c.read_labelled(train), c.read_labelled(held_out)
    if limit:
        data = data[0], c.Labelled(data[1].texts[:limit], data[1].labels[:limit])
    triples = c.read_triples(corpus, max(2 * batch_size, steps * batch_size))

    def measure(name: str, seed: int, count: int) -> dict[str, float]:
        if name == "minilm":
            return c.measure_regression(minilm(), count, data, seed=seed)
        contrast = ContrastConfig(
            name="multicls",
            num_steps=steps,
            batch_size=batch_size,
            validate_every=steps,
            checkpoint_every=max(steps // 4, 1),
            num_classes=int(name.removeprefix("K=")),
            num_threads=threads,
            optimizer=OptimizerConfig(learning_rate=2e-4, warmup_steps=min(steps // 10 + 1, 100)),
        )
        folder = work_dir / f"{name}-{steps}"
        backbone, encoder, loss = c.pretrain(contrast, triples, folder, load_backbone=load_minilm)
        config = c.ClassifierConfig(
            name="multicls",
            num_threads=threads,
            num_steps=rounds * 100 // 16,
            batch_size=16,
            examples=count,
            seed=seed,
            optimizer=OptimizerConfig(learning_rate=1e-4, warmup_steps=10),
        )
        return c.measure_classifier((backbone, encoder), config, data) | {"contrast_loss": loss}

    names = [*(f"K={num}" for num in tokens or (1, 5)), "minilm"]
    report = {str(n): repeat_seeds(names, seeds, partial(measure, count=n)) for n in examples or (100, 1000)}
    shape = {"examples": len(data[0].texts), "held_out": len(data[1].texts), "sequences": len(triples)}
    print_report({"data": {"file": train.name, **shape}, "by_examples": report})


COMMANDS: dict[str, Callable[..., None]] = {"classify": classify}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the experiment and returns the exit code: 0, 1 after a reported error, 2 for wrong usage."""
    help = "Several class tokens against one; prints one JSON object."
    return run_program("python -m facets_lab.multicls", COMMANDS, arguments, help=help, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
