"""Words that no context makes most likely, and their probabilities in a trigram model (Demeter et al. 2020).

The paper approximates which words are interior to the hull of the others; here linear programs prove it.

Shape suffixes: V words, N sequences, L positions, T words of running text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from facets_lab.heads.hull import interior
from facets_lab.heads.language_models import Corpus
from facets_lab.heads.networks import NetworkTrainingConfig, SequenceNetwork, SequenceTrainer
from facets_lab.training.loop import train_or_load

TRIGRAM_WEIGHT = 0.2  # in the ensemble, as in the paper
_TOP = 500  # words of a set with the highest of the largest probabilities (table 2)
_READ = 2000  # training sequences for the largest probabilities
_AT_ONCE = 16  # sequences; the scores of all words at all positions are in memory


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of words after contexts."""

    keys: NDArray[np.int64]  # context times V plus word, sorted
    counts: NDArray[np.int64]
    discount: float  # subtracted from each count (Ney et al. 1994)

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> "_Counts":
        found, counts = np.unique(keys, return_counts=True)
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        return cls(found, counts, once / (once + 2 * twice) if once else 0.0)

    def probabilities(
        self, contexts: NDArray[np.int64], words: NDArray[np.int64], lower: NDArray[np.float64], *, num_words: int
    ) -> NDArray[np.float64]:
        """Probabilities of words after contexts, interpolated with ``lower``, those after the shorter contexts."""
        wanted = contexts * num_words + words
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        count = np.where(self.keys[place] == wanted, self.counts[place], 0)
        sums = np.append(0, np.cumsum(self.counts))
        first, behind = (np.searchsorted(self.keys, (contexts + more) * num_words) for more in (0, 1))
        total = sums[behind] - sums[first]
        kept = np.maximum(count - self.discount, 0.0) + self.discount * (behind - first) * lower
        return np.where(total > 0, kept / np.maximum(total, 1), lower)


class TrigramModel:
    """Interpolated Kneser-Ney trigrams; the discount of each order is computed from its counts of one and two.

    References:
        Kneser and Ney 1995; Chen and Goodman 1999, section 2.7.
    """

    def __init__(self, text: NDArray[np.int64], num_words: int) -> None:
        self._num_words = num_words
        pairs = text[:-1] * num_words + text[1:]
        self._three = _Counts.of(pairs[:-1] * num_words + text[2:])
        # The count of a shorter context is the number of different words before it.
        self._two = _Counts.of(np.unique(self._three.keys) % num_words**2)
        self._one = _Counts.of(np.unique(pairs) % num_words)

    def probabilities(self, before_T2: NDArray[np.int64], words_T: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probability of each word after the two words before it."""
        size = self._num_words
        contexts = (before_T2[:, 0] * size + before_T2[:, 1], before_T2[:, 1], np.zeros_like(words_T))
        result = np.full(len(words_T), 1.0 / size)
        for counts, context in zip((self._one, self._two, self._three), reversed(contexts), strict=True):
            result = counts.probabilities(context, words_T, result, num_words=size)
        return result

    def largest(self) -> NDArray[np.float64]:
        """Largest probability of each word after any two words that it has followed, ``[V]``."""
        keys, size = self._three.keys, self._num_words
        found = self.probabilities(np.stack((keys // size**2, keys // size % size), axis=1), keys % size)
        result = np.zeros(size)
        np.maximum.at(result, keys % size, found)
        return result

    def contexts_before(self, is_wanted_V: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Pairs of words that one of the given words has followed: the first times V plus the second, sorted."""
        keys = self._three.keys
        return np.unique(keys[is_wanted_V[keys % self._num_words]] // self._num_words)


def measure_stolen(corpus: Corpus, config: NetworkTrainingConfig, folder: Path) -> Mapping[str, float]:
    """Trains a model in ``folder`` (or loads it), finds its interior words and adds a trigram model.

    Returns:
        ``interior``: number of interior words. ``largest_...`` (table 2, per cent): largest probability of a word in
        any training context, mean of the best 500, of ``vertices``, ``random`` and ``interior`` words, and of the
        latter by ``trigram``. ``perplexity`` of the held-out text, ``perplexity_interior`` of its interior words;
        ``..._ensemble``: with a fifth of the trigram model after pairs that an interior word has followed in training;
        ``..._mixture``: everywhere; ``..._trigram``: alone. 0 if there is no such word.
    """
    trainer, _ = train_or_load(
        lambda: SequenceTrainer(config, corpus.sequences, corpus.held_out, num_words=corpus.num_words), folder
    )
    network = trainer.network.eval()
    is_interior_V = np.append(False, interior(network.words.weight[1:].detach().cpu().numpy()))
    largest_V, _ = _probabilities(network, corpus.sequences[:_READ])
    _, own_T = _probabilities(network, corpus.held_out)
    trigrams = TrigramModel(_running(corpus.sequences), corpus.num_words)
    figures = {"interior": float(is_interior_V.sum())}
    random = np.random.default_rng(config.seed).permutation(np.arange(1, corpus.num_words))
    sets = {"vertices": ~is_interior_V, "random": np.isin(np.arange(corpus.num_words), random[: is_interior_V.sum()])}
    for name, chosen_V in (sets | {"interior": is_interior_V}).items():
        figures[f"largest_{name}"] = _mean_of_best(largest_V[chosen_V])
    figures["largest_trigram"] = _mean_of_best(trigrams.largest()[is_interior_V])
    text = _running(corpus.held_out)
    before_T2, words_T, own_T = np.stack((text[:-2], text[1:-1]), axis=1), text[2:], own_T[1:]
    is_helped_T = np.isin(before_T2 @ [corpus.num_words, 1], trigrams.contexts_before(is_interior_V))
    trigram_T = trigrams.probabilities(before_T2, words_T)
    mixed_T = (1 - TRIGRAM_WEIGHT) * own_T + TRIGRAM_WEIGHT * trigram_T
    kinds = {"": own_T, "_ensemble": np.where(is_helped_T, mixed_T, own_T), "_mixture": mixed_T, "_trigram": trigram_T}
    for name, found_T in kinds.items():
        figures[f"perplexity{name}"] = _perplexity(found_T)
        figures[f"perplexity_interior{name}"] = _perplexity(found_T[is_interior_V[words_T]])
    return figures


def _running(sequences: NDArray[np.int64]) -> NDArray[np.int64]:
    """The text of the sequences, each of which starts with the last word of the one before."""
    return np.append(sequences[:, :-1].ravel(), sequences[-1, -1])


@torch.no_grad()
def _probabilities(
    network: SequenceNetwork, sequences: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest probability of each word at any position, ``[V]``, and that of the next words, ``[N * L]``."""
    device = network.words.weight.device
    largest_V = torch.zeros(len(network.words.weight), device=device)
    own = []
    for start in range(0, len(sequences), _AT_ONCE):
        rows = torch.from_numpy(sequences[start : start + _AT_ONCE]).to(device)
        probabilities_BLV = network(rows[:, :-1]).float().exp()
        largest_V = torch.maximum(largest_V, probabilities_BLV.amax(dim=(0, 1)))
        own.append(probabilities_BLV.gather(-1, rows[:, 1:, None]).flatten())
    return largest_V.double().cpu().numpy(), torch.cat(own).double().cpu().numpy()


def _mean_of_best(largest: NDArray[np.float64]) -> float:
    return 100 * float(np.sort(largest)[-_TOP:].mean()) if len(largest) else 0.0


def _perplexity(probabilities: NDArray[np.float64]) -> float:
    return float(np.exp(-np.log(probabilities).mean())) if len(probabilities) else 0.0
