"""How well sentences cover their document: its words (eq. 3.7), or its words and sentences in the sentence space.

Shape suffixes: S sentences, B sentences of one block, K facets, L words of a sentence, U words of the document,
W distinct words of a block, T targets, C columns, D dimensions.
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
from facets.config import NonNegative, Positive, Settings, Share
from facets.language.sentences import Sentence
from facets.language.tokenizer import grouped
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextEncoder, TextModel
from facets.model.facet_reduction import reduce_facets
from facets.texts.words import known_rows

# Cosines kept for a document: 256 MiB.
KEPT_COSINES = 64_000_000
MAX_WORDS = 4096
# Cosines between words of sentences and words of the document that are computed at once: 32 MiB.
COSINES_AT_A_TIME = 8_000_000


class CoverageConfig(Settings):
    """How sentences cover the words of a document; defaults chosen on dev documents (``docs/use/summaries.md``).

    A sentence t covers a word w of the document by
    ``c_t(w) = (1 - word_share) * facet ** power + word_share * word ** power``, where ``facet`` is the cosine of w
    with the closest facet of t and ``word`` the cosine with the closest word of t, both at least 0. A summary covers
    ``sum_w weight(w) * (sum_t c_t(w) ** (1 / repetition)) ** repetition`` with
    ``weight(w) = occurrences(w) ** count_power * alpha / (alpha + p(w))``.
    """

    word_share: Share = 0.7  # share of the sentence's words; 0: facets alone, 1: words alone
    power: Positive = 2.0  # > 1: near words count more than distant ones
    repetition: Share = 0.65  # value of covering a word again: 0 for nothing, 1 for as much as the first time
    count_power: NonNegative = 2.0  # > 1: repeated words count for more than the sum of their occurrences
    alpha: Positive = 1e-3  # smaller values give words that are frequent in the language less weight
    stop_words: bool = False  # whether stop words must be covered too
    length_power: NonNegative = 0.0  # gains are divided by this power of the number of known words of the sentence


@dataclass(frozen=True, slots=True)
class Covered:
    """How well sentences cover the targets of a document (words, sentences)."""

    covered: Tensor  # coverage of each target by each sentence, `[S, U]` in `[0, 1]`
    weights: Tensor  # weights of the targets, `[U]`, >= 0
    repetition: float  # see `scoring.added_coverage`
    divisors: NDArray[np.float64] | None = None  # divisors of the gains, `[S]`, > 0; None: no division


# Eq. 3.7 as printed.
PAPER_COVERAGE = CoverageConfig(
    word_share=0.0, power=1.0, repetition=0.0, count_power=1.0, alpha=scoring.ALPHA, stop_words=True
)


class DocumentWords:
    """The known words of a document.

    Only the 4096 distinct words with the largest weights are covered, and fewer in documents of more than 15,000
    sentences, so that all cosines fit into 256 MiB.

    Attributes:
        rows: Vocabulary rows of each sentence's first ``max_tokens`` words, int64.
        lengths_S: Number of these words, at least 1.
        words_UD: Unit vectors of the words to cover.
        weights_U: Weights of the words to cover, >= 0, the largest 1.
    """

    def __init__(
        self, model: TextModel, sentences: Sequence[str], config: CoverageConfig, *, sought_ND: Tensor | None = None
    ) -> None:
        vocabulary = model.words.vocabulary
        split = model.tokenizer.words(sentences)
        self.rows = [known_rows(vocabulary, words[: model.max_tokens]) for words in split]
        self.lengths_S = np.maximum(1, np.fromiter(map(len, self.rows), dtype=np.int64, count=len(self.rows)))
        rows_U, weights_U = word_weights(vocabulary, self.rows, count_power=config.count_power, alpha=config.alpha)
        if not config.stop_words:
            content_U = weights_U * torch.from_numpy(~vocabulary.is_stop[rows_U])
            weights_U = content_U if float(content_U.sum()) > 0 else weights_U
        if sought_ND is not None and len(rows_U):
            closeness_NU = sought_ND @ torch.from_numpy(model.words.unit_vectors[rows_U]).mT
            weights_U = _focused(weights_U, closeness_NU.amax(dim=0).clamp(0.0, 1.0).square())
        num_kept = min(MAX_WORDS, max(1, KEPT_COSINES // len(sentences)))
        if len(rows_U) > num_kept:
            kept_U = weights_U.argsort(descending=True, stable=True)[:num_kept].sort().values
            rows_U, weights_U = rows_U[kept_U.numpy()], weights_U[kept_U]
        self.words_UD = torch.from_numpy(model.words.unit_vectors[rows_U])
        self.weights_U = weights_U / weights_U.amax().clamp_min(1e-30) if len(weights_U) else weights_U


def word_weights(
    vocabulary: Vocabulary, rows: Sequence[NDArray[np.int64]], *, count_power: float, alpha: float
) -> tuple[NDArray[np.int64], Tensor]:
    """Distinct rows ``[U]``, ascending, with weights ``occurrences ** count_power * alpha / (alpha + p(w))``, float32.

    ``rows``: rows of the words of each sentence; at least one sentence.
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
    """c_t(w) of a block of sentences, ``[B, U]`` in ``[0, 1]``, see ``CoverageConfig``.

    ``facets_BKD``: facets of the sentences; None when only words count.
    """
    rows = words.rows[sentences]
    covered_BU = torch.zeros(len(rows), len(words.words_UD))
    if facets_BKD is not None and config.word_share < 1:
        # The whole [B, K, U] array is computed at once; working in blocks of sentences keeps it small.
        step = max(1, COSINES_AT_A_TIME // max(1, facets_BKD.shape[1] * len(words.words_UD)))
        for start in range(0, len(rows), step):
            facets = torch.from_numpy(facets_BKD[start : start + step])
            covered_BU[start : start + step] = scoring.word_coverage(facets, words.words_UD).pow_(config.power)
        covered_BU *= 1 - config.word_share
    if config.word_share > 0:
        covered_BU += closest_words(model, rows, words.words_UD).pow_(config.power) * config.word_share
    return covered_BU


def closest_words(model: TextModel, rows: Sequence[NDArray[np.int64]], words_UD: Tensor) -> Tensor:
    """Cosine of each word to cover with the closest word of each sentence, ``[B, U]``, at least 0.

    It is 0 for a sentence without words.
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
            rows_W, indexes = np.unique(np.concatenate(rows[start:stop]), return_inverse=True)
            cosines_WU = (torch.from_numpy(model.words.unit_vectors[rows_W]) @ words_UD.mT).clamp_(0.0, 1.0)
            closest_BU[start:stop] = torch.segment_reduce(
                cosines_WU[torch.from_numpy(indexes)], "max", lengths=lengths_B, axis=0, initial=0.0
            )
        start = stop
    return closest_BU


def _word_coverages(
    model: TextModel,
    documents: Sequence[Sequence[Sentence]],
    config: CoverageConfig,
    *,
    query: str,
    encoder: TextEncoder,
    sentences_at_a_time: int,
) -> Iterator[Covered]:
    """How well the sentences of each document cover its words; sentences are encoded in blocks across documents."""
    sought_ND = _sought(model, query, encoder) if query else None
    texts = [sentence.text for sentences in documents for sentence in sentences]
    block, facets_BKD = range(0), None
    for first, last in pairwise(accumulate(map(len, documents), initial=0)):
        words = DocumentWords(model, texts[first:last], config, sought_ND=sought_ND)
        covered_SU = torch.empty(last - first, len(words.words_UD))
        start = first
        while start < last:
            if start == block.stop:
                block = range(start, min(len(texts), start + sentences_at_a_time))
                facets_BKD = encoder.encode(texts[start : block.stop]) if config.word_share < 1 else None
            stop = min(last, block.stop)
            facets = None if facets_BKD is None else facets_BKD[start - block.start : stop - block.start]
            here = slice(start - first, stop - first)
            covered_SU[here] = block_coverage(model, words, here, facets_BKD=facets, config=config)
            start = stop
        divisors_S = words.lengths_S**config.length_power if config.length_power else None
        yield Covered(covered_SU, words.weights_U, config.repetition, divisors_S)


def _sought(model: TextModel, query: str, encoder: TextEncoder) -> Tensor:
    """Words of a query, scaled by weight so that function words have little effect, and its facets, ``[N, D]``."""
    rows = [known_rows(model.words.vocabulary, words) for words in model.tokenizer.words([query])]
    rows_Q, weights_Q = word_weights(model.words.vocabulary, rows, count_power=1.0, alpha=scoring.ALPHA)
    weights_Q = weights_Q / weights_Q.amax() if len(weights_Q) else weights_Q
    words_QD = torch.from_numpy(model.words.unit_vectors[rows_Q]) * weights_Q.unsqueeze(1)
    return torch.cat([words_QD, scoring.unit_facets(torch.from_numpy(encoder.encode([query])[0]))])


MAX_TARGETS = 256  # most sentences to cover; in longer documents the sentences are reduced to cluster centres
_WORD_CHARACTER = re.compile(r"\w")


class SentenceCoverageConfig(Settings):
    """How sentences cover words and sentences of a document; defaults chosen on dev documents.

    A sentence t covers a word of the document if it contains it, and a sentence s of the document by
    ``max(0, t . s) ** power``. A summary covers ``(sum_t c_t ** (1 / repetition)) ** repetition`` of each. The
    weight of a content word is ``occurrences ** count_power * alpha / (alpha + p(w))``. Sentences have equal weights,
    which sum to ``sentence_share`` of the total. Figures are in ``docs/use/summaries.md``.
    """

    sentence_share: Share = 0.5
    power: Positive = 2.0  # > 1: similar sentences count more than dissimilar ones
    repetition: Share = 0.65  # value of covering a target again: 0 for nothing, 1 for as much as the first time
    count_power: NonNegative = 2.0  # > 1: repeated words count for more than the sum of their occurrences
    alpha: Positive = 1e-2  # smaller values give words that are frequent in the language less weight


def _sentence_coverages(
    model: TextModel,
    documents: Sequence[Sequence[Sentence]],
    config: SentenceCoverageConfig,
    *,
    query: str,
    encoder: TextEncoder,
    sentences_at_a_time: int,
) -> Iterator[Covered]:
    """How well the sentences of each document cover its words and sentences."""
    sought_D = _vectors(encoder, [query])[0] if query else None
    for group in grouped(documents, sentences_at_a_time, size=len):
        vectors_SD = _vectors(encoder, [sentence.text for sentences in group for sentence in sentences])
        for sentences, (first, last) in zip(group, pairwise(accumulate(map(len, group), initial=0)), strict=True):
            texts = [sentence.text for sentence in sentences]
            yield _covered(model, texts, vectors_SD[first:last], sought_D=sought_D, config=config)


def _vectors(encoder: TextEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors ``[len(texts), D]``; zero for texts without a letter or digit, which some models cannot read."""
    readable = [i for i, text in enumerate(texts) if _WORD_CHARACTER.search(text)]
    if not readable:
        return np.zeros((len(texts), 1), dtype=np.float32)
    units = unit_rows(encoder.embed([texts[i] for i in readable]))
    vectors_SD = np.zeros((len(texts), units.shape[1]), dtype=np.float32)
    vectors_SD[readable] = units
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
    """1 where a sentence contains a word, ``[S, U]``, and the weights of the words, ``[U]``."""
    words = [[word for word in split if any(map(str.isalnum, word))] for split in model.tokenizer.words(texts)]
    numbers: dict[str, int] = {}
    columns_W = np.array(
        [numbers.setdefault(word, len(numbers)) for sentence in words for word in sentence], dtype=np.int64
    )
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
    kept_columns_U = np.full(len(numbers), -1)
    kept_columns_U[kept_U] = np.arange(len(kept_U))
    is_kept_W = kept_columns_U[columns_W] >= 0
    words_SU = torch.zeros(len(texts), len(kept_U))
    words_SU[sentences_W[is_kept_W], kept_columns_U[columns_W[is_kept_W]]] = 1.0
    return words_SU, torch.from_numpy(weights_U[kept_U]).float()


def _targets(vectors_SD: NDArray[np.float32]) -> tuple[NDArray[np.float32], Tensor]:
    """Vectors of the sentences to cover, ``[T, D]``, and how many sentences each stands for, ``[T]``."""
    targets_SD = vectors_SD[vectors_SD.any(axis=1)]
    if len(targets_SD) <= MAX_TARGETS:
        return targets_SD, torch.ones(len(targets_SD))
    few = reduce_facets(targets_SD, np.ones(len(targets_SD), dtype=np.float32), MAX_TARGETS)
    return few.facets, torch.from_numpy(few.weights)


def _focused(weights_C: Tensor, closeness_C: Tensor) -> Tensor:
    """Weights times closeness to the query; unchanged if nothing is close."""
    focused_C = weights_C * closeness_C
    return focused_C if float(focused_C.sum()) > 0 else weights_C


def _shared(covered_SC: Tensor, weights_C: Tensor, share: float, repetition: float) -> Tensor:
    """Scales weights so that all sentences together cover ``share``."""
    total = float(scoring.added_coverage(covered_SC, repetition) @ weights_C) if len(weights_C) else 0.0
    return weights_C * (share / total) if total > 0 else weights_C


def coverages_of(
    model: TextModel,
    documents: Sequence[Sequence[Sentence]],
    config: CoverageConfig | SentenceCoverageConfig,
    *,
    query: str,
    encoder: TextEncoder,
    sentences_at_a_time: int,
) -> Iterator[Covered]:
    """How well the sentences of each document cover it.

    ``documents``: at least one sentence each. ``query``: if not empty, words and sentences closer to it count more.
    ``sentences_at_a_time``: number of sentences, across documents, that are encoded together.
    """
    if isinstance(config, SentenceCoverageConfig):
        return _sentence_coverages(
            model, documents, config, query=query, encoder=encoder, sentences_at_a_time=sentences_at_a_time
        )
    return _word_coverages(
        model, documents, config, query=query, encoder=encoder, sentences_at_a_time=sentences_at_a_time
    )
