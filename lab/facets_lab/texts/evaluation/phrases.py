"""Phrases and the words that mean the same (Chang 2022, section 3.2.2.5, table 3.4).

Shape suffixes: P pairs, C choices, N candidates.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets_lab.evaluation.files import fields_of, read_lines
from facets_lab.evaluation.intervals import Metrics, with_intervals
from facets_lab.texts.evaluation.pair_systems import PairSystem

__all__ = [
    "LabelledPairs",
    "PhraseChoices",
    "choice_accuracy",
    "evaluate_phrase_choice",
    "evaluate_phrase_pairs",
    "precision_recall",
    "read_phrase_choices",
    "read_phrase_pairs",
]

_NUM_DISTRACTORS = 4
# Scores this close are a tie: rounding depends on the batch a text is computed in.
_SAME_SCORE = 1e-5


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Phrases and words, alike or not."""

    is_alike: NDArray[np.bool_]  # [P]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PhraseChoices:
    """Phrases of two words, each with five words of which the first means the same."""

    phrases: tuple[tuple[str, str], ...]  # the two words of each
    candidates: tuple[tuple[str, ...], ...]


def read_phrase_pairs(path: Path) -> LabelledPairs:
    """Reads ``0|1<TAB>phrase<TAB>word`` lines.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none of one label; the message names file and line.
    """
    labels, pairs = [], []
    for place, line in read_lines(path):
        label, phrase, word = fields_of(line, ("label", "phrase", "word"), place)
        if label not in ("0", "1"):
            raise InvalidInputError(f"{place}: expected the label 0 or 1, got {label[:40]!r}")
        labels.append(label == "1")
        pairs.append((phrase, word))
    if len(set(labels)) != 2:
        raise InvalidInputError(f"{path}: expected lines of both labels, 0 and 1, got {len(labels)} lines")
    return LabelledPairs(np.array(labels), tuple(pairs))


def read_phrase_choices(path: Path) -> PhraseChoices:
    """Reads ``phrase<TAB>answer<TAB>first word<TAB>second word`` and four distractors, eight fields a line.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    names = ("phrase", "answer", "first word", "second word", *(f"distractor {i + 1}" for i in range(_NUM_DISTRACTORS)))
    phrases, candidates = [], []
    for place, line in read_lines(path):
        phrase, answer, first, second, *distractors = fields_of(line, names, place)
        if phrase.split() != [*first.split(), *second.split()]:
            raise InvalidInputError(f"{place}: expected the phrase's own two words, got {first!r}, {second!r}")
        if answer in distractors:
            raise InvalidInputError(f"{place}: expected distractors other than the answer, got {answer!r}")
        phrases.append((first, second))
        candidates.append((answer, *distractors))
    if not phrases:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return PhraseChoices(tuple(phrases), tuple(candidates))


def evaluate_phrase_pairs(system: PairSystem, data: LabelledPairs, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """``precision_recall`` of every method of a system, with intervals when there are resamples."""
    return {
        method: with_intervals(precision_recall, scores_P, data.is_alike, num_resamples=num_resamples)
        for method, scores_P in system.scores(data.pairs)
    }


def evaluate_phrase_choice(system: PairSystem, data: PhraseChoices, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """Accuracies of every method of a system.

    Turney's questions have seven candidates, two of which are the phrase's own words. As in table 3.4 those are left
    out: ``accuracy_5`` compares the answer with the four distractors, ``accuracy_10`` also with the pairs of the
    reversed phrase and the same five words, so that the order of the words matters.

    Args:
        system: What scores.
        data: The questions.
        num_resamples: See ``with_intervals``.

    Returns:
        ``accuracy_5`` and ``accuracy_10``, in ``[0, 1]``, of each method.

    References:
        Turney 2012; Yu and Dredze 2015; Chang 2022, section 3.2.2.5.
    """
    pairs = [
        (phrase, candidate)
        for (first, second), candidates in zip(data.phrases, data.candidates, strict=True)
        for phrase in (f"{first} {second}", f"{second} {first}")
        for candidate in candidates
    ]
    result = {}
    for method, scores in system.scores(pairs):
        scores_CN = scores.reshape(len(data.phrases), 2 * (1 + _NUM_DISTRACTORS))
        right_5_C = choice_accuracy(scores_CN[:, : 1 + _NUM_DISTRACTORS])
        right_10_C = choice_accuracy(scores_CN)
        result[method] = with_intervals(_accuracies, right_5_C, right_10_C, num_resamples=num_resamples)
    return result


def precision_recall(scores_P: NDArray[np.floating], is_alike_P: NDArray[np.bool_]) -> Metrics:
    """Area under the precision-recall curve, and the best F1 of any threshold.

    Args:
        scores_P: Higher is more alike, ``[P]``.
        is_alike_P: What people say, ``[P]``.

    Returns:
        ``auc`` (by the trapezoidal rule) and ``f1``, in ``[0, 1]``; None when no pair is alike.

    Raises:
        ImportError: scikit-learn is not installed.

    References:
        Chang 2022, table 3.4.
    """
    from sklearn.metrics import auc, precision_recall_curve

    if not is_alike_P.any():
        return {"auc": None, "f1": None}
    precision, recall, _ = precision_recall_curve(is_alike_P, scores_P)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return {"auc": float(auc(recall, precision)), "f1": float(f1.max())}


def choice_accuracy(scores_CN: NDArray[np.floating]) -> NDArray[np.float64]:
    """Which questions are answered rightly.

    Args:
        scores_CN: Scores of the candidates, the right one first, ``[C, N]``.

    Returns:
        ``[C]``: 1 when the first is best, 0 when another is; when n are best together, 1/n if the first is one of
        them: what guessing among them gives.

    Example:
        >>> choice_accuracy(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])).tolist()
        [1.0, 0.0, 0.5]
    """
    is_best_CN = scores_CN >= scores_CN.max(axis=1, keepdims=True) - _SAME_SCORE
    return is_best_CN[:, 0] / is_best_CN.sum(axis=1)


def _accuracies(right_5_C: NDArray[np.float64], right_10_C: NDArray[np.float64]) -> Metrics:
    return {"accuracy_5": float(right_5_C.mean()), "accuracy_10": float(right_10_C.mean())}
