"""Entailment of sentence patterns (the paper's table 3.7, and Levy and Holt's pairs).

Shape suffixes: P pairs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, precision_recall_curve

from facets.language.vectors import unit_rows
from facets.relations.engine import RelationEngine
from facets.relations.entailment import label_probabilities
from facets.relations.entailment_weights import EntailmentWeights
from facets.relations.model import RelationModel
from facets.relations.pair_features import PairFeatures, word_features
from facets.relations.patterns import ARG1, ARG2, tokenize_patterns
from facets_lab.evaluation.embedders import minilm
from facets_lab.evaluation.intervals import Metrics, with_intervals
from facets_lab.evaluation.systems import if_installed
from facets_lab.relations.evaluation.entailment_data import EntailmentData
from facets_lab.relations.evaluation.systems import load_relation_models

__all__ = [
    "EntailmentSystem",
    "PairScores",
    "average_precision_from",
    "entailment_systems",
    "evaluate_entailment",
    "pair_metrics",
    "weighed",
]

_SEED = 0
_LEAST_PRECISION = 0.5


@dataclass(frozen=True, slots=True)
class PairScores:
    """What a method says of pairs, ``[P]`` each.

    Attributes:
        one_sided: Ranks by entailment in either direction that is no paraphrase.
        follows: Ranks by "the premise entails the hypothesis", paraphrases included.
        directions: Above 0: the premise is the specific one.
    """

    one_sided: NDArray[np.float64]
    follows: NDArray[np.float64]
    directions: NDArray[np.float64]


class EntailmentSystem(Protocol):
    """Something that scores pairs."""

    name: str

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """Scores by method."""
        ...


def weighed(features: PairFeatures, weights: EntailmentWeights) -> PairScores:
    """Scores by the probabilities of the labels."""
    entails_P, entailed_by_P, paraphrase_P, _ = label_probabilities(features, weights).T
    return PairScores(entails_P + entailed_by_P, entails_P + paraphrase_P, entails_P - entailed_by_P)


class FacetEntailment:
    """A relation model: all features weighed; the asymmetric scores of its facets alone."""

    def __init__(self, model: RelationModel) -> None:
        self.name = model.name
        self._model = model
        self._engine = RelationEngine(model)

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """``asymmetric`` (what the model answers), ``asymmetric_plain`` (eq. 3.10 alone), and with frequencies."""
        features = self._engine.entailment_features(data.premises, data.hypotheses)
        answers = weighed(features, self._model.relations.confidence.entailment)
        forward, backward = features.column("coverage")
        found = {
            "asymmetric": answers,
            "asymmetric_plain": PairScores(forward, forward, forward - backward),
        }
        if data.frequencies.any():
            difference = data.frequencies[:, 1] - data.frequencies[:, 0]
            found["asymmetric+frequency"] = PairScores(
                _ranks(answers.one_sided) + _ranks(difference),
                _ranks(answers.follows) + _ranks(difference),
                _ranks_signed(answers.directions) + _ranks_signed(difference),
            )
        return found


class FrequencyDifference:
    """The general pattern occurs with more entity pairs: in the file, or in the training of a model."""

    name = "frequency"

    def __init__(self, model: RelationModel) -> None:
        self._model = model

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """``frequency_difference``: as score and as direction."""
        if data.frequencies.any():
            difference = data.frequencies[:, 1] - data.frequencies[:, 0]
        else:
            difference = self._counts(data.hypotheses) - self._counts(data.premises)
        return {"frequency_difference": PairScores(difference, difference, difference)}

    def _counts(self, patterns: Sequence[str]) -> NDArray[np.float64]:
        """Entity pairs that each pattern was seen with in training, 0 for one that was not."""
        table = self._model.table
        rows = table.find(tokenize_patterns(patterns, self._model.tokenizer))
        return np.where(rows >= 0, table.counts[rows], 0).astype(np.float64)


class RandomScores:
    """Chance."""

    name = "random"

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """Seeded scores, no direction."""
        scores = np.random.default_rng(_SEED).random(len(data.premises))
        return {"random": PairScores(scores, scores, np.zeros(len(scores)))}


class MiniLmCosine:
    """Cosine of MiniLM embeddings of the patterns with X and Y as arguments; it has no direction."""

    def __init__(self) -> None:
        self.name = "minilm"
        self._embed = minilm()

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """``cosine``."""
        first, second = (
            unit_rows(self._embed([text.replace(ARG1, "X").replace(ARG2, "Y") for text in side]))
            for side in (data.premises, data.hypotheses)
        )
        cosines = (first * second).sum(axis=1).astype(np.float64)
        return {"cosine": PairScores(cosines, cosines, np.zeros(len(cosines)))}


class WordNetAlone:
    """WordNet without a model: a word of one side is a kind of one of the other, or the same."""

    name = "wordnet"

    def methods(self, data: EntailmentData) -> dict[str, PairScores]:
        """``hypernyms``."""
        tokens = ([tuple(text.split()) for text in side] for side in (data.premises, data.hypotheses))
        features = word_features(*tokens)
        forward, backward = features.column("hypernym")
        included, _ = features.column("included")
        return {"hypernyms": PairScores(np.maximum(forward, backward), included, forward - backward)}


def entailment_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[EntailmentSystem]:
    """The models; chance, the frequency difference, WordNet and MiniLM."""
    models = load_relation_models(names_or_paths, baselines)
    yield from map(FacetEntailment, models)
    if baselines:
        yield RandomScores()
        yield FrequencyDifference(models[0])
        yield WordNetAlone()
        yield from if_installed("minilm", MiniLmCosine)


def evaluate_entailment(
    system: EntailmentSystem, data: EntailmentData, *, num_resamples: int = 0
) -> dict[str, Metrics]:
    """Average precision among all pairs with its base rate, and accuracy of the direction among those with one.

    Relevant is, by the form of the file, what is entailed in either direction and no paraphrase, or each row whose
    premise entails its hypothesis. A direction of 0 is half right.
    """
    return {
        method: pair_metrics(scores, data, num_resamples=num_resamples)
        for method, scores in system.methods(data).items()
    }


def pair_metrics(scores: PairScores, data: EntailmentData, *, num_resamples: int = 0) -> Metrics:
    """Metrics of one method, see ``evaluate_entailment``."""
    ranking = scores.follows if data.is_judged_one_way else scores.one_sided
    columns = (ranking, scores.directions, data.relevant, data.directions, np.array(data.hypernyms))
    return with_intervals(_metrics, *columns, num_resamples=num_resamples)


def average_precision_from(relevant_P: NDArray[np.bool_], scores_P: NDArray[np.float64]) -> float:
    """Area under the curve of precision over recall where precision is above 0.5; in steps, as average precision.

    Example:
        >>> average_precision_from(np.array([True, False, False, True]), np.array([0.9, 0.5, 0.4, 0.3]))
        0.5
    """
    precision, recall, _ = precision_recall_curve(relevant_P, scores_P)
    return float((-np.diff(recall) * precision[:-1] * (precision[:-1] > _LEAST_PRECISION)).sum())


def _metrics(
    scores_P: NDArray[np.float64],
    directions_P: NDArray[np.float64],
    relevant_P: NDArray[np.bool_],
    gold_P: NDArray[np.int64],
    hypernyms_P: NDArray[np.str_],
) -> Metrics:
    metrics: Metrics = dict.fromkeys(("ap", "auc_50", "micro_accuracy", "macro_accuracy"))
    metrics["base_rate"] = float(relevant_P.mean())
    if relevant_P.any():
        metrics["ap"] = float(average_precision_score(relevant_P, scores_P))
        metrics["auc_50"] = average_precision_from(relevant_P, scores_P)
    directed = gold_P != 0
    if directed.any():
        right = (np.sign(directions_P[directed]) * gold_P[directed] + 1) / 2
        by_hypernym = defaultdict(list)
        for hypernym, value in zip(hypernyms_P[directed], right, strict=True):
            by_hypernym[str(hypernym)].append(float(value))
        metrics["micro_accuracy"] = float(right.mean())
        metrics["macro_accuracy"] = float(np.mean([np.mean(values) for values in by_hypernym.values()]))
    return metrics


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of values below each, ties in the middle, in [0, 1]."""
    ranks: NDArray[np.float64] = (rankdata(values) - 0.5) / len(values)
    return ranks


def _ranks_signed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of magnitudes with the sign of the values, so that 0 stays the border."""
    signed: NDArray[np.float64] = np.sign(values) * _ranks(np.abs(values))
    return signed
