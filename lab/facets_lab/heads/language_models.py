"""Small language models of Wikipedia: perplexity of each output layer.

Shape suffixes: N sequences, L positions.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import Corpus, Seeds, Steps, Threads, WorkDir
from facets_lab.evaluation.statistics import repeat_seeds
from facets_lab.heads.networks import Heads, NetworkTrainingConfig, SequenceTrainer, experiment_config
from facets_lab.training.corpus import clean_paragraph, read_documents
from facets_lab.training.loop import TrainingResult, train_or_load

UNKNOWN = 1
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HELD_OUT_SHARE = 20  # one document in this many
NumTokens = Annotated[int, typer.Option(min=1, help="Words of text to train on.")]
NumWords = Annotated[int, typer.Option(min=3, help="Size of the vocabulary.")]


def language(
    files: Corpus,
    work_dir: WorkDir,
    head: Heads = None,
    seeds: Seeds = 5,
    steps: Steps = 2_000,
    dim: Annotated[int, typer.Option(min=1)] = 128,
    num_tokens: NumTokens = 2_000_000,
    num_words: NumWords = 10_000,
    threads: Threads = 0,
) -> Report:
    """Predict the next words of a corpus: perplexity and parameters.

    Example: python -m facets_lab.heads language shard-00.txt.xz --head softmax --head c --work-dir runs/words
    """
    config = experiment_config("language", dim=dim, max_length=64, batch_size=32, steps=steps, threads=threads)
    corpus = read_corpus(files, num_tokens=num_tokens, num_words=num_words, length=config.max_length)

    def measure(name: str, seed: int) -> dict[str, float]:
        run = config.replaced(head=name, seed=seed)
        return measure_language_model(corpus, run, work_dir / f"{name}-{seed}")

    measured = repeat_seeds(head or ["softmax", "sigsoftmax", "mos", "c"], seeds, measure)
    shape = {"sequences": len(corpus.sequences), "held_out": len(corpus.held_out), "words": corpus.num_words}
    return {"data": {**shape, "share_unknown": corpus.share_unknown}, "layers": measured}


@dataclass(frozen=True, slots=True)
class WordCorpus:
    """Text as word numbers: 0 is padding, 1 stands for all rare words, the others are ordered by frequency."""

    sequences: NDArray[np.int64]  # [N, L + 1]; each starts with the last word of the one before
    held_out: NDArray[np.int64]  # the same for other documents
    num_words: int
    share_unknown: float  # share of rare words among the held-out words


def read_corpus(files: Iterable[Path], *, num_tokens: int, num_words: int, length: int) -> WordCorpus:
    """The first ``num_tokens`` words of corpus files; every twentieth document is held out."""
    kept: list[str] = []
    apart: list[str] = []
    documents = (paragraphs for file in files for paragraphs in read_documents(file))
    for number, paragraphs in enumerate(documents):
        tokens = [t for p in paragraphs for t in _TOKEN.findall(clean_paragraph(p).lower())]
        (apart if number % _HELD_OUT_SHARE == 0 else kept).extend(tokens)
        if len(kept) >= num_tokens:
            break
    numbers = {word: row for row, (word, _) in enumerate(Counter(kept).most_common(num_words - 2), start=2)}
    sequences, held_out = (
        _cut(np.fromiter((numbers.get(word, UNKNOWN) for word in islice(words, num_tokens)), np.int64), length)
        for words in (kept, apart)
    )
    if not len(sequences) or not len(held_out):
        raise ConfigError(f"expected more than {length} words to learn from and to hold out, got {len(kept)}")
    return WordCorpus(sequences, held_out, len(numbers) + 2, float((held_out == UNKNOWN).mean()))


def _cut(words: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    starts = np.arange(0, len(words) - length, length)
    return words[starts[:, None] + np.arange(length + 1)]


def train_language_model(
    corpus: WordCorpus, config: NetworkTrainingConfig, folder: Path
) -> tuple[SequenceTrainer, float, TrainingResult]:
    """Trains a model in ``folder``, or loads it; with its perplexity on the held-out documents."""
    trainer, result = train_or_load(
        lambda: SequenceTrainer(config, corpus.sequences, corpus.held_out, num_words=corpus.num_words), folder
    )
    trainer.network.eval()
    with torch.no_grad():
        return trainer, float(np.exp(trainer.mean_loss(corpus.held_out))), result


def measure_language_model(corpus: WordCorpus, config: NetworkTrainingConfig, folder: Path) -> dict[str, float]:
    """``perplexity`` of the held-out documents, ``num_parameters`` and ``seconds`` of training."""
    trainer, perplexity, result = train_language_model(corpus, config, folder)
    num_parameters = float(sum(weights.numel() for weights in trainer.network.parameters()))
    return {"perplexity": perplexity, "num_parameters": num_parameters, "seconds": result.seconds}
