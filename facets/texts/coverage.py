"""What the sentences of a document cover of its words: the quantities of eq. 3.7.

Shape suffixes: S sentences, B sentences of one block, K facets, L words of a sentence, U words of the document,
W distinct words of a block, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextModel
from facets.texts.words import known_rows

__all__ = [
    "PAPER_COVERAGE",
    "CoverageConfig",
    "DocumentWords",
    "block_coverage",
    "closest_words",
    "word_weights",
]

Refine = Callable[[Tensor, Tensor], Tensor]  # unit vectors [U, D] and weights [U] of words -> other weights [U]

# Cosines kept for a whole document: 256 MiB.
KEPT_COSINES = 64_000_000
MAX_WORDS = 4096
# Cosines between the words of some sentences and those of the document, at once: 32 MiB.
COSINES_AT_A_TIME = 8_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverageConfig:
    """What counts as covering a document; the defaults were chosen on dev documents (``docs/use/summarization.md``).

    A sentence t covers a word w of the document by
    ``c_t(w) = (1 - word_share) * facet ** power + word_share * word ** power``, where ``facet`` is the cosine of w
    with the closest facet of t and ``word`` that with its closest word, both at least 0. A summary covers
    ``sum_w weight(w) * (sum_t c_t(w) ** (1 / repetition)) ** repetition`` with
    ``weight(w) = occurrences(w) ** count_power * alpha / (alpha + p(w))``; stop words may have none.
    """

    word_share: float = 0.7  # part of the sentence's own words; 0: facets alone, 1: words alone
    power: float = 2.0  # > 1: near words count more than distant ones
    repetition: float = 0.65  # worth of covering a word again: 0 nothing (the maximum), 1 as much as at first
    count_power: float = 2.0  # > 1: words that come back count for more than each of their occurrences
    alpha: float = 1e-3  # in alpha / (alpha + p(w)): the smaller, the less frequent words of the language count
    stop_words: bool = False  # whether stop words are to be covered, too
    length_power: float = 0.0  # gains are divided by the sentence's known words to this power

    def __post_init__(self) -> None:
        for name in ("word_share", "repetition"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"CoverageConfig.{name} must be in [0, 1], got {getattr(self, name)!r}")
        for name in ("power", "alpha"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"CoverageConfig.{name} must be > 0, got {getattr(self, name)!r}")
        for name in ("count_power", "length_power"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"CoverageConfig.{name} must be >= 0, got {getattr(self, name)!r}")


# Eq. 3.7 as printed.
PAPER_COVERAGE = CoverageConfig(
    word_share=0.0, power=1.0, repetition=0.0, count_power=1.0, alpha=scoring.ALPHA, stop_words=True
)


class DocumentWords:
    """The known words of a document: each sentence's, and those to cover with their weights.

    Of a document with very many distinct words the heaviest ones are kept: 4096, or fewer for more than 15,000
    sentences, so that all cosines fit into 256 MiB.

    Attributes:
        rows: Vocabulary rows of each sentence's first ``max_tokens`` words, one int64 array each.
        lengths_S: Their numbers, at least 1.
        words_UD: Unit vectors of the words to cover.
        weights_U: Their weights, >= 0, the largest 1.
    """

    def __init__(
        self, model: TextModel, sentences: Sequence[str], config: CoverageConfig, *, refine: Refine | None = None
    ) -> None:
        vocabulary = model.words.vocabulary
        split = model.tokenizer.words(sentences)
        self.rows = [known_rows(vocabulary, words[: model.max_tokens]) for words in split]
        self.lengths_S = np.maximum(1, np.fromiter(map(len, self.rows), dtype=np.int64, count=len(self.rows)))
        rows_U, weights_U = word_weights(vocabulary, self.rows, count_power=config.count_power, alpha=config.alpha)
        if not config.stop_words:
            content_U = weights_U * torch.from_numpy(~vocabulary.is_stop[rows_U])
            weights_U = content_U if float(content_U.sum()) > 0 else weights_U
        if refine is not None:
            weights_U = refine(torch.from_numpy(model.words.unit_vectors[rows_U]), weights_U)
        num_kept = min(MAX_WORDS, max(1, KEPT_COSINES // len(sentences)))
        if len(rows_U) > num_kept:
            kept_U = weights_U.argsort(descending=True, stable=True)[:num_kept].sort().values
            rows_U, weights_U = rows_U[kept_U.numpy()], weights_U[kept_U]
        self.words_UD = torch.from_numpy(model.words.unit_vectors[rows_U])
        self.weights_U = weights_U / weights_U.amax().clamp_min(1e-30) if len(weights_U) else weights_U


def word_weights(
    vocabulary: Vocabulary, rows: Sequence[NDArray[np.int64]], *, count_power: float, alpha: float
) -> tuple[NDArray[np.int64], Tensor]:
    """``occurrences ** count_power * alpha / (alpha + p(w))`` of each distinct word.

    Args:
        vocabulary: It knows p(w).
        rows: Rows of the words of each sentence; at least one sentence.
        count_power: >= 0.
        alpha: > 0.

    Returns:
        Distinct rows ``[U]``, ascending, and their weights ``[U]``, float32.
    """
    rows_U, counts_U = np.unique(np.concatenate(rows), return_counts=True)
    probabilities_U = torch.from_numpy(vocabulary.probabilities[rows_U])
    weights_U = torch.from_numpy(counts_U).double().pow(count_power)
    return rows_U, (weights_U * scoring.probability_weights(probabilities_U, alpha=alpha)).float()


def block_coverage(
    model: TextModel,
    words: DocumentWords,
    sentences: slice,
    *,
    facets_BKD: NDArray[np.float32] | None,
    config: CoverageConfig,
) -> Tensor:
    """c_t(w) of some sentences of a document, see ``CoverageConfig``.

    Args:
        model: Its word vectors are used.
        words: Of the whole document.
        sentences: Which sentences.
        facets_BKD: Their facets; None when only words count.
        config: The settings.

    Returns:
        ``[B, U]`` in ``[0, 1]``.
    """
    rows = words.rows[sentences]
    covered_BU = torch.zeros(len(rows), len(words.words_UD))
    if facets_BKD is not None and config.word_share < 1:
        # [B, K, U] at once: blocks of sentences keep it small.
        step = max(1, COSINES_AT_A_TIME // max(1, facets_BKD.shape[1] * len(words.words_UD)))
        for start in range(0, len(rows), step):
            facets = torch.from_numpy(facets_BKD[start : start + step])
            covered_BU[start : start + step] = scoring.word_coverage(facets, words.words_UD).pow_(config.power)
        covered_BU *= 1 - config.word_share
    if config.word_share > 0:
        covered_BU += closest_words(model, rows, words.words_UD).pow_(config.power) * config.word_share
    return covered_BU


def closest_words(model: TextModel, rows: Sequence[NDArray[np.int64]], words_UD: Tensor) -> Tensor:
    """Cosine of each word of the document with the closest word of each sentence, at least 0.

    Args:
        model: Its word vectors are used.
        rows: Vocabulary rows of each sentence's words.
        words_UD: Unit vectors of the words to cover.

    Returns:
        ``[B, U]`` in ``[0, 1]``; 0 for a sentence without words.
    """
    closest_BU = torch.zeros(len(rows), len(words_UD))
    step = max(1, COSINES_AT_A_TIME // max(1, len(words_UD)))
    start = 0
    while start < len(rows):
        stop, num_words = start + 1, len(rows[start])
        while stop < len(rows) and num_words + len(rows[stop]) <= step:
            num_words += len(rows[stop])
            stop += 1
        lengths_B = torch.tensor([len(r) for r in rows[start:stop]])
        if num_words:
            rows_W, places = np.unique(np.concatenate(rows[start:stop]), return_inverse=True)
            cosines_WU = (torch.from_numpy(model.words.unit_vectors[rows_W]) @ words_UD.mT).clamp_(0.0, 1.0)
            closest_BU[start:stop] = torch.segment_reduce(
                cosines_WU[torch.from_numpy(places)], "max", lengths=lengths_B, axis=0, initial=0.0
            )
        start = stop
    return closest_BU
