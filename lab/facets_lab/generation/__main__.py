"""``python -m facets_lab.generation``: text that goes on under chosen topics, one JSON object on standard output."""

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.comparison import print_report
from facets_lab.program import run_program

Files = Annotated[list[Path], typer.Argument(help="Corpus: '# Title', a paragraph a line, an empty line.")]
WorkDir = Annotated[Path, typer.Option(help="Folder of the run; one that is there goes on.")]
Seed = Annotated[int, typer.Option(help="Of everything random.")]


def train(
    files: Files,
    work_dir: WorkDir,
    steps: Annotated[int, typer.Option(min=1, help="Batches.")] = 2_400,
    batch_size: Annotated[int, typer.Option(min=2, help="Sequences of a batch.")] = 8,
    layers: Annotated[int, typer.Option(min=1)] = 4,
    dim: Annotated[int, typer.Option(min=1)] = 256,
    num_pieces: Annotated[int, typer.Option(min=300, help="Of the vocabulary.")] = 8_000,
    num_tokens: Annotated[int, typer.Option(min=1, help="Pieces to learn from.")] = 4_000_000,
    seed: Seed = 1,
    threads: Annotated[int, typer.Option(min=0, help="Of the processor; 0: all.")] = 0,
) -> None:
    """Trains a decoder that is told some of the words that come.

    Example: python -m facets_lab.generation train shard-00.txt.xz --work-dir runs/generation
    """
    from facets_lab.generation.generator import GenerationConfig, train_generator

    config = GenerationConfig(
        num_steps=steps,
        batch_size=batch_size,
        num_layers=layers,
        dim=dim,
        num_pieces=num_pieces,
        seed=seed,
        num_threads=threads,
    )
    print_report(train_generator(config, files, work_dir, num_tokens=num_tokens))


def evaluate(
    files: Files,
    work_dir: WorkDir,
    prompts: Annotated[int, typer.Option(min=2, help="Openings of documents.")] = 200,
    examples: Annotated[int, typer.Option(min=0, help="Of them shown with their continuations.")] = 20,
    seed: Seed = 1,
) -> None:
    """Perplexity, topics met and variety of continuations, told nothing and told topics.

    Example: python -m facets_lab.generation evaluate shard-05.txt.xz --work-dir runs/generation
    """
    from facets_lab.generation.measure import report

    print_report(report(work_dir, files, num_prompts=prompts, shown=examples, seed=seed))


def go_on(
    text: Annotated[str, typer.Argument(help="What is written so far.")],
    work_dir: WorkDir,
    topic: Annotated[list[str] | None, typer.Option(metavar="WORDS", help="Repeatable: what is to come.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Pieces to write.")] = 50,
    seed: Seed = 1,
) -> None:
    """A text under topics of a few words each, and what topics are suggested for it.

    Example: python -m facets_lab.generation continue "The army left the city." --topic "music concert" --work-dir ...
    """
    from facets_lab.generation.measure import continued

    print_report(continued(work_dir, text, topic or [], num_tokens=tokens, seed=seed))


COMMANDS: dict[str, Callable[..., None]] = {"train": train, "evaluate": evaluate, "continue": go_on}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    help = "Text that goes on under chosen topics; one JSON object on standard output."
    return run_program("python -m facets_lab.generation", COMMANDS, arguments, help=help, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
