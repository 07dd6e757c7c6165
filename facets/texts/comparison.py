"""Two texts compared by what they say: the score of ``alignment``, what differs, whether one follows from the other.

The score begins with the cosine of the encoder and with how well the words of each text are met in the other; words
that belong to other words than there, and differences that speak against both texts holding, lower it. Sentences of
longer texts are compared with the sentence of the other text that is most like them, so the work grows with the number
of sentences and not with its square, but for one small matrix of cosines.

Shape suffixes: P pairs, M sentences of the first text, N of the second, D dimensions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from facets.language.reading import read
from facets.language.tokenizer import Token
from facets.model.contract import TextModel
from facets.texts.alignment import Alignment, WordTable, align
from facets.texts.differences import Difference, DifferenceKind, find_differences
from facets.texts.wording import MAX_TOKENS, Wording, read_wording


class InferenceLabel(StrEnum):
    """What the first text says of the second."""

    ENTAILS = "entails"
    NEUTRAL = "neutral"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two texts say of each other."""

    score: float  # how alike they are, in `[0, 1]`
    label: InferenceLabel  # whether the first entails or contradicts the second
    differences: tuple[Difference, ...]  # what they say differently of the same things, the heaviest first


@dataclass(frozen=True, slots=True)
class _Features:
    """Of a pair of texts; means over their sentences by weight, all in ``[0, 1]``."""

    coverage: float
    entails: float
    entailed: float
    structure: float
    penalty: float  # what contradictions take off
    contradiction: float


MAX_SENTENCES = 32  # of a text; those behind are compared by the encoder alone
_MAX_DIFFERENCES = 8
# Least squares on the training pairs of STS Benchmark, rounded; the four below by its training pairs and those of SICK
# together, on a grid: see docs/use/similarity.md.
_COSINE, _ENTAILMENT, _CONSTANT = 0.85, 0.25, -0.15
_EXPONENT = 0.85
_STRUCTURE = 0.15  # what words in other places take off at most
_CONTRADICTION = 0.45
# "A man is singing" and "A man is not singing" may be about two men, "the man" is one.
_INDEFINITE = 0.5
_SAME_WORDS, _BY_WORDS = 0.9, 0.85  # so many words that follow, both ways, make two texts so alike
_LEAST_CONTRADICTION = 0.6
_LEAST_ENTAILMENT = 0.8
_LEAST_COSINE = 0.7
# Where nobody is introduced as definite, only a negation makes a contradiction.
_DENIALS = (DifferenceKind.NEGATION, DifferenceKind.MODAL)


def compare_texts(
    model: TextModel, pairs: Sequence[tuple[str, str]], cosines_P: NDArray[np.floating]
) -> list[Comparison]:
    """Compares pairs of texts.

    ``model``: its tokenizer, words and word vectors are used. Returns one comparison a pair. Exchanging the texts of a
    pair changes the label alone, and exchanges the sides of the differences.
    """
    sentences = _read_texts(model, chain.from_iterable(pairs))
    table = WordTable(model, [wording for read in sentences.values() for wording in read])
    compared = lru_cache(None)(lambda first, second: _features(sentences[first], sentences[second], table))
    found = []
    for (first, second), cosine in zip(pairs, cosines_P.tolist(), strict=True):
        if read(first).text.split() == read(second).text.split():
            found.append(Comparison(1.0, InferenceLabel.ENTAILS, ()))
            continue
        # One order for both, so that ties are broken alike.
        is_exchanged = second < first
        features, differences = compared(*sorted((first, second)))
        if features is None:
            found.append(Comparison(max(0.0, cosine) ** _EXPONENT, InferenceLabel.NEUTRAL, ()))
            continue
        if is_exchanged:
            features = replace(features, entails=features.entailed, entailed=features.entails)
            differences = tuple(difference.exchanged() for difference in differences)
        found.append(Comparison(_score(cosine, features), _label(cosine, features), differences))
    return found


def _read_texts(model: TextModel, texts: Iterable[str]) -> dict[str, tuple[Wording, ...]]:
    """The sentences of each text, read; those without a word that is compared are left out."""
    found = {}
    for text in dict.fromkeys(texts):
        wordings = (read_wording(tokens) for tokens in _sentence_tokens(model, text))
        found[text] = tuple(wording for wording in wordings if wording.words)
    return found


def _sentence_tokens(model: TextModel, text: str) -> Iterator[list[Token]]:
    """The first tokens of what each sentence says, with their places in the text as it was given."""
    reading, place = read(text), 0
    for sentence in model.tokenizer.sentences(text)[:MAX_SENTENCES]:
        found = reading.text.find(sentence.said, place)
        if found < 0:  # a mark that goes over the end of a sentence
            tokens = _tokens(model, sentence.text)
            yield [Token(token.text, token.start + sentence.start, token.end + sentence.start) for token in tokens]
            continue
        tokens = _tokens(model, sentence.said)
        spans_N2 = reading.original(found + np.array([(token.start, token.end) for token in tokens]).reshape(-1, 2))
        yield [Token(token.text, *span) for token, span in zip(tokens, spans_N2.tolist(), strict=True)]
        place = found + len(sentence.said)


