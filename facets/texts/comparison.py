"""Compares two texts by what they say: the ``alignment`` score, the differences, and whether one entails the other.

The score starts from the cosine of the encoder and the share of words that the texts have in common.
Differences that suggest the texts cannot both be true lower it. In longer texts each sentence is compared with the most
similar sentence of the other text, so the work grows linearly with their number.
Shape suffixes: P pairs, M sentences of the first text, N of the second, D dimensions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import chain

import numpy as np

from facets.arrays import Vectors
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.tokenizer import Token
from facets.model.contract import TextModel
from facets.texts.alignment import Alignment, WordTable, align
from facets.texts.differences import Difference, DifferenceKind, find_differences
from facets.texts.wording import MAX_TOKENS, Wording, read_wording


class InferenceLabel(StrEnum):
    """What the first text implies about the second."""

    EQUIVALENT = "equivalent"
    ENTAILS = "entails"
    NEUTRAL = "neutral"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two texts."""

    score: float  # similarity in `[0, 1]`
    label: InferenceLabel
    differences: tuple[Difference, ...]  # largest weight first


@dataclass(frozen=True, slots=True)
class _Features:
    """Features of a pair of texts: weighted means over their sentences, in ``[0, 1]``."""

    entails: float
    entailed: float
    penalty: float  # for the differences
    contradiction: float
    uncovered: float  # largest weight of a word without a counterpart in the other text


MAX_SENTENCES = 32  # sentences compared per text; the rest count only through the encoder
_MAX_DIFFERENCES = 8
_APART = 1e-6  # of similarity, for each place between two sentences: more than rounding
# Fitted by least squares on the training pairs of STS Benchmark; the next four on a grid, on those and on SICK's. See
# docs/use/similarity.md.
_COSINE, _ENTAILMENT, _CONSTANT = 0.85, 0.25, -0.15
_EXPONENT = 0.85
_CONTRADICTION = 0.45
# "A man is singing" and "A man is not singing" may be about two men; "the man" is the same man.
_INDEFINITE = 0.5
_SAME_WORDS, _BY_WORDS = 0.9, 0.85  # texts that entail each other to 0.9 or more have at least 0.85 of that
_LEAST_CONTRADICTION = 0.6
_LEAST_ENTAILMENT = 0.8
_LEAST_COSINE = 0.7
_MOST_PENALTY = 0.3  # of texts of which one entails the other
# Texts are equivalent from a cosine that grows with the heaviest word that only one has, unless one of them entails the
# other and not the reverse. Fitted on the training pairs of STS Benchmark and 100 plain paraphrases.
_EQUIVALENT, _UNCOVERED = 0.47, 0.3
_ONE_WAY, _LEAST_GAP = 0.9, 0.25
# Between two indefinite sentences only a negation makes a contradiction.
_DENIALS = (DifferenceKind.NEGATION, DifferenceKind.MODAL)


def compare_texts(model: TextModel, pairs: Sequence[tuple[str, str]], cosines_P: Vectors) -> list[Comparison]:
    """Compares pairs of texts with a model's tokenizer and word vectors.

    Swapping the texts of a pair swaps the sides of the differences and may change the label, but not the score.
    """
    sentences = _read_texts(model, chain.from_iterable(pairs))
    table = WordTable(model, [wording for read in sentences.values() for wording in read])
    compared = lru_cache(None)(lambda first, second: _features(sentences[first], sentences[second], table))
    comparisons = []
    for (first, second), cosine in zip(pairs, cosines_P.tolist(), strict=True):
        if read(first).text.split() == read(second).text.split():
            comparisons.append(Comparison(1.0, InferenceLabel.EQUIVALENT, ()))
            continue
        # Always in the same order, so that ties are broken consistently.
        is_exchanged = second < first
        features, differences = compared(*sorted((first, second)))
        if features is None:
            comparisons.append(Comparison(max(0.0, cosine) ** _EXPONENT, InferenceLabel.NEUTRAL, ()))
            continue
        if is_exchanged:
            features = replace(features, entails=features.entailed, entailed=features.entails)
            differences = tuple(difference.exchanged() for difference in differences)
        comparisons.append(Comparison(_score(cosine, features), _label(cosine, features), differences))
    return comparisons


def _read_texts(model: TextModel, texts: Iterable[str]) -> dict[str, tuple[Wording, ...]]:
    """The parsed sentences of each text, omitting sentences without a word to compare."""
    sentences = {}
    for text in dict.fromkeys(texts):
        check_interrupted()
        wordings = (read_wording(tokens) for tokens in _sentence_tokens(model, text))
        sentences[text] = tuple(wording for wording in wordings if wording.words)
    return sentences


