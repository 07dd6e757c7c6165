"""Aligns the words of two sentences: which word of one means the same as which word of the other.

Each content word is aligned with at most one word of the other sentence so that the total similarity is greatest (an
assignment problem; alignment as a measure of similarity: Sultan et al. 2014). Words are similar by form, by WordNet and
by the cosine of their vectors. Opposites are aligned too, because they describe the same thing.
Shape suffixes: F words of the first sentence, S of the second, W distinct words, N sentences, D dimensions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rapidfuzz.distance import OSA

from facets.arrays import Bools, Doubles, Floats
from facets.language import lexicon
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows
from facets.language.wordnet import wordnet
from facets.model.contract import TextModel
from facets.texts.wording import Word, Wording

_LEAST_ALIKE = 0.35  # words less similar are not aligned
_COSINE_FLOOR = 0.35  # lower cosines of word vectors count as 0
_BY_VECTORS = 0.9  # highest similarity that vectors alone can give
_OPPOSITES_ALIKE = 0.9
_IS_KIND = 0.3  # hypernymy above which one word follows from the other
_WEAK = 0.3  # weight of pronouns and light verbs
_COMMON = 1e-3  # the `a` in the SIF weights a / (a + p(w))
_MISSPELT = 0.95
_LEAST_MISSPELT, _TWICE_MISSPELT = 4, 8  # shortest words that may have one, two spelling mistakes
_UNKNOWN = 1e-6  # probability of a word outside the vocabulary


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Two aligned words, as indexes of the words of the two sentences."""

    first: int
    second: int
    alike: float  # similarity in [0, 1]
    opposite: bool


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two aligned sentences."""

    first: Wording
    second: Wording
    pairs: tuple[AlignedPair, ...]  # in the order of the first sentence
    first_weights: Doubles  # weights of the words, `[F]`
    second_weights: Doubles  # `[S]`

    @property
    def covered(self) -> tuple[Doubles, Doubles]:
        """Similarity of each word of the first and second sentence to the aligned word, in ``[0, 1]``."""
        covered_F, covered_S = np.zeros(len(self.first.words)), np.zeros(len(self.second.words))
        for pair in self.pairs:
            covered_F[pair.first] = covered_S[pair.second] = pair.alike
        return covered_F, covered_S

    @property
    def coverages(self) -> tuple[float, float]:
        """Weighted share of each sentence that the other one covers, in ``[0, 1]``."""
        covered_F, covered_S = self.covered
        return share(covered_F, self.first_weights), share(covered_S, self.second_weights)

    @property
    def uncovered(self) -> float:
        """Weight of the heaviest word without a counterpart, times how dissimilar it is to the aligned word."""
        weights_and_covered = zip((self.first_weights, self.second_weights), self.covered, strict=True)
        return max(float((weights * (1.0 - covered)).max(initial=0.0)) for weights, covered in weights_and_covered)

    @property
    def entailed(self) -> tuple[float, float]:
        """Weighted share of the second sentence that follows from the first (a poodle is a dog), and the reverse."""
        forward_S, backward_F = np.zeros(len(self.second.words)), np.zeros(len(self.first.words))
        for pair in self.pairs:
            one, other = self.first.words[pair.first], self.second.words[pair.second]
            if pair.opposite:  # "not open" is "closed"
                forward_S[pair.second] = backward_F[pair.first] = pair.alike * (one.negated != other.negated)
            else:
                forward_S[pair.second] = _follows(one, other, pair.alike)
                backward_F[pair.first] = _follows(other, one, pair.alike)
        return share(forward_S, self.second_weights), share(backward_F, self.first_weights)


def share(values: Doubles, weights: Doubles) -> float:
    """Weighted mean; 0 without weights."""
    return float(values @ weights / max(weights.sum(), 1e-9))


class WordTable:
    """Vectors and weights of the distinct words of sentences, looked up once."""

    def __init__(self, model: TextModel, wordings: Iterable[Wording]) -> None:
        words = sorted({word.text for wording in wordings for word in wording.words})
        self._rows = {word: row for row, word in enumerate(words)}
        self._vectors_WD = model.words.of(words)
        vocabulary = model.words.vocabulary
        rows = vocabulary.rows(words)
        known = rows < len(vocabulary)
        probabilities_W = np.full(len(words), _UNKNOWN)
        probabilities_W[known] = vocabulary.probabilities[rows[known]]
        self._weights_W = _COMMON / (_COMMON + probabilities_W)

    def rows(self, words: Sequence[Word]) -> list[int]:
        """Rows of words in the table."""
        return [self._rows[word.text] for word in words]

    def weights(self, words: Sequence[Word]) -> Doubles:
        """Weights of words: lower for frequent words, pronouns and light verbs."""
        weights: Doubles = self._weights_W[self.rows(words)]
        return weights * np.array([_WEAK if word.weak else 1.0 for word in words])

    def cosines(self, first: Sequence[Word], second: Sequence[Word]) -> Floats:
        """Cosines of word vectors, ``[F, S]``."""
        cosines: Floats = self._vectors_WD[self.rows(first)] @ self._vectors_WD[self.rows(second)].T
        return cosines

    def sentence_vectors(self, sentences: Sequence[Wording]) -> Floats:
        """Unit-length weighted mean of each sentence's word vectors, ``[N, D]``."""
        means = [self.weights(wording.words) @ self._vectors_WD[self.rows(wording.words)] for wording in sentences]
        return unit_rows(np.stack(means).astype(np.float32))


