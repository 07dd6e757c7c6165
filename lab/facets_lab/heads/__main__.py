"""``python -m facets_lab.heads``: compares output layers; prints one JSON object."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from facets.errors import ConfigError
from facets_lab.evaluation.comparison import print_report
from facets_lab.evaluation.statistics import repeat_seeds
from facets_lab.program import run_program

if TYPE_CHECKING:
    from facets_lab.heads.networks import NetworkTrainingConfig

Heads = Annotated[list[str] | None, typer.Option("--head", metavar="NAME", help="Layer; repeatable.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs per layer; seeds start at 1.")]
Steps = Annotated[int, typer.Option(min=1, help="Training batches.")]
WorkDir = Annotated[Path, typer.Option(help="Folder of the runs; finished ones are loaded.")]
Threads = Annotated[int, typer.Option(min=0, help="CPU threads; 0: all.")]


def items(
    file: Annotated[Path, typer.Argument(help="Lines of user, tab, items separated by spaces, oldest first.")],
    work_dir: WorkDir,
    head: Heads = None,
    seeds: Seeds = 5,
    steps: Steps = 800,
    dim: Annotated[int, typer.Option(min=1)] = 64,
    batch_size: Annotated[int, typer.Option(min=2, help="Sequences per batch.")] = 64,
    dropout: Annotated[float, typer.Option(min=0.0, max=0.99)] = 0.2,
    threads: Threads = 0,
) -> None:
    """Predicts the next items of users, with and without items seen before; also measures two baselines.

    Example: python -m facets_lab.heads items ml-100k.tsv.xz --head softmax --head c --work-dir runs/items
    """
    from facets_lab.heads.sequences import measure_baselines, measure_network, read_sequences

    data = read_sequences(file)
    config = _config("items", dim=dim, batch_size=batch_size, dropout=dropout, steps=steps, threads=threads)
    measured = repeat_seeds(
        head or ["softmax", "c"],
        seeds,
        lambda name, seed: measure_network(
            data, config.replaced(head=name, seed=seed), work_dir / f"{file.stem}-{name}-{seed}"
        ),
    )
    shape = {"users": len(data.users), "items": data.num_items - 1, "asked_for_again": data.share_repeated}
    print_report({"data": {"file": file.name, **shape}, "baselines": measure_baselines(data), "layers": measured})


def language(
    files: Annotated[list[Path], typer.Argument(help="Corpus: '# Title', one paragraph per line, an empty line.")],
    work_dir: WorkDir,
    head: Heads = None,
    seeds: Seeds = 5,
    steps: Steps = 2_000,
    dim: Annotated[int, typer.Option(min=1)] = 128,
    num_tokens: Annotated[int, typer.Option(min=1, help="Words of text to train on.")] = 2_000_000,
    num_words: Annotated[int, typer.Option(min=3, help="Size of the vocabulary.")] = 10_000,
    rank_contexts: Annotated[int, typer.Option(min=0, help="Contexts for the effective rank; 0: none.")] = 2_000,
    threads: Threads = 0,
) -> None:
    """Predicts the next words of a corpus: perplexity, parameters, rank.

    Example: python -m facets_lab.heads language shard-00.txt.xz --head softmax --head c --work-dir runs/words
    """
    from facets_lab.heads.language_models import measure_language_model, read_corpus

    config = _config("language", dim=dim, max_length=64, batch_size=32, steps=steps, threads=threads)
    corpus = read_corpus(files, num_tokens=num_tokens, num_words=num_words, length=config.max_length)
    measured = repeat_seeds(
        head or ["softmax", "sigsoftmax", "mos", "c"],
        seeds,
        lambda name, seed: measure_language_model(
            corpus,
            config.replaced(head=name, seed=seed),
            work_dir / f"{name}-{seed}",
            num_contexts=rank_contexts,
        ),
    )
    shape = {"sequences": len(corpus.sequences), "held_out": len(corpus.held_out), "words": corpus.num_words}
    print_report({"data": {**shape, "share_unknown": corpus.share_unknown}, "layers": measured})


def stolen(
    files: Annotated[list[Path], typer.Argument(help="Corpus: '# Title', one paragraph per line, an empty line.")],
    work_dir: WorkDir,
    head: Heads = None,
    dim: Annotated[list[int] | None, typer.Option(min=2, help="Dimensions of the model; repeatable.")] = None,
    seeds: Seeds = 1,
    steps: Steps = 1_000,
    num_tokens: Annotated[int, typer.Option(min=1, help="Words of text to train on.")] = 1_500_000,
    num_words: Annotated[int, typer.Option(min=3, help="Size of the vocabulary.")] = 10_000,
    threads: Threads = 0,
) -> None:
    """Finds words that are never most likely, by dimension, and the gain from a trigram model (Demeter et al. 2020).

    Example: python -m facets_lab.heads stolen shard-00.txt.xz --dim 8 --dim 32 --work-dir runs/stolen
    """
    from facets_lab.heads.language_models import read_corpus
    from facets_lab.heads.stolen import measure_stolen

    config = _config("stolen", max_length=64, batch_size=32, steps=steps, threads=threads)
    corpus = read_corpus(files, num_tokens=num_tokens, num_words=num_words, length=config.max_length)
    sizes = {f"{name}-{size}": (name, size) for name in head or ["softmax"] for size in dim or [8, 16, 32, 64]}

    def measure(name: str, seed: int) -> Mapping[str, float]:
        run = config.replaced(head=sizes[name][0], dim=sizes[name][1], seed=seed)
        return measure_stolen(corpus, run, work_dir / f"{name}-{seed}")

    print_report({"words": corpus.num_words, "layers": repeat_seeds(list(sizes), seeds, measure)})


def templates(
    analogies: Annotated[Path, typer.Argument(help="Lines of four words; sections start with ': name'.")],
    words: Annotated[Path, typer.Option(help="Folder of word vectors, such as models/facets-en.")],
    work_dir: WorkDir,
    head: Heads = None,
    kind: Annotated[str, typer.Option(help="Which two words of a parallelogram: diagonal or edge.")] = "diagonal",
    seeds: Seeds = 3,
    steps: Steps = 800,
    threads: Threads = 0,
) -> None:
    """Measures contexts that either of two words may follow, and the linear dependence of related words.

    Example: python -m facets_lab.heads templates analogies.txt.xz --words models/facets-en --work-dir runs/templates
    """
    from facets.language.vectors import WordVectors
    from facets_lab.heads.dependency import (
        PAIRS,
        ambiguous_contexts,
        dependency_ratios,
        measure_templates,
        read_analogies,
    )

    if kind not in PAIRS:
        raise ConfigError(f"kind must be {' or '.join(PAIRS)}, got {kind!r}")
    vectors = WordVectors.load(words).without_pieces()
    rows = read_analogies(analogies, vectors)
    contexts = ambiguous_contexts(vectors, rows, kind=kind)
    config = _config("templates", dim=vectors.dim, max_length=contexts.learned.shape[1], steps=steps, threads=threads)
    measured = repeat_seeds(
        head or ["softmax", "mos", "mfs-one-partition", "mfs"],
        seeds,
        lambda name, seed: measure_templates(
            contexts, config.replaced(head=name, seed=seed), work_dir / f"{kind}-{name}-{seed}"
        ),
    )
    shape = {"analogies": len(rows), "learned": len(contexts.learned), "held_out": len(contexts.held_out)}
    print_report({"data": shape, "dependency": dependency_ratios(vectors, rows), "layers": measured})


def _config(name: str, *, steps: int, threads: int, **values: Any) -> "NetworkTrainingConfig":
    from facets_lab.heads.networks import NetworkTrainingConfig
    from facets_lab.training.loop import OptimizerConfig

    return NetworkTrainingConfig(
        name=name,
        num_steps=steps,
        validate_every=steps,
        num_threads=threads,
        optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=100),
        **{"batch_size": 64} | values,
    )


COMMANDS: dict[str, Callable[..., None]] = {f.__name__: f for f in (items, language, stolen, templates)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one experiment; returns the exit code."""
    return run_program("python -m facets_lab.heads", COMMANDS, arguments, help=__doc__ or "", log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
