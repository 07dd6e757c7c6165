"""Compares two texts by reading them together: their similarity, what the first says about the second, what differs.

A cross-encoder reads both texts (``facets.model.pair_reader``). Of longer texts it reads each sentence with the most
similar sentence of the other text, so the work grows linearly with their number.
Shape suffixes: P pairs, M sentences of the first text, N of the second, X pairs of parts of two texts, A those of all,
W words, C relations between two texts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from facets.arrays import Floats, Vectors, products
from facets.language.languages import DEFAULT_LANGUAGE, detect
from facets.language.reading import Reading, read
from facets.language.sentences import sentences_of
from facets.model.pair_reader import RELATIONS, PairReader


class InferenceLabel(StrEnum):
    """What the first text implies about the second."""

    EQUIVALENT = "equivalent"
    ENTAILS = "entails"
    NEUTRAL = "neutral"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Difference:
    """Words of two texts without which the texts would contradict each other less."""

    first: str  # the word of the first text
    second: str  # the word of the second text
    first_start: int  # offset of the first character
    first_end: int  # offset after the last character
    second_start: int
    second_end: int
    weight: float  # by how much they raise the probability that the texts contradict each other, in `[0, 1]`


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two texts."""

    score: float  # similarity in `[0, 1]`
    label: InferenceLabel | None  # None: the texts are not in English, as far as one can tell
    differences: tuple[Difference, ...]  # largest weight first


class _Part(NamedTuple):
    """A text, or a sentence of a long one, as it is read."""

    text: str
    number: int  # in the whole text
    reading: Reading  # of the whole text
    start: int  # of the part in the whole text as it is read; -1 if it is read otherwise there

    def words(self, other: "_Part") -> list[re.Match[str]]:
        """The first words that the other part does not have; those of all words if it has all."""
        words, known = list(_WORD.finditer(self.text)), {word.lower() for word in _WORD.findall(other.text)}
        return ([word for word in words if word.group().lower() not in known] or words)[:_MOST_WORDS]

    def span(self, word: re.Match[str]) -> tuple[int, int]:
        """Offsets of the first character of a word of the part, and after the last one, in the original text."""
        start, end = self.reading.original(self.start + np.array([word.span()]))[0].tolist()
        return start, end


Embed = Callable[[Sequence[str]], Vectors]

MAX_SENTENCES = 32  # sentences read of a long text; the rest count only through the encoder
_READ_WHOLE = 400  # characters of a text that is read at once
_EQUIVALENT, _ENTAILS, _ENTAILED, _NEUTRAL, _CONTRADICTS = range(len(RELATIONS))
# The similarity is a logistic function of the cosine of the encoder and the probabilities of the relations. Fitted by
# least squares on the training pairs of STS Benchmark, and on written pairs (weight 0.7): .95 for equivalent ones, .8
# for those that entail, .35 for those that contradict each other.
_COSINE, _CONSTANT = 3.66, -2.71
_OF_RELATIONS = np.array([1.96, 0.84, 0.84, 0.0, -0.03])
_LEAST_WEIGHT = 0.1  # of a difference
_MAX_DIFFERENCES = 3  # of the sentences that contradict each other most
_MOST_WORDS = 16  # of each sentence
_WORD = re.compile(r"\w+(?:[.,:'\u2019-]\w+)*")


def compare_texts(
    reader: PairReader, pairs: Sequence[tuple[str, str]], cosines_P: Vectors, embed: Embed
) -> list[Comparison]:
    """Compares pairs of texts; ``embed``: encodes sentences, to find those of long texts that belong together.

    Swapping the texts of a pair swaps the sides of the differences and may change the label, but not the score.
    """
    aligned = [_aligned(first, second, embed) for first, second in pairs]
    reads = _read(reader, [[(one.text, other.text) for one, other in own] for own in aligned])
    contradicting = [
        (pair, *aligned[pair][x], float(read_XC[x, _CONTRADICTS]))
        for pair, read_XC in enumerate(reads)
        for x in np.argsort(-read_XC[:, _CONTRADICTS], kind="stable")[:_MAX_DIFFERENCES].tolist()
        if read_XC[x].argmax() == _CONTRADICTS
    ]
    without = _read(reader, [_without_each_word(one, other) for _, one, other, _ in contradicting])
    differences = [list[Difference]() for _ in pairs]
    for (pair, one, other, contradicts), read_WC in zip(contradicting, without, strict=True):
        differences[pair] += _difference(one, other, contradicts - read_WC[:, _CONTRADICTS])
    compared = [
        _comparison(_together(read_XC, own), cosine, sorted(found, key=lambda one: -one.weight))
        if own
        else Comparison(1.0, InferenceLabel.EQUIVALENT, ())
        for read_XC, own, cosine, found in zip(reads, aligned, cosines_P.tolist(), differences, strict=True)
    ]
    return [
        one if not own or detect(pair) == DEFAULT_LANGUAGE else Comparison(one.score, None, ())
        for one, own, pair in zip(compared, aligned, pairs, strict=True)
    ]


