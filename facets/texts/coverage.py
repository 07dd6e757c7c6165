"""How well sentences cover their document: its words (eq. 3.7), or its words and sentences in the sentence space.

Shape suffixes: S sentences, B sentences of one block, K facets, L words of a sentence, U words of the document,
W distinct words of a block, T targets, C columns, D dimensions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import torch
from torch import Tensor

from facets import scoring
from facets.arrays import Floats, Ints
from facets.language.interruption import check_interrupted
from facets.language.sentences import Sentence
from facets.language.tokenizer import grouped
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextEncoder, TextModel
from facets.model.facet_reduction import reduce_facets
from facets.texts.words import known_rows

KEPT_COSINES = 64_000_000  # for a document: 256 MiB
MAX_WORDS = 4096  # most words to cover: those with the largest weights
COSINES_AT_A_TIME = 2_000_000  # 8 MiB: some 30 ms
MAX_TARGETS = 256  # most sentences to cover; in longer documents the sentences are reduced to cluster centres
SENTENCES_AT_A_TIME = 2048  # encoded together: enough to fill batches; their facets take 20 MiB


# A sentence t covers a word w of the document by `c_t(w) = (1 - _WORD_SHARE) * facet ** _POWER + _WORD_SHARE * word **
# _POWER`, where `facet` is the cosine of w with the closest facet of t and `word` that with the closest word of t, both
# at least 0. A summary covers `sum_w weight(w) * (sum_t c_t(w) ** (1 / REPETITION)) ** REPETITION` with
# `weight(w) = occurrences(w) ** _COUNT_POWER * ALPHA / (ALPHA + p(w))`. Chosen on dev documents.
_WORD_SHARE = 0.7
ALPHA = 1e-3
_POWER, REPETITION, _COUNT_POWER = 2.0, 0.65, 2.0
# Of models of passages. A sentence t covers a word that it contains with `c_t = 1`, and a sentence s with
# `c_t = max(0, t . s) ** _POWER`. The words have the same weights, but for alpha; the sentences have equal weights,
# which sum to `_SENTENCE_SHARE` of the total. Chosen on dev documents.
_SENTENCE_SHARE = 0.5
_PASSAGE_ALPHA = 1e-2


@dataclass(frozen=True, slots=True)
class Covered:
    """How well sentences cover the targets of a document (words, sentences)."""

    covered: Tensor  # coverage of each target by each sentence, `[S, C]` in `[0, 1]`
    weights: Tensor  # weights of the targets, `[C]`, >= 0


def coverages_of(
    model: TextModel, documents: Sequence[Sequence[Sentence]], *, query: str, encoder: TextEncoder
) -> Iterator[Covered]:
    """How well the sentences of each document cover it: its words, and for models of passages its sentences too.

    Sentences are encoded in blocks across documents. ``documents``: at least one sentence each. ``query``: if not
    empty, words and sentences closer to it count more.
    """
    coverages = _sentence_coverages if model.task == "passages" else _word_coverages
    return coverages(model, documents, query=query, encoder=encoder)


def _groups(documents: Sequence[Sequence[Sentence]]) -> Iterator[tuple[list[str], list[slice]]]:
    """The sentences of documents that are encoded together, and where each document is among them."""
    for group in grouped(documents, SENTENCES_AT_A_TIME, size=len):
        bounds = pairwise(accumulate(map(len, group), initial=0))
        yield [sentence.text for sentences in group for sentence in sentences], [slice(*bound) for bound in bounds]


def _word_coverages(
    model: TextModel, documents: Sequence[Sequence[Sentence]], *, query: str, encoder: TextEncoder
) -> Iterator[Covered]:
    sought_ND = _sought(model, query, encoder) if query else None
    for texts, places in _groups(documents):
        encoded = encoder.encode(texts) if len(texts) <= SENTENCES_AT_A_TIME else None
        for place in places:
            words = [own[: model.max_tokens] for own in model.tokenizer.words(texts[place])]
            rows = [known_rows(model.words.vocabulary, own) for own in words]
            words_UD, weights_U = words_to_cover(model, rows, sought_ND=sought_ND)
            covered_SU = torch.empty(len(rows), len(words_UD))
            for start in range(place.start, place.stop, SENTENCES_AT_A_TIME):
                block = slice(start, min(place.stop, start + SENTENCES_AT_A_TIME))
                facets = encoder.encode(texts[block]) if encoded is None else encoded[block]
                own = slice(start - place.start, block.stop - place.start)
                covered_SU[own] = block_coverage(model, rows[own], words_UD, facets)
            yield Covered(covered_SU, weights_U)


def words_to_cover(model: TextModel, rows: Sequence[Ints], *, sought_ND: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Unit vectors of the words of a document to cover, ``[U, D]``, and their weights, ``[U]``, >= 0, the largest 1.

    ``rows``: vocabulary rows of the words of each sentence. All cosines of a document fit into 256 MiB.
    """
    vocabulary = model.words.vocabulary
    rows_U, weights_U = _word_weights(vocabulary, rows, count_power=_COUNT_POWER, alpha=ALPHA)
    content_U = weights_U * torch.from_numpy(~vocabulary.is_stop[rows_U])
    weights_U = content_U if float(content_U.sum()) > 0 else weights_U
    if sought_ND is not None and len(rows_U):
        closeness_NU = sought_ND @ torch.from_numpy(model.words.units(rows_U)).mT
        weights_U = _focused(weights_U, closeness_NU.amax(dim=0).clamp(0.0, 1.0).square())
    kept_U = weights_U.argsort(descending=True, stable=True)[: _most_words(len(rows))].sort().values
    rows_U, weights_U = rows_U[kept_U.numpy()], weights_U[kept_U]
    words_UD = torch.from_numpy(model.words.units(rows_U))
    return words_UD, weights_U / weights_U.amax().clamp_min(1e-30) if len(weights_U) else weights_U