def align(first: Wording, second: Wording, table: WordTable) -> Alignment:
    """Aligns two sentences."""
    weights_F, weights_S = table.weights(first.words), table.weights(second.words)
    alike_FS, opposite_FS = _similarities(first.words, second.words, table.cosines(first.words, second.words))
    from scipy.optimize import linear_sum_assignment  # imported late: takes 36 MB that a server may never need

    rows, columns = linear_sum_assignment(-alike_FS)
    pairs = tuple(
        AlignedPair(int(i), int(j), float(alike_FS[i, j]), bool(opposite_FS[i, j]))
        for i, j in zip(rows, columns, strict=True)
        if alike_FS[i, j] >= _LEAST_ALIKE
    )
    return Alignment(first, second, pairs, weights_F, weights_S)


def _similarities(first: Sequence[Word], second: Sequence[Word], cosines_FS: Floats) -> tuple[Doubles, Bools]:
    """Similarity of each pair of words, and whether they are opposites, ``[F, S]`` each."""
    by_vectors_FS = ((cosines_FS - _COSINE_FLOOR) / (1.0 - _COSINE_FLOOR)).clip(0.0, 1.0).astype(np.float64)
    alike_FS = _BY_VECTORS * by_vectors_FS
    opposite_FS = np.zeros(alike_FS.shape, dtype=np.bool_)
    for i, one in enumerate(first):
        check_interrupted()
        for j, other in enumerate(second):
            if one.kind is not None or other.kind is not None:
                alike_FS[i, j] = float(one.has_same_value(other))
                continue
            same, opposed, kind = lexical(one.text, other.text)
            if opposed == 1.0 or opposed > same:
                alike_FS[i, j], opposite_FS[i, j] = _OPPOSITES_ALIKE, True
            else:
                alike_FS[i, j] = max(alike_FS[i, j], same, 0.8 * kind)
    return alike_FS, opposite_FS


@lru_cache(100_000)  # about 45 MB
def lexical(first: str, second: str) -> tuple[float, float, float]:
    """Certainty in ``[0, 1]`` that two words mean the same, are opposites, and are hypernyms."""
    if first == second:
        return 1.0, 0.0, 0.0
    bases, others = base_forms(first), base_forms(second)
    if any(frozenset((one, other)) in lexicon.OPPOSITES for one in bases for other in others):
        return 0.0, 1.0, 0.0
    words = wordnet()
    if _is_misspelt(first, second):
        return _MISSPELT, 0.0, 0.0
    kind = max(words.hypernymy(first, second), words.hypernymy(second, first))
    same, opposed = words.sameness(first, second), words.opposition(first, second)
    positive, other = _positive(first), _positive(second)
    if positive != first and other != second:
        same, opposed = max(same, words.sameness(positive, other)), max(opposed, words.opposition(positive, other))
    return same, opposed, kind


def _positive(word: str) -> str:
    """The positive form of a comparative or superlative; other words unchanged."""
    for ending in ("er", "est"):
        stem = word.removesuffix(ending)
        if stem != word:
            for form in (stem, f"{stem}e", f"{stem[:-1]}y" if stem.endswith("i") else stem[:-1]):
                if f"a:{form}" in wordnet().lemmas(form):
                    return form
    return word


def _is_misspelt(first: str, second: str) -> bool:
    """Whether one word is unknown to WordNet and differs from the other by one or two letters."""
    if min(len(first), len(second)) < _LEAST_MISSPELT or (wordnet().lemmas(first) and wordnet().lemmas(second)):
        return False
    most = 1 if max(len(first), len(second)) < _TWICE_MISSPELT else 2
    return OSA.distance(first, second, score_cutoff=most) <= most


@lru_cache(100_000)
def base_forms(word: str) -> frozenset[str]:
    """A word and its possible base forms, without parts of speech."""
    return frozenset(lemma[2:] for lemma in wordnet().lemmas(word)) | {word, _positive(word)}


def _follows(special: Word, general: Word, alike: float) -> float:
    """How well a word follows from the more specific word that it is aligned with."""
    if special.kind is not None:
        return alike
    same = lexical(special.text, general.text)[0]
    is_kind = wordnet().hypernymy(special.text, general.text) > _IS_KIND
    return max(same, 0.95 if is_kind else 0.0, 0.7 * alike)