def _tokens(model: TextModel, text: str) -> list[Token]:
    if len(text.lower()) != len(text):  # a dotted capital I: two characters in lower case
        return model.tokenizer.tokenize([text])[0]
    (words,) = model.tokenizer.words([text], most=MAX_TOKENS)  # from its cache, several times as fast
    tokens, place = [], 0
    for word in words:
        while text[place].isspace():
            place += 1
        start, place = place, place + len(word)
        tokens.append(Token(text[start:place], start, place))
    return tokens


def _features(
    first: Sequence[Wording], second: Sequence[Wording], table: WordTable
) -> tuple[_Features | None, tuple[Difference, ...]]:
    """Nothing where a text has no word that is compared."""
    if not first or not second:
        return None, ()
    aligned = [align(first[i], second[j], table) for i, j in _meeting_sentences(first, second, table)]
    weights = [sum(table.weights(wording.words).sum() for wording in side) for side in (first, second)]
    shares = [alignment.first_weights.sum() / weights[0] for alignment in aligned]
    others = [alignment.second_weights.sum() / weights[1] for alignment in aligned]
    found = [find_differences(alignment) for alignment in aligned]
    sizes = [(share + other) / 2 for share, other in zip(shares, others, strict=True)]
    coverages = [alignment.coverages for alignment in aligned]
    entailed = [alignment.entailed for alignment in aligned]
    features = _Features(
        coverage=(_dot(shares, [one for one, _ in coverages]) + _dot(others, [other for _, other in coverages])) / 2,
        entails=_dot(others, [forward for forward, _ in entailed]),
        entailed=_dot(shares, [backward for _, backward in entailed]),
        structure=_dot(sizes, [alignment.structure for alignment in aligned]) + 1.0 - sum(sizes),
        penalty=_dot(sizes, [_penalty(*pair) for pair in zip(aligned, found, strict=True)]),
        contradiction=max(_contradiction(*pair) for pair in zip(aligned, found, strict=True)),
    )
    differences = sorted((one for own in found for one in own), key=lambda difference: -difference.weight)
    return features, tuple(differences[:_MAX_DIFFERENCES])


def _dot(shares: Sequence[float], values: Sequence[float]) -> float:
    return float(sum(share * value for share, value in zip(shares, values, strict=True)))


def _meeting_sentences(first: Sequence[Wording], second: Sequence[Wording], table: WordTable) -> list[tuple[int, int]]:
    """Which sentence of the shorter text meets which of the longer one."""
    if len(first) == len(second) == 1:
        return [(0, 0)]
    cosines_MN = table.sentence_vectors(first) @ table.sentence_vectors(second).T
    from scipy.optimize import linear_sum_assignment  # 36 MB that a server may never need

    rows, columns = linear_sum_assignment(-cosines_MN)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _is_indefinite(alignment: Alignment) -> bool:
    return alignment.first.indefinite and alignment.second.indefinite


def _penalty(alignment: Alignment, differences: Sequence[Difference]) -> float:
    heaviest = max((difference.weight for difference in differences), default=0.0)
    return heaviest * (_INDEFINITE if _is_indefinite(alignment) else 1.0)


def _contradiction(alignment: Alignment, differences: Sequence[Difference]) -> float:
    indefinite = _is_indefinite(alignment)
    weights = (one.weight for one in differences if not indefinite or one.kind in _DENIALS)
    return max(weights, default=0.0)


def _score(cosine: float, features: _Features) -> float:
    entailment = max(features.entails, features.entailed)
    weighted = _COSINE * cosine + _ENTAILMENT * entailment + _CONSTANT
    alike = min(1.0, max(0.0, weighted / (_COSINE + _ENTAILMENT + _CONSTANT)))
    both = min(features.entails, features.entailed)
    if both >= _SAME_WORDS:  # whatever the encoder makes of words that are misspelt
        alike = max(alike, both * _BY_WORDS)
    misplaced = _STRUCTURE * (1.0 - features.structure) * features.coverage
    return float(alike**_EXPONENT * (1.0 - misplaced) * (1.0 - _CONTRADICTION * features.penalty))


def _label(cosine: float, features: _Features) -> InferenceLabel:
    if features.contradiction >= _LEAST_CONTRADICTION:
        return InferenceLabel.CONTRADICTS
    is_entailed = features.entails >= _LEAST_ENTAILMENT and cosine >= _LEAST_COSINE and features.penalty < 0.3
    return InferenceLabel.ENTAILS if is_entailed else InferenceLabel.NEUTRAL