def _most_words(num_sentences: int) -> int:
    return min(MAX_WORDS, max(1, KEPT_COSINES // num_sentences))


def _word_weights(
    vocabulary: Vocabulary, rows: Sequence[Ints], *, count_power: float, alpha: float
) -> tuple[Ints, Tensor]:
    """Distinct rows ``[U]``, ascending, with weights ``occurrences ** count_power * alpha / (alpha + p(w))``."""
    rows_U, counts_U = np.unique(np.concatenate(rows), return_counts=True)
    probabilities_U = torch.from_numpy(vocabulary.probabilities[rows_U])
    weights_U = torch.from_numpy(counts_U).double().pow(count_power)
    return rows_U, (weights_U * scoring.probability_weights(probabilities_U, alpha=alpha)).float()


def block_coverage(model: TextModel, rows: Sequence[Ints], words_UD: Tensor, facets_BKD: Floats) -> Tensor:
    """c_t(w) of some sentences, ``[B, U]`` in ``[0, 1]``.

    ``rows``: vocabulary rows of the words of each sentence. ``facets_BKD``: their facets.
    """
    covered_BU = torch.zeros(len(rows), len(words_UD))
    # The whole [B, K, U] array is computed at once; working in blocks of sentences keeps it small.
    step = max(1, COSINES_AT_A_TIME // max(1, facets_BKD.shape[1] * len(words_UD)))
    for start in range(0, len(rows), step):
        check_interrupted()
        facets = torch.from_numpy(facets_BKD[start : start + step])
        covered_BU[start : start + step] = scoring.word_coverage(facets, words_UD).pow_(_POWER)
    covered_BU *= 1 - _WORD_SHARE
    return covered_BU.add_(_closest_words(model, rows, words_UD).pow_(_POWER), alpha=_WORD_SHARE)


def _closest_words(model: TextModel, rows: Sequence[Ints], words_UD: Tensor) -> Tensor:
    """Cosine of each word to cover with the closest word of each sentence, ``[B, U]``, at least 0."""
    closest_BU = torch.zeros(len(rows), len(words_UD))
    step = max(1, COSINES_AT_A_TIME // max(1, len(words_UD)))
    for group in grouped(range(len(rows)), step, size=lambda sentence: len(rows[sentence])):
        check_interrupted()
        some = slice(group[0], group[-1] + 1)
        if any(map(len, rows[some])):
            rows_W, indexes = np.unique(np.concatenate(rows[some]), return_inverse=True)
            cosines_WU = (torch.from_numpy(model.words.units(rows_W)) @ words_UD.mT).clamp_(0.0, 1.0)
            lengths_B = torch.tensor([len(own) for own in rows[some]])
            closest_BU[some] = torch.segment_reduce(
                cosines_WU[torch.from_numpy(indexes)], "max", lengths=lengths_B, axis=0, initial=0.0
            )
    return closest_BU


def _sought(model: TextModel, query: str, encoder: TextEncoder) -> Tensor:
    """Words of a query, scaled by weight so that function words have little effect, and its facets, ``[N, D]``."""
    rows = [known_rows(model.words.vocabulary, words) for words in model.tokenizer.words([query])]
    rows_Q, weights_Q = _word_weights(model.words.vocabulary, rows, count_power=1.0, alpha=scoring.ALPHA)
    weights_Q = weights_Q / weights_Q.amax() if len(weights_Q) else weights_Q
    words_QD = torch.from_numpy(model.words.units(rows_Q)) * weights_Q.unsqueeze(1)
    return torch.cat([words_QD, scoring.unit_facets(torch.from_numpy(encoder.encode([query])[0]))])


def _sentence_coverages(
    model: TextModel, documents: Sequence[Sequence[Sentence]], *, query: str, encoder: TextEncoder
) -> Iterator[Covered]:
    sought_D = _vectors(encoder, [query])[0] if query else None
    for texts, places in _groups(documents):
        vectors_SD = _vectors(encoder, texts)
        for place in places:
            yield _covered(model, texts[place], vectors_SD[place], sought_D=sought_D)


def _vectors(encoder: TextEncoder, texts: Sequence[str]) -> Floats:
    """Unit vectors ``[len(texts), D]``; zero for texts without a letter or digit, which some models cannot read."""
    readable = [i for i, text in enumerate(texts) if any(map(str.isalnum, text))]
    if not readable:
        return np.zeros((len(texts), 1), dtype=np.float32)
    units = unit_rows(encoder.embed([texts[i] for i in readable]))
    vectors_SD = np.zeros((len(texts), units.shape[1]), dtype=np.float32)
    vectors_SD[readable] = units
    return vectors_SD


def _covered(model: TextModel, texts: Sequence[str], vectors_SD: Floats, *, sought_D: Floats | None) -> Covered:
    words_SU, word_weights_U = _words(model, texts)
    targets_TD, weights_T = _targets(vectors_SD)
    likeness_ST = torch.from_numpy(vectors_SD @ targets_TD.T).clamp_(0.0, 1.0).pow_(_POWER)
    if sought_D is not None and sought_D.any() and vectors_SD.shape[1] == len(sought_D):
        closeness_S = torch.from_numpy(vectors_SD @ sought_D).clamp_(0.0, 1.0).square_()
        if len(word_weights_U):
            word_weights_U = _focused(word_weights_U, (words_SU * closeness_S[:, None]).amax(dim=0))
        weights_T = _focused(weights_T, torch.from_numpy(targets_TD @ sought_D).clamp_(0.0, 1.0).square_())
    parts = ((words_SU, word_weights_U, 1 - _SENTENCE_SHARE), (likeness_ST, weights_T, _SENTENCE_SHARE))
    weights_C = torch.cat([_shared(*part) for part in parts])
    return Covered(torch.cat([words_SU, likeness_ST], dim=1), weights_C)


def _words(model: TextModel, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
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
    counts_U = np.bincount(columns_W, minlength=len(numbers)).astype(np.float64) ** _COUNT_POWER
    weights_U = counts_U * scoring.probability_weights(torch.from_numpy(probabilities_U), alpha=_PASSAGE_ALPHA).numpy()
    is_content_U = ~vocabulary.is_stop[rows_U] | (rows_U == vocabulary.unknown_row)
    kept_U = np.flatnonzero(is_content_U if is_content_U.any() else weights_U > 0)
    kept_U = np.sort(kept_U[np.argsort(-weights_U[kept_U], kind="stable")[: _most_words(len(texts))]])
    kept_columns_U = np.full(len(numbers), -1)
    kept_columns_U[kept_U] = np.arange(len(kept_U))
    is_kept_W = kept_columns_U[columns_W] >= 0
    words_SU = torch.zeros(len(texts), len(kept_U))
    words_SU[sentences_W[is_kept_W], kept_columns_U[columns_W[is_kept_W]]] = 1.0
    return words_SU, torch.from_numpy(weights_U[kept_U]).float()


def _targets(vectors_SD: Floats) -> tuple[Floats, Tensor]:
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


def _shared(covered_SC: Tensor, weights_C: Tensor, share: float) -> Tensor:
    """Scales weights so that all sentences together cover ``share``."""
    total = float(scoring.added_coverage(covered_SC, REPETITION) @ weights_C) if len(weights_C) else 0.0
    return weights_C * (share / total) if total > 0 else weights_C