def _sentence_tokens(model: TextModel, text: str) -> Iterator[list[Token]]:
    """The first tokens of each sentence as it is read, with their places in the original text."""
    reading, behind = read(text), 0
    for sentence in model.tokenizer.sentences(text)[:MAX_SENTENCES]:
        start = reading.text.find(sentence.said, behind)
        if start < 0:  # a mark extends over the end of the sentence
            (tokens,) = model.tokenizer.tokenize([sentence.text], most=MAX_TOKENS)
            yield [Token(token.text, token.start + sentence.start, token.end + sentence.start) for token in tokens]
            continue
        (tokens,) = model.tokenizer.tokenize([sentence.said], most=MAX_TOKENS)
        spans_N2 = reading.original(start + np.array([(token.start, token.end) for token in tokens]).reshape(-1, 2))
        yield [Token(token.text, *span) for token, span in zip(tokens, spans_N2.tolist(), strict=True)]
        behind = start + len(sentence.said)


def _features(
    first: Sequence[Wording], second: Sequence[Wording], table: WordTable
) -> tuple[_Features | None, tuple[Difference, ...]]:
    """Features and differences of two texts; None when a text has no word to compare."""
    if not first or not second:
        return None, ()
    check_interrupted()
    aligned = [align(first[i], second[j], table) for i, j in _aligned_sentences(first, second, table)]
    weights = [sum(table.weights(wording.words).sum() for wording in side) for side in (first, second)]
    shares = [alignment.first_weights.sum() / weights[0] for alignment in aligned]
    others = [alignment.second_weights.sum() / weights[1] for alignment in aligned]
    found = [find_differences(alignment) for alignment in aligned]  # for each pair of sentences
    sizes = [(share + other) / 2 for share, other in zip(shares, others, strict=True)]
    entailed = [alignment.entailed for alignment in aligned]
    features = _Features(
        entails=_dot(others, [forward for forward, _ in entailed]),
        entailed=_dot(shares, [backward for _, backward in entailed]),
        penalty=_dot(sizes, [_penalty(*pair) for pair in zip(aligned, found, strict=True)]),
        contradiction=max(_contradiction(*pair) for pair in zip(aligned, found, strict=True)),
        uncovered=1.0 if len(first) != len(second) else max(alignment.uncovered for alignment in aligned),
    )
    differences = sorted(chain.from_iterable(found), key=lambda difference: -difference.weight)
    return features, tuple(differences[:_MAX_DIFFERENCES])


def _dot(shares: Sequence[float], values: Sequence[float]) -> float:
    return float(sum(share * value for share, value in zip(shares, values, strict=True)))


def _aligned_sentences(first: Sequence[Wording], second: Sequence[Wording], table: WordTable) -> list[tuple[int, int]]:
    """Pairs of sentences of the two texts, each at most once, with the greatest total similarity.

    Of equally similar ones, those at the same place, whatever the rounding of the processor.
    """
    if len(first) == len(second) == 1:
        return [(0, 0)]
    cosines_MN = table.sentence_vectors(first) @ table.sentence_vectors(second).T
    from scipy.optimize import linear_sum_assignment  # imported late: takes 36 MB that a server may never need

    apart_MN = np.abs(np.arange(len(first))[:, None] - np.arange(len(second)))
    rows, columns = linear_sum_assignment(_APART * apart_MN - cosines_MN)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _is_indefinite(alignment: Alignment) -> bool:
    return alignment.first.indefinite and alignment.second.indefinite


def _penalty(alignment: Alignment, differences: Sequence[Difference]) -> float:
    # Exchanged roles count in full, although both texts may be true.
    weights = (1.0 if found.kind is DifferenceKind.ROLES else found.weight for found in differences)
    return max(weights, default=0.0) * (_INDEFINITE if _is_indefinite(alignment) else 1.0)


def _contradiction(alignment: Alignment, differences: Sequence[Difference]) -> float:
    indefinite = _is_indefinite(alignment)
    weights = (found.weight for found in differences if not indefinite or found.kind in _DENIALS)
    return max(weights, default=0.0)


def _score(cosine: float, features: _Features) -> float:
    entailment = max(features.entails, features.entailed)
    weighted = _COSINE * cosine + _ENTAILMENT * entailment + _CONSTANT
    alike = min(1.0, max(0.0, weighted / (_COSINE + _ENTAILMENT + _CONSTANT)))
    both = min(features.entails, features.entailed)
    if both >= _SAME_WORDS:  # the encoder may not know misspelt words
        alike = max(alike, both * _BY_WORDS)
    return float(alike**_EXPONENT * (1.0 - _CONTRADICTION * features.penalty))


def _label(cosine: float, features: _Features) -> InferenceLabel:
    if features.contradiction >= _LEAST_CONTRADICTION:
        return InferenceLabel.CONTRADICTS
    if features.penalty >= _MOST_PENALTY:
        return InferenceLabel.NEUTRAL
    low, high = sorted((features.entails, features.entailed))
    is_one_way = high >= _ONE_WAY and high - low > _LEAST_GAP
    if not is_one_way and cosine >= _EQUIVALENT + _UNCOVERED * features.uncovered:
        return InferenceLabel.EQUIVALENT
    is_entailed = features.entails >= _LEAST_ENTAILMENT and cosine >= _LEAST_COSINE
    return InferenceLabel.ENTAILS if is_entailed else InferenceLabel.NEUTRAL
