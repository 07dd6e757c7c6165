"""Entailment of sentence patterns (the paper's table 3.7).

Shape suffixes: P pairs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from facets.errors import InvalidInputError
from facets.evaluation.embedders import minilm
from facets.evaluation.files import read_lines
from facets.evaluation.intervals import Metrics, with_intervals
from facets.evaluation.systems import if_installed
from facets.relations.engine import RelationEngine
from facets.relations.entailment import label_probabilities
from facets.relations.evaluation.systems import load_relation_models
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2
from facets.words.vectors import unit_rows

__all__ = ["EntailmentData", "EntailmentSystem", "entailment_systems", "evaluate_entailment", "read_entailment"]

_LABELS = (">", "<", ":", "N")
_SEED = 0


@dataclass(frozen=True, slots=True)
class EntailmentData:
    """Candidate pairs.

    Attributes:
        premises: The specific pattern of each pair.
        hypotheses: The general one.
        labels: ``>`` the premise entails the hypothesis, ``<`` the reverse, ``:`` paraphrase, ``N`` neither.
        frequencies: Entity pairs of premise and hypothesis, ``[P, 2]``.
    """

    premises: list[str]
    hypotheses: list[str]
    labels: list[str]
    frequencies: NDArray[np.float64]

    @property
    def directions(self) -> NDArray[np.int64]:
        """1 for ``>``, -1 for ``<``, 0 where there is no entailment; ``[P]``."""
        return np.array([{">": 1, "<": -1}.get(label, 0) for label in self.labels])

    @property
    def hypernyms(self) -> list[str]:
        """The words of each hypothesis that its premise does not have; direction is averaged over these."""
        return [
            " ".join(word for word in hypothesis.split() if word not in premise.split())
            for premise, hypothesis in zip(self.premises, self.hypotheses, strict=True)
        ]


class EntailmentSystem(Protocol):
    """Something that scores pairs."""

    name: str

    def methods(self, data: EntailmentData) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """By method: score of "the premise entails the hypothesis", and direction, above 0: the premise is specific."""
        ...


def read_entailment(path: Path) -> EntailmentData:
    """Reads ``label<TAB>specific<TAB>general<TAB>frequency<TAB>frequency``.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    data = EntailmentData([], [], [], np.empty((0, 2)))
    frequencies = []
    for where, line in read_lines(path):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 5 or parts[0] not in _LABELS or not (parts[3].isdigit() and parts[4].isdigit()):
            raise InvalidInputError(
                f"{where}: expected label (> < : N)<TAB>pattern<TAB>pattern<TAB>frequency<TAB>frequency, "
                f"got {line[:80]!r}"
            )
        for pattern in parts[1:3]:
            if pattern.count(ARG1) != 1 or pattern.count(ARG2) != 1:
                raise InvalidInputError(f"{where}: expected {ARG1} and {ARG2} once in each pattern, got {pattern!r}")
        data.labels.append(parts[0])
        data.premises.append(parts[1])
        data.hypotheses.append(parts[2])
        frequencies.append((float(parts[3]), float(parts[4])))
    if not any(data.directions):
        raise InvalidInputError(f"{path} must have a pair with entailment, got none in {len(data.labels)} rows")
    return EntailmentData(data.premises, data.hypotheses, data.labels, np.array(frequencies))


class FacetEntailment:
    """A relation model: asymmetric scores of the facets."""

    def __init__(self, model: RelationModel) -> None:
        self.name = model.name
        self._model = model
        self._engine = RelationEngine(model)

    def methods(self, data: EntailmentData) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """``asymmetric`` (calibrated), ``asymmetric_plain`` (eq. 3.10 alone), and with the frequency difference."""
        arrays = self._engine.entailment_scores(data.premises, data.hypotheses)
        probabilities = label_probabilities(arrays, self._model.relations.confidence)
        # Which of the two entails the other is the direction's question.
        scores, directions = probabilities[:, 0] + probabilities[:, 1], probabilities[:, 0] - probabilities[:, 1]
        plain = arrays.forward.astype(np.float64)
        difference = data.frequencies[:, 1] - data.frequencies[:, 0]
        both = _ranks(scores) + _ranks(difference)
        return {
            "asymmetric": (scores, directions),
            "asymmetric_plain": (plain, plain - arrays.backward),
            "asymmetric+frequency": (both, _ranks_signed(directions) + _ranks_signed(difference)),
        }


class FrequencyDifference:
    """The general pattern occurs with more entity pairs."""

    name = "frequency"

    def methods(self, data: EntailmentData) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """``frequency_difference``: as score and as direction."""
        difference = data.frequencies[:, 1] - data.frequencies[:, 0]
        return {"frequency_difference": (difference, difference)}


class RandomScores:
    """Chance."""

    name = "random"

    def methods(self, data: EntailmentData) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Seeded scores, no direction."""
        scores = np.random.default_rng(_SEED).random(len(data.labels))
        return {"random": (scores, np.zeros(len(data.labels)))}


class MiniLmCosine:
    """Cosine of MiniLM embeddings of the patterns; it has no direction."""

    def __init__(self) -> None:
        self.name = "minilm"
        self._embed = minilm()

    def methods(self, data: EntailmentData) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """``cosine``."""
        first, second = unit_rows(self._embed(data.premises)), unit_rows(self._embed(data.hypotheses))
        return {"cosine": ((first * second).sum(axis=1).astype(np.float64), np.zeros(len(data.labels)))}


def entailment_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[EntailmentSystem]:
    """The models; chance, the frequency difference and MiniLM."""
    yield from map(FacetEntailment, load_relation_models(names_or_paths, baselines))
    if baselines:
        yield RandomScores()
        yield FrequencyDifference()
        yield from if_installed("minilm", MiniLmCosine)


def evaluate_entailment(
    system: EntailmentSystem, data: EntailmentData, *, num_resamples: int = 0
) -> dict[str, Metrics]:
    """Average precision of entailment among all pairs, and accuracy of the direction among those with entailment.

    A direction of 0 is half right. Paraphrases and unrelated pairs are the negatives.
    """
    hypernyms = np.array(data.hypernyms)
    return {
        method: with_intervals(_metrics, scores, directions, data.directions, hypernyms, num_resamples=num_resamples)
        for method, (scores, directions) in system.methods(data).items()
    }


def _metrics(
    scores_P: NDArray[np.float64],
    directions_P: NDArray[np.float64],
    gold_P: NDArray[np.int64],
    hypernyms_P: NDArray[np.str_],
) -> Metrics:
    entailed = gold_P != 0
    if not entailed.any():
        return {"ap": None, "micro_accuracy": None, "macro_accuracy": None}
    right = (np.sign(directions_P[entailed]) * gold_P[entailed] + 1) / 2
    by_hypernym = defaultdict(list)
    for hypernym, value in zip(hypernyms_P[entailed], right, strict=True):
        by_hypernym[str(hypernym)].append(float(value))
    return {
        "ap": float(average_precision_score(entailed, scores_P)),
        "micro_accuracy": float(right.mean()),
        "macro_accuracy": float(np.mean([np.mean(values) for values in by_hypernym.values()])),
    }


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of values below each, ties in the middle, in [0, 1]."""
    ranks: NDArray[np.float64] = (rankdata(values) - 0.5) / len(values)
    return ranks


def _ranks_signed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of magnitudes with the sign of the values, so that 0 stays the border."""
    signed: NDArray[np.float64] = np.sign(values) * _ranks(np.abs(values))
    return signed
