"""Small language models of Wikipedia: perplexity and rank of each output layer.

Shape suffixes: N sequences, L positions, V words, C contexts.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets_lab.heads.networks import NetworkTrainingConfig, SequenceTrainer
from facets_lab.training.corpus import clean_paragraph, read_documents
from facets_lab.training.loop import train_or_load

UNKNOWN = 1
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HELD_OUT_SHARE = 20  # one document in this many


@dataclass(frozen=True, slots=True)
class Corpus:
    """Text as word numbers: 0 is padding, 1 stands for all rare words, the others are ordered by frequency."""

    sequences: NDArray[np.int64]  # [N, L + 1]; each starts with the last word of the one before
    held_out: NDArray[np.int64]  # the same for other documents
    num_words: int
    share_unknown: float  # share of rare words among the held-out words


def read_corpus(files: Iterable[Path], *, num_tokens: int, num_words: int, length: int) -> Corpus:
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
    return Corpus(sequences, held_out, len(numbers) + 2, float((held_out == UNKNOWN).mean()))


def _cut(words: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    starts = np.arange(0, len(words) - length, length)
    return words[starts[:, None] + np.arange(length + 1)]


def measure_language_model(
    corpus: Corpus, config: NetworkTrainingConfig, folder: Path, *, num_contexts: int = 0
) -> dict[str, float]:
    """Trains a model in ``folder`` (or loads it) and measures it on the held-out documents.

    Returns:
        ``perplexity``, ``num_parameters``, ``seconds`` of training and the effective ranks ``rank_0.001`` and
        ``rank_0.0001`` of the log-probabilities of ``num_contexts`` contexts.
    """
    trainer, result = train_or_load(
        lambda: SequenceTrainer(config, corpus.sequences, corpus.held_out, num_words=corpus.num_words), folder
    )
    network = trainer.network.eval()
    with torch.no_grad():
        figures = {
            "perplexity": float(np.exp(trainer.mean_loss(corpus.held_out))),
            "num_parameters": float(sum(weights.numel() for weights in network.parameters())),
            "seconds": result.seconds,
        }
        if num_contexts:
            rows = -(-num_contexts // config.max_length)
            inputs = trainer.tensor(corpus.held_out[:rows, :-1])
            matrix_CV = network(inputs)[..., 1:].flatten(0, 1)[:num_contexts].float().cpu().numpy()
            figures |= {f"rank_{share}": effective_rank(matrix_CV, share) for share in (0.001, 0.0001)}
    return figures


def effective_rank(matrix: NDArray[np.floating], share: float) -> int:
    """The smallest number of singular values whose squares sum to ``1 - share`` of all (Parthiban 2020, eq. 5.2).

    Example:
        >>> effective_rank(np.diag([3.0, 1.0, 0.01]), 0.001)
        2
    """
    squares = np.linalg.svd(matrix.astype(np.float64), compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(squares), (1.0 - share) * squares.sum())) + 1
