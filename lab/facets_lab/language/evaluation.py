"""Measures static word vectors: word similarity, analogies, sentence similarity by averaging."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from facets.errors import ConfigError
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets_lab.evaluation.files import fields_of, number_of, read_lines

_SIF_ALPHA = 1e-4
_ANALOGY_BLOCK = 512


@dataclass(frozen=True, slots=True)
class SentencePairs:
    """Pairs of sentences as word rows, with the similarity people gave them."""

    scores: NDArray[np.float64]  # [N]
    first: tuple[NDArray[np.int64], ...]  # N arrays of known words' rows
    second: tuple[NDArray[np.int64], ...]

    @classmethod
    def read(cls, path: Path, vocabulary: Vocabulary, tokenizer: Tokenizer) -> "SentencePairs":
        """Reads ``score<TAB>sentence<TAB>sentence`` lines; punctuation and unknown words are left out.

        Raises:
            InvalidInputError: A line has another form; the message names file and line.
        """
        rows = [
            (number_of(score, place, what="score"), first, second)
            for place, line in read_lines(path)
            for score, first, second in [fields_of(line, ("score", "first sentence", "second sentence"), place)]
        ]
        scores = np.array([score for score, _, _ in rows])
        first, second = (_known_rows(list(texts), vocabulary, tokenizer) for texts in list(zip(*rows, strict=True))[1:])
        return cls(scores, first, second)


def evaluate(words: WordVectors, data: Path) -> dict[str, dict[str, float]]:
    """All measurements of one set of vectors.

    Args:
        words: The vectors; they are compared at unit length.
        data: Folder with ``words/`` and ``sts/``.

    Returns:
        ``similarity`` (Spearman a set, their ``mean``, ``coverage``), ``analogies`` (accuracy of both kinds, ``all``,
        ``coverage``), ``sts_dev`` and ``sts_train`` (Pearson a method; ``_low``: gold scores below the median).
    """
    tokenizer = Tokenizer()
    train = SentencePairs.read(data / "sts/stsb-train.tsv", words.vocabulary, tokenizer)
    dev = SentencePairs.read(data / "sts/stsb-dev.tsv", words.vocabulary, tokenizer)
    return {
        "similarity": word_similarity(words, data / "words/similarity"),
        "analogies": analogy_accuracy(words, data / "words/analogies.txt.xz"),
        "sts_dev": sentence_similarity(words, dev, fitted_on=train),
        "sts_train": sentence_similarity(words, train, fitted_on=train),
    }


def word_similarity(words: WordVectors, folder: Path) -> dict[str, float]:
    """Spearman's correlation of cosines with people's scores, over the pairs whose words are both known.

    Returns:
        One figure a file, their ``mean``, and ``coverage``, the share of all pairs that were known.

    Raises:
        ConfigError: The folder holds no ``EN-*.txt`` file.
    """
    files = sorted(folder.glob("EN-*.txt"))
    if not files:
        raise ConfigError(f"similarity sets must be {folder}/EN-*.txt, got no such file")
    result: dict[str, float] = {}
    num_pairs = num_known = 0
    for path in files:
        lines = [line.split() for line in _lowered(path)]
        rows = np.array([words.vocabulary.rows(line[:2]) for line in lines])
        gold = np.array([float(line[2]) for line in lines])
        known = np.asarray((rows < len(words)).all(axis=1))
        units = words.unit_vectors[rows[known]]  # [N, 2, D]
        result[path.stem.removeprefix("EN-")] = float(spearmanr((units[:, 0] * units[:, 1]).sum(1), gold[known])[0])
        num_pairs += len(known)
        num_known += int(known.sum())
    return {**result, "mean": float(np.mean(list(result.values()))), "coverage": num_known / num_pairs}


def analogy_accuracy(words: WordVectors, path: Path) -> dict[str, float]:
    """Share of questions "a is to b as c is to ?" whose answer is the word nearest to ``b - a + c``.

    The question's own words are no answers; questions with an unknown word are left out.

    Returns:
        ``semantic``, ``syntactic`` (sections ``gram...``), ``all``, and ``coverage``.
    """
    questions: list[NDArray[np.int64]] = []
    is_syntactic: list[bool] = []
    syntactic = False
    for line in _lowered(path):
        if line.startswith(":"):
            syntactic = line.removeprefix(":").strip().startswith("gram")
        elif line:
            questions.append(words.vocabulary.rows(line.split()))
            is_syntactic.append(syntactic)
    rows = np.array(questions)
    known = np.asarray((rows < len(words)).all(axis=1))
    rows, kind = rows[known], np.array(is_syntactic)[known]
    right = np.concatenate(
        [_answered(words, rows[i : i + _ANALOGY_BLOCK]) for i in range(0, len(rows), _ANALOGY_BLOCK)]
    )
    return {
        "semantic": float(right[~kind].mean()),
        "syntactic": float(right[kind].mean()),
        "all": float(right.mean()),
        "coverage": float(known.mean()),
    }


def _answered(words: WordVectors, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    units = words.unit_vectors
    scores = (units[rows[:, 1]] - units[rows[:, 0]] + units[rows[:, 2]]) @ units.T  # [N, V]
    np.put_along_axis(scores, rows[:, :3], -np.inf, axis=1)
    return np.asarray(scores.argmax(axis=1) == rows[:, 3])


def sentence_similarity(words: WordVectors, pairs: SentencePairs, *, fitted_on: SentencePairs) -> dict[str, float]:
    """Pearson's correlation of cosines of sentence averages with people's scores.

    Args:
        words: The vectors.
        pairs: What to score.
        fitted_on: Sentences whose first principal component SIF removes.

    Returns:
        ``average``, ``probability_average`` (weights alpha / (alpha + p(w)), alpha 1e-4) and ``sif`` (the same less
        the first principal component), each also as ``..._low`` over the pairs scored below the median.
    """
    weights = _SIF_ALPHA / (_SIF_ALPHA + words.vocabulary.probabilities)
    ones = np.ones_like(weights)
    fitted = _averages(words, [*fitted_on.first, *fitted_on.second], weights)
    component = np.linalg.svd(fitted, full_matrices=False)[2][:1]  # [1, D]
    low = pairs.scores < np.median(pairs.scores)
    result: dict[str, float] = {}
    for method in ("average", "probability_average", "sif"):
        both = [
            _averages(words, sentences, ones if method == "average" else weights)
            for sentences in (pairs.first, pairs.second)
        ]
        if method == "sif":
            both = [averages - averages @ component.T @ component for averages in both]
        cosines = (unit_rows(both[0]) * unit_rows(both[1])).sum(axis=1)
        result[method] = float(pearsonr(cosines, pairs.scores)[0])
        result[f"{method}_low"] = float(pearsonr(cosines[low], pairs.scores[low])[0])
    return result


def _averages(
    words: WordVectors, sentences: Sequence[NDArray[np.int64]], weights: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Weighted averages of unit word vectors, ``[N, D]``; zero for a sentence without a known word."""
    result = np.zeros((len(sentences), words.dim), dtype=np.float32)
    for row, rows in enumerate(sentences):
        if len(rows):
            result[row] = weights[rows] @ words.unit_vectors[rows] / len(rows)
    return result


def _known_rows(texts: Sequence[str], vocabulary: Vocabulary, tokenizer: Tokenizer) -> tuple[NDArray[np.int64], ...]:
    tokens = tokenizer.words(texts)
    return tuple(
        vocabulary.rows([word for word in words if word in vocabulary and any(map(str.isalnum, word))])
        for words in tokens
    )


def _lowered(path: Path) -> list[str]:
    return [line.lower() for _, line in read_lines(path)]
