"""Compares two texts by reading them together: their similarity, what the first says about the second, what differs.

A cross-encoder reads both texts (``facets.model.pair_reader``). Of longer texts it reads each sentence with the most
similar sentence of the other text, so the work grows linearly with their number.
Shape suffixes: P pairs, M sentences of the first text, N of the second, C relations between two texts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from facets.arrays import Floats, Vectors, products
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
    label: InferenceLabel
    differences: tuple[Difference, ...]  # largest weight first


class _Part(NamedTuple):
    """A text, or a sentence of a long one, as it is read."""

    text: str
    reading: Reading  # of the whole text
    start: int  # of the part in the whole text as it is read; -1 if it is read otherwise there

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
    comparisons = []
    for (first, second), cosine in zip(pairs, cosines_P.tolist(), strict=True):
        if read(first).text.split() == read(second).text.split():
            comparisons.append(Comparison(1.0, InferenceLabel.EQUIVALENT, ()))
            continue
        ones, others = _parts(first), _parts(second)
        aligned = _aligned(ones, others, embed)
        read_XC = _read(reader, [(ones[i].text, others[j].text) for i, j in aligned])
        found_C = _together(read_XC, aligned)
        by_contradiction = np.argsort(-read_XC[:, _CONTRADICTS], kind="stable")[:_MAX_DIFFERENCES].tolist()
        found = (
            _difference(reader, ones[aligned[x][0]], others[aligned[x][1]], float(read_XC[x, _CONTRADICTS]))
            for x in by_contradiction
            if read_XC[x].argmax() == _CONTRADICTS
        )
        differences = sorted(filter(None, found), key=lambda difference: -difference.weight)
        score = float(1.0 / (1.0 + np.exp(-(_CONSTANT + _COSINE * cosine + found_C @ _OF_RELATIONS))))
        comparisons.append(Comparison(score, _label(found_C), tuple(differences)))
    return comparisons


def _read(reader: PairReader, pairs: Sequence[tuple[str, str]]) -> Floats:
    """What the texts of pairs are to each other, ``[P, C]``; equal ones need no reading."""
    read_PC = np.zeros((len(pairs), len(RELATIONS)), dtype=np.float32)
    read_PC[:, _EQUIVALENT] = 1.0
    differ = [place for place, (one, other) in enumerate(pairs) if one != other]
    read_PC[differ] = reader.read([pairs[place] for place in differ])
    return read_PC


def _parts(text: str) -> list[_Part]:
    reading = read(text)
    if len(text) <= _READ_WHOLE:
        return [_Part(reading.text, reading, 0)]
    parts, behind = list[_Part](), 0
    for sentence in sentences_of(text)[:MAX_SENTENCES]:
        start = reading.text.find(sentence.said, behind)
        parts.append(_Part(sentence.said, reading, start))
        behind = max(behind, start + len(sentence.said))
    return parts


def _aligned(ones: Sequence[_Part], others: Sequence[_Part], embed: Embed) -> list[tuple[int, int]]:
    """Each part of a text with the most similar part of the other text."""
    if len(ones) == 1 or len(others) == 1:
        return [(i, j) for i in range(len(ones)) for j in range(len(others))]
    vectors_XD = embed([part.text for part in (*ones, *others)])
    cosines_MN = products(vectors_XD[: len(ones)], vectors_XD[len(ones) :])
    forward = enumerate(cosines_MN.argmax(1).tolist())
    return sorted({*forward, *((i, j) for j, i in enumerate(cosines_MN.argmax(0).tolist()))})


def _together(read_XC: Floats, aligned: Sequence[tuple[int, int]]) -> Floats:
    """What two texts say of each other, ``[C]``, given what their parts do."""
    if len(read_XC) == 1:
        return read_XC[0]
    # A text follows if each of its parts follows from one of the other.
    follows_2X = read_XC[:, _EQUIVALENT] + np.stack([read_XC[:, _ENTAILS], read_XC[:, _ENTAILED]])
    ends = [{side[place] for side in aligned} for place in (1, 0)]
    forward, backward = (
        min(max(f for f, pair in zip(follows_X, aligned, strict=True) if pair[place] == part) for part in parts)
        for follows_X, place, parts in zip(follows_2X.tolist(), (1, 0), ends, strict=True)
    )
    both, contradicts = min(forward, backward), float(read_XC[:, _CONTRADICTS].max())
    rest = np.array([both, forward - both, backward - both, 1.0 - max(forward, backward)])
    return np.append(rest * (1.0 - contradicts), contradicts)


def _label(found_C: Floats) -> InferenceLabel:
    relation = RELATIONS[int(found_C.argmax())]
    return InferenceLabel.NEUTRAL if relation == "entailed" else InferenceLabel(relation)


def _difference(reader: PairReader, one: _Part, other: _Part, contradicts: float) -> Difference | None:
    """The word of each of two texts that contradict each other without which they do so the least."""
    words, others = (list(_WORD.finditer(part.text)) for part in (one, other))
    words, others = _own(words, others), _own(others, words)
    without = [(_without(word), other.text) for word in words] + [(one.text, _without(word)) for word in others]
    lowered_W = contradicts - reader.read(without)[:, _CONTRADICTS]
    if min(len(words), len(others), one.start + 1, other.start + 1) == 0 or lowered_W.max() < _LEAST_WEIGHT:
        return None
    first, second = words[int(lowered_W[: len(words)].argmax())], others[int(lowered_W[len(words) :].argmax())]
    return Difference(first.group(), second.group(), *one.span(first), *other.span(second), float(lowered_W.max()))


def _own(words: Sequence[re.Match[str]], others: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The words that the other text does not have; all of them if it has all."""
    known = {other.group().lower() for other in others}
    return ([word for word in words if word.group().lower() not in known] or list(words))[:_MOST_WORDS]


def _without(word: re.Match[str]) -> str:
    return f"{word.string[: word.start()]}{word.string[word.end() :]}"
