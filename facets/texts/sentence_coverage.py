"""What sentences cover of a document in the space of sentences: words by repeating them, sentences by being alike.

Shape suffixes: S sentences, U words of the document, T targets, C columns, D dimensions.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError
from facets.language.sentences import Sentence
from facets.language.vectors import unit_rows
from facets.model.contract import TextEncoder, TextModel
from facets.model.passage_encoding import reduce_facets
from facets.texts.coverage import KEPT_COSINES, MAX_WORDS
from facets.texts.selection import Covered

__all__ = ["SentenceCoverageConfig", "sentence_coverages"]

# Sentences of a document beyond these are covered by centres of them.
MAX_TARGETS = 256
_WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceCoverageConfig:
    """What counts as covering a document; the defaults were chosen on dev documents (``docs/use/summarization.md``).

    A sentence t covers a word of the document wholly when it holds it, else not, and a sentence s of the document by
    ``max(0, t . s) ** power``. A summary covers ``(sum_t c_t ** (1 / repetition)) ** repetition`` of each. A word
    weighs ``occurrences ** count_power * alpha / (alpha + p(w))``, stop words nothing; sentences weigh the same, all of
    them together ``sentence_share`` of the document.
    """

    sentence_share: float = 0.5
    power: float = 2.0  # > 1: like sentences count more than unlike ones
    repetition: float = 0.65  # worth of covering something again: 0 nothing, 1 as much as at first
    count_power: float = 2.0  # > 1: words that come back count for more than each of their occurrences
    alpha: float = 1e-2  # the smaller, the less frequent words of the language count

    def __post_init__(self) -> None:
        for name in ("sentence_share", "repetition"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"SentenceCoverageConfig.{name} must be in [0, 1], got {getattr(self, name)!r}")
        for name in ("power", "alpha"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"SentenceCoverageConfig.{name} must be > 0, got {getattr(self, name)!r}")
        if not 0 <= self.count_power < float("inf"):
            raise ConfigError(f"SentenceCoverageConfig.count_power must be >= 0, got {self.count_power!r}")


def sentence_coverages(
    model: TextModel,
    documents: Sequence[Sequence[Sentence]],
    config: SentenceCoverageConfig,
    *,
    query: str,
    encoder: TextEncoder,
    sentences_at_a_time: int,
) -> Iterator[Covered]:
    """How well the sentences of each document cover it.

    Args:
        model: It knows the frequencies of words.
        documents: At least one sentence each.
        config: The settings.
        query: What the reader looks for: words and sentences count the more the closer they are to it; empty: nothing
            in particular.
        encoder: What encodes sentences and query, e.g. a queue before the model.
        sentences_at_a_time: Sentences of several documents that are encoded together, a longer document alone.

    Returns:
        One a document, in order.
    """
    sought_D = _vectors(encoder, [query])[0] if query else None
    for group in _groups(documents, sentences_at_a_time):
        vectors_SD = _vectors(encoder, [sentence.text for sentences in group for sentence in sentences])
        for sentences, (first, last) in zip(group, pairwise(accumulate(map(len, group), initial=0)), strict=True):
            texts = [sentence.text for sentence in sentences]
            yield _covered(model, texts, vectors_SD[first:last], sought_D=sought_D, config=config)


def _groups(documents: Sequence[Sequence[Sentence]], num_sentences: int) -> Iterator[list[Sequence[Sentence]]]:
    group: list[Sequence[Sentence]] = []
    size = 0
    for sentences in documents:
        if group and size + len(sentences) > num_sentences:
            yield group
            group, size = [], 0
        group.append(sentences)
        size += len(sentences)
    if group:
        yield group


def _vectors(encoder: TextEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors, ``[len(texts), D]``; zero for texts without a letter or digit, which some models cannot read."""
    readable = [place for place, text in enumerate(texts) if _WORD_CHARACTER.search(text)]
    if not readable:
        return np.zeros((len(texts), 1), dtype=np.float32)
    found = unit_rows(encoder.embed([texts[place] for place in readable]))
    vectors_SD = np.zeros((len(texts), found.shape[1]), dtype=np.float32)
    vectors_SD[readable] = found
    return vectors_SD


