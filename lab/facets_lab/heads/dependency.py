"""Linear dependence of related words, and layers that must predict either of two of them.

Shape suffixes: A analogies, N words of a set, S sets, D dimensions, B contexts, L positions, V words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors
from facets_lab.evaluation.files import read_lines
from facets_lab.heads.networks import NetworkTrainingConfig, SequenceTrainer
from facets_lab.training.loop import train_or_load

_SETS = 1_000  # random sets, and words with their neighbours
_FREQUENT = 5_000  # words besides those of the templates
_SLOTS = ("$A", "$B")
TEMPLATES = (
    "i went to $A and $B before , and i love one of the two more , which is",
    "$A and $B were there , and she talked about only one of them :",
    "between $A and $B , the winner of the year was",
    "we read about $A , and then about $B , and the first question was about",
)
# Pairs of "a is to b as c is to d": b + c = a + d, so (a, d) and (b, c) are the diagonals of a parallelogram.
PAIRS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "diagonal": ((0, 3), (1, 2)),
    "edge": ((0, 1), (0, 2), (1, 3), (2, 3)),
}


def read_analogies(path: Path, words: WordVectors) -> NDArray[np.int64]:
    """Word rows of each semantic analogy of four known words, ``[A, 4]``."""
    rows = []
    syntactic = False
    for _, line in read_lines(path):
        if line.startswith(":"):
            syntactic = line.removeprefix(":").strip().startswith("gram")
        elif not syntactic:
            rows.append(words.vocabulary.rows(line.lower().split()))
    known = np.array([four for four in rows if len(four) == 4 and (four < len(words)).all()])
    if not len(known):
        raise InvalidInputError(f"{path}: expected analogies of four known words a line, got none")
    return known


def smallest_singular_values(sets_SND: NDArray[np.floating]) -> NDArray[np.float64]:
    """How far the words of each set are from linear dependence, ``[S]`` (Chang 2022, section 2.2.3)."""
    return np.linalg.svd(sets_SND.astype(np.float64), compute_uv=False)[:, -1]


def dependency_ratios(
    words: WordVectors, analogies_A4: NDArray[np.int64], *, sizes: tuple[int, ...] = (2, 4, 8, 16, 32), seed: int = 1
) -> dict[str, dict[str, float]]:
    """Smallest singular values of related words, divided by those of random words (Chang 2022, figure 2.2).

    ``similar`` is a word with its nearest words, by their number. Below 1, related words are more dependent, so a
    softmax can rank them in fewer orders.
    """
    random = np.random.default_rng(seed)
    units_VD = words.unit_vectors
    frequent = units_VD[: len(words) // 2]  # rare words may have almost the same vectors

    def by_chance(size: int) -> float:
        rows_SN = np.stack([random.choice(len(frequent), size, replace=False) for _ in range(_SETS)])
        return float(smallest_singular_values(frequent[rows_SN]).mean())

    asked = random.choice(len(frequent), min(_SETS, len(frequent)), replace=False)
    nearest_SN = np.argsort(-(frequent[asked] @ frequent.T), axis=1)[:, : max(sizes)]
    similar = {
        str(size): float(smallest_singular_values(frequent[nearest_SN[:, :size]]).mean()) / by_chance(size)
        for size in sizes
    }
    analogies = float(smallest_singular_values(units_VD[analogies_A4]).mean()) / by_chance(4)
    return {"analogies": {"4": analogies}, "similar": similar}


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Contexts that either of two words follows equally often."""

    learned: NDArray[np.int64]  # [B, L + 1]: 0 as padding, negated numbers of the context words, the word that follows
    held_out: NDArray[np.int64]  # the same, with pairs of words that never occur together in learned
    vectors: NDArray[np.float32]  # [V, D]; row 0 is padding


def ambiguous_contexts(
    words: WordVectors, analogies_A4: NDArray[np.int64], *, kind: str, num_contexts: int = 5_000, seed: int = 1
) -> Ambiguous:
    """Templates filled with two words of an analogy, a key of ``PAIRS`` (Chang 2022, appendix A.2.1)."""
    random = np.random.default_rng(seed)
    pairs = np.concatenate([np.sort(analogies_A4[:, columns], axis=1) for columns in PAIRS[kind]])
    pairs = random.permutation(np.unique(pairs, axis=0))
    tokens = sorted({token for template in TEMPLATES for token in template.split()} - set(_SLOTS))
    needed = {*range(min(_FREQUENT, len(words))), *np.unique(pairs).tolist()}
    needed |= {row for row in words.vocabulary.rows(tokens).tolist() if row < len(words)}
    kept = np.array(sorted(needed))
    number = {int(row): place for place, row in enumerate(kept, start=1)}
    vectors = np.concatenate((np.zeros((1, words.dim), np.float32), words.unit_vectors[kept]))
    length = max(len(template.split()) for template in TEMPLATES) + 1
    halves = []
    for half in np.array_split(pairs, 2):
        rows = np.array([row for pair in half for row in _filled(words, number, pair, length=length)])
        halves.append(random.permutation(rows)[:num_contexts])
    return Ambiguous(halves[0], halves[1], vectors)


def _filled(
    words: WordVectors, number: Mapping[int, int], pair: NDArray[np.int64], *, length: int
) -> Iterator[list[int]]:
    for template in TEMPLATES:
        for first, second in (pair, pair[::-1]):
            filled = {_SLOTS[0]: int(first), _SLOTS[1]: int(second)}
            rows = [filled.get(token, int(words.vocabulary.row(token))) for token in template.split()]
            context = [number[row] for row in rows if row in number]
            for answer in (first, second):
                yield [0] * (length - 1 - len(context)) + [*(-word for word in context), number[int(answer)]]


class TemplateTrainer(SequenceTrainer):
    """Training with fixed word vectors, so that pairs cannot be memorized."""

    def __init__(self, config: NetworkTrainingConfig, contexts: Ambiguous) -> None:
        config.require("dim", config.dim == contexts.vectors.shape[1], "must be the width of the word vectors")
        super().__init__(config, contexts.learned, contexts.held_out, num_words=len(contexts.vectors))
        with torch.no_grad():
            self.network.words.weight.copy_(torch.from_numpy(contexts.vectors))
        self.network.words.weight.requires_grad_(False)


def measure_templates(contexts: Ambiguous, config: NetworkTrainingConfig, folder: Path) -> dict[str, float]:
    """Perplexity of the last word in held-out and learned contexts; the best possible is 2."""
    trainer, result = train_or_load(lambda: TemplateTrainer(config, contexts), folder)
    trainer.network.eval()
    with torch.no_grad():
        held_out = trainer.mean_loss(contexts.held_out)
        learned = trainer.mean_loss(contexts.learned[: len(contexts.held_out)])
    return {
        "perplexity": float(np.exp(held_out)),
        "learned_perplexity": float(np.exp(learned)),
        "seconds": result.seconds,
    }
