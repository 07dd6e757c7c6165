"""``python -m facets_lab.generation``: generates text under chosen topics; prints one JSON object."""

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.comparison import print_report
from facets_lab.program import run_program

Files = Annotated[list[Path], typer.Argument(help="Corpus: '# Title', one paragraph per line, an empty line.")]
WorkDir = Annotated[Path, typer.Option(help="Folder of the run; an existing one is resumed.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]


def train(
    files: Files,
    work_dir: WorkDir,
    steps: Annotated[int, typer.Option(min=1, help="Training batches.")] = 2_400,
    batch_size: Annotated[int, typer.Option(min=2, help="Sequences per batch.")] = 8,
    layers: Annotated[int, typer.Option(min=1)] = 4,
    dim: Annotated[int, typer.Option(min=1)] = 256,
    num_pieces: Annotated[int, typer.Option(min=300, help="Size of the vocabulary.")] = 8_000,
    num_tokens: Annotated[int, typer.Option(min=1, help="Pieces of text to train on.")] = 4_000_000,
    seed: Seed = 1,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: all.")] = 0,
) -> None:
    """Trains a decoder that is given some of the next words.

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
    prompts: Annotated[int, typer.Option(min=2, help="Number of document beginnings.")] = 200,
    examples: Annotated[int, typer.Option(min=0, help="How many to print with continuations.")] = 20,
    seed: Seed = 1,
) -> None:
    """Measures perplexity, topic use and variety of continuations, with and without topics.

    Example: python -m facets_lab.generation evaluate shard-05.txt.xz --work-dir runs/generation
    """
    from facets_lab.generation.measure import report

    print_report(report(work_dir, files, num_prompts=prompts, shown=examples, seed=seed))


def go_on(
    text: Annotated[str, typer.Argument(help="Beginning of the text.")],
    work_dir: WorkDir,
    topic: Annotated[list[str] | None, typer.Option(metavar="WORDS", help="Words of a topic; repeatable.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Pieces to generate.")] = 50,
    seed: Seed = 1,
) -> None:
    """Continues a text under topics of a few words each, and suggests topics for it.

    Example: python -m facets_lab.generation continue "The army left the city." --topic "music concert" --work-dir ...
    """
    from facets_lab.generation.measure import continued

    print_report(continued(work_dir, text, topic or [], num_tokens=tokens, seed=seed))


COMMANDS: dict[str, Callable[..., None]] = {"train": train, "evaluate": evaluate, "continue": go_on}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    return run_program(
        "python -m facets_lab.generation", COMMANDS, arguments, help=__doc__ or "", log_level=logging.INFO
    )


if __name__ == "__main__":
    sys.exit(main())