def _covered(
    model: TextModel,
    texts: Sequence[str],
    vectors_SD: NDArray[np.float32],
    *,
    sought_D: NDArray[np.float32] | None,
    config: SentenceCoverageConfig,
) -> Covered:
    words_SU, word_weights_U = _words(model, texts, config)
    targets_TD, weights_T = _targets(vectors_SD)
    likeness_ST = torch.from_numpy(vectors_SD @ targets_TD.T).clamp_(0.0, 1.0).pow_(config.power)
    if sought_D is not None and sought_D.any() and vectors_SD.shape[1] == len(sought_D):
        closeness_S = torch.from_numpy(vectors_SD @ sought_D).clamp_(0.0, 1.0).square_()
        if len(word_weights_U):
            word_weights_U = _focused(word_weights_U, (words_SU * closeness_S[:, None]).amax(dim=0))
        weights_T = _focused(weights_T, torch.from_numpy(targets_TD @ sought_D).clamp_(0.0, 1.0).square_())
    parts = ((words_SU, word_weights_U, 1 - config.sentence_share), (likeness_ST, weights_T, config.sentence_share))
    weights_C = torch.cat([_shared(covered, weights, share, config.repetition) for covered, weights, share in parts])
    return Covered(torch.cat([words_SU, likeness_ST], dim=1), weights_C, config.repetition)


def _words(model: TextModel, texts: Sequence[str], config: SentenceCoverageConfig) -> tuple[Tensor, Tensor]:
    """1 where a sentence holds a word, ``[S, U]``, and what each word weighs, ``[U]``."""
    words = [[word for word in own if any(map(str.isalnum, word))] for own in model.tokenizer.words(texts)]
    numbers: dict[str, int] = {}
    columns_W = np.array([numbers.setdefault(word, len(numbers)) for own in words for word in own], dtype=np.int64)
    sentences_W = np.repeat(np.arange(len(words)), list(map(len, words)))
    vocabulary = model.words.vocabulary
    rows_U = vocabulary.rows(list(numbers))
    probabilities_U = np.append(vocabulary.probabilities, 0.0)[rows_U]
    counts_U = np.bincount(columns_W, minlength=len(numbers)).astype(np.float64) ** config.count_power
    weights_U = counts_U * scoring.probability_weights(torch.from_numpy(probabilities_U), alpha=config.alpha).numpy()
    is_content_U = ~vocabulary.is_stop[rows_U] | (rows_U == vocabulary.unknown_row)
    kept_U = np.flatnonzero(is_content_U if is_content_U.any() else weights_U > 0)
    num_kept = min(MAX_WORDS, max(1, KEPT_COSINES // len(texts)))
    kept_U = np.sort(kept_U[np.argsort(-weights_U[kept_U], kind="stable")[:num_kept]])
    places_U = np.full(len(numbers), -1)
    places_U[kept_U] = np.arange(len(kept_U))
    is_kept_W = places_U[columns_W] >= 0
    words_SU = torch.zeros(len(texts), len(kept_U))
    words_SU[sentences_W[is_kept_W], places_U[columns_W[is_kept_W]]] = 1.0
    return words_SU, torch.from_numpy(weights_U[kept_U]).float()


def _targets(vectors_SD: NDArray[np.float32]) -> tuple[NDArray[np.float32], Tensor]:
    """The sentences to cover, ``[T, D]``, and how many each stands for, ``[T]``."""
    found_SD = vectors_SD[vectors_SD.any(axis=1)]
    if len(found_SD) <= MAX_TARGETS:
        return found_SD, torch.ones(len(found_SD))
    few = reduce_facets(found_SD, np.ones(len(found_SD), dtype=np.float32), MAX_TARGETS)
    return few.facets, torch.from_numpy(few.weights)


def _focused(weights_C: Tensor, closeness_C: Tensor) -> Tensor:
    """Weights times closeness to the query; where nothing is close, the weights stay."""
    focused_C = weights_C * closeness_C
    return focused_C if float(focused_C.sum()) > 0 else weights_C


def _shared(covered_SC: Tensor, weights_C: Tensor, share: float, repetition: float) -> Tensor:
    """Weights scaled so that all sentences together cover ``share``."""
    total = float(scoring.added_coverage(covered_SC, repetition) @ weights_C) if len(weights_C) else 0.0
    return weights_C * (share / total) if total > 0 else weights_C