def _aligned(first: str, second: str, embed: Embed) -> list[tuple[_Part, _Part]]:
    """Each part of a text with the most similar part of the other text; none if the texts are the same."""
    ones, others = _parts(first), _parts(second)
    if ones[0].reading.text.split() == others[0].reading.text.split():
        return []
    if len(ones) == 1 or len(others) == 1:
        return list(product(ones, others))
    vectors_XD = embed([part.text for part in (*ones, *others)])
    cosines_MN = products(vectors_XD[: len(ones)], vectors_XD[len(ones) :])
    forward = enumerate(cosines_MN.argmax(1).tolist())
    pairs = {*forward, *((i, j) for j, i in enumerate(cosines_MN.argmax(0).tolist()))}
    return [(ones[i], others[j]) for i, j in sorted(pairs)]


def _parts(text: str) -> list[_Part]:
    reading = read(text)
    if len(text) <= _READ_WHOLE:
        return [_Part(reading.text, 0, reading, 0)]
    parts, behind = list[_Part](), 0
    for number, sentence in enumerate(sentences_of(text)[:MAX_SENTENCES]):
        start = reading.text.find(sentence.said, behind)
        parts.append(_Part(sentence.said, number, reading, start))
        behind = max(behind, start + len(sentence.said))
    return parts


def _read(reader: PairReader, pairs_of: Sequence[Sequence[tuple[str, str]]]) -> list[Floats]:
    """What the texts of each pair are to each other, ``[X, C]`` of each sequence; equal ones need no reading."""
    pairs = list(chain(*pairs_of))
    read_AC = np.zeros((len(pairs), len(RELATIONS)), dtype=np.float32)
    read_AC[:, _EQUIVALENT] = 1.0
    differ = [place for place, (one, other) in enumerate(pairs) if one != other]
    read_AC[differ] = reader.read([pairs[place] for place in differ])
    return np.split(read_AC, np.cumsum([len(own) for own in pairs_of])[:-1]) if pairs_of else []


def _together(read_XC: Floats, aligned: Sequence[tuple[_Part, _Part]]) -> Floats:
    """What two texts say of each other, ``[C]``, given what their parts do."""
    if len(read_XC) == 1:
        return read_XC[0]
    # A text follows if each of its parts follows from one of the other.
    follows_2X = read_XC[:, _EQUIVALENT] + np.stack([read_XC[:, _ENTAILS], read_XC[:, _ENTAILED]])
    forward, backward = (
        _all_follow(follows_X, [pair[side].number for pair in aligned])
        for follows_X, side in zip(follows_2X, (1, 0), strict=True)
    )
    both, contradicts = min(forward, backward), float(read_XC[:, _CONTRADICTS].max())
    rest = np.array([both, forward - both, backward - both, 1.0 - max(forward, backward)])
    return np.append(rest * (1.0 - contradicts), contradicts)


def _all_follow(follows_X: Floats, parts_X: Sequence[int]) -> float:
    best = dict[int, float]()
    for part, follows in zip(parts_X, follows_X.tolist(), strict=True):
        best[part] = max(follows, best.get(part, 0.0))
    return min(best.values())


def _comparison(found_C: Floats, cosine: float, differences: Sequence[Difference]) -> Comparison:
    relation = RELATIONS[int(found_C.argmax())]
    label = InferenceLabel.NEUTRAL if relation == "entailed" else InferenceLabel(relation)
    score = float(1.0 / (1.0 + np.exp(-(_CONSTANT + _COSINE * cosine + found_C @ _OF_RELATIONS))))
    return Comparison(score, label, tuple(differences))


def _without_each_word(one: _Part, other: _Part) -> list[tuple[str, str]]:
    """Two texts with one word of either left out."""
    firsts, seconds = (
        [f"{word.string[: word.start()]}{word.string[word.end() :]}" for word in part.words(of)]
        for part, of in ((one, other), (other, one))
    )
    return [*((first, other.text) for first in firsts), *((one.text, second) for second in seconds)]


def _difference(one: _Part, other: _Part, lowered_W: Floats) -> list[Difference]:
    """The word of each text without which they contradict each other the least, if there is one."""
    words, others = one.words(other), other.words(one)
    if min(len(words), len(others), one.start + 1, other.start + 1) == 0 or lowered_W.max() < _LEAST_WEIGHT:
        return []
    first, second = words[int(lowered_W[: len(words)].argmax())], others[int(lowered_W[len(words) :].argmax())]
    return [Difference(first.group(), second.group(), *one.span(first), *other.span(second), float(lowered_W.max()))]
