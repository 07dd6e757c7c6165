"""What the sentences of a document cover of it: its words (eq. 3.7), or words and sentences in the space of sentences.

Shape suffixes: S sentences, B sentences of one block, K facets, L words of a sentence, U words of the document,
W distinct words of a block, T targets, C columns, D dimensions.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError
from facets.language.sentences import Sentence
from facets.language.tokenizer import grouped
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextEncoder, TextModel
from facets.model.facet_reduction import reduce_facets
from facets.texts.words import known_rows

Refine = Callable[[Tensor, Tensor], Tensor]  # unit vectors [U, D] and weights [U] of words -> other weights [U]

# Cosines kept for a whole document: 256 MiB.
KEPT_COSINES = 64_000_000
MAX_WORDS = 4096
# Cosines between the words of some sentences and those of the document, at once: 32 MiB.
COSINES_AT_A_TIME = 8_000_000


def _check(
    config: "CoverageConfig | SentenceCoverageConfig", *, shares: Iterable[str], not_negative: Iterable[str]
) -> None:
    for names, least, most, rule in (
        (shares, 0.0, 1.0, "in [0, 1]"),
        (("power", "alpha"), math.ulp(0.0), math.inf, "> 0"),
        (not_negative, 0.0, math.inf, ">= 0"),
    ):
        for name in names:
            value = getattr(config, name)
            if not least <= value <= most or math.isinf(value):
                raise ConfigError(f"{type(config).__name__}.{name} must be {rule}, got {value!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverageConfig:
    """What counts as covering a document; the defaults were chosen on dev documents (``docs/use/summaries.md``).

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
        _check(self, shares=("word_share", "repetition"), not_negative=("count_power", "length_power"))


@dataclass(frozen=True, slots=True)
class Covered:
    """What there is to cover of a document, and how well its sentences do."""

    # How well each sentence covers each word, or whatever else the document is made of, `[S, U]` in `[0, 1]`.
    covered: Tensor
    weights: Tensor  # what each of these weighs, `[U]`, >= 0
    repetition: float  # see `scoring.added_coverage`
    # Gains are divided by these before they are compared, `[S]`, > 0; None: by 1.
    divisors: NDArray[np.float64] | None = None


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

    ``rows``: rows of the words of each sentence; at least one sentence. ``count_power``: >= 0. ``alpha``: > 0. Returns
    distinct rows ``[U]``, ascending, and their weights ``[U]``, float32.
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

    ``sentences``: which sentences. ``facets_BKD``: their facets; None when only words count. Returns ``[B, U]`` in
    ``[0, 1]``.
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

    ``words_UD``: unit vectors of the words to cover. Returns ``[B, U]`` in ``[0, 1]``; 0 for a sentence without words.
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


# Sentences of a document beyond these are covered by centres of them.
MAX_TARGETS = 256
_WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceCoverageConfig:
    """What counts as covering a document; the defaults were chosen on dev documents (``docs/use/summaries.md``).

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
        _check(self, shares=("sentence_share", "repetition"), not_negative=("count_power",))


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
    for group in grouped(documents, sentences_at_a_time, size=len):
        vectors_SD = _vectors(encoder, [sentence.text for sentences in group for sentence in sentences])
        for sentences, (first, last) in zip(group, pairwise(accumulate(map(len, group), initial=0)), strict=True):
            texts = [sentence.text for sentence in sentences]
            yield _covered(model, texts, vectors_SD[first:last], sought_D=sought_D, config=config)


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
