"""Entailment of sentence patterns (the paper's table 3.7, and Levy and Holt's pairs).

Shape suffixes: P pairs.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, precision_recall_curve

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.relations.engine import RelationEngine
from facets.relations.entailment import label_probabilities
from facets.relations.entailment_features import PairFeatures, word_features
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2, tokenize_patterns
from facets.relations.thresholds import EntailmentWeights
from facets_lab.evaluation.comparison import Embed, EvaluationTask, System, if_installed, minilm
from facets_lab.evaluation.files import read_lines
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.relations.evaluation import load_relation_models

LABELS = (">", "<", ":", "N")
_CONTRADICTION = "!"  # counts as neither here: the evaluation is about what follows
# By whether the second triple entails the first.
_FOLLOWS = {"True": (">", ":"), "False": ("<", "N")}
_PLURAL = re.compile("(ies|es|s|y|e)$")
_DETERMINERS = frozenset("the a an this that these those some any his her its their our my your of in".split())


@dataclass(frozen=True, slots=True)
class EntailmentData:
    """Candidate pairs.

    Attributes:
        premises: The specific pattern of each pair.
        hypotheses: The general one.
        possible: Which of ``LABELS`` each may have, ``[P, 4]``: ``>`` the premise entails the hypothesis, ``<`` the
            reverse, ``:`` paraphrase, ``N`` neither. One where both directions were judged, else two.
        frequencies: Entity pairs of premise and hypothesis, ``[P, 2]``; 0 where the file does not say.
        is_judged_one_way: Each row was judged in one direction, whether the premise entails the hypothesis, and that
            is what average precision is about; else it is about entailment in either direction that is no paraphrase.
    """

    premises: list[str]
    hypotheses: list[str]
    possible: NDArray[np.bool_]
    frequencies: NDArray[np.float64]
    is_judged_one_way: bool

    @property
    def directions(self) -> NDArray[np.int64]:
        """1 for ``>``, -1 for ``<``, 0 where there is no entailment, or paraphrase, or it is not known; ``[P]``."""
        is_known_P = self.possible.sum(axis=1) == 1
        return np.where(is_known_P & self.possible[:, 0], 1, np.where(is_known_P & self.possible[:, 1], -1, 0))

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """What average precision counts as found, ``[P]``."""
        return ~self.possible[:, 3] & ~self.possible[:, 1] if self.is_judged_one_way else self.directions != 0

    @property
    def hypernyms(self) -> list[str]:
        """The words of each hypothesis that its premise does not have; direction is averaged over these."""
        return [
            " ".join(word for word in hypothesis.split() if word not in premise.split())
            for premise, hypothesis in zip(self.premises, self.hypotheses, strict=True)
        ]


def read_entailment(path: Path) -> EntailmentData:
    """Reads one of two formats; the first line says which.

    ``label (> < : N)<TAB>specific<TAB>general<TAB>frequency<TAB>frequency`` has two patterns and both directions.
    ``triple<TAB>triple<TAB>True or False`` says whether the second triple entails the first; a triple is ``entity,
    words, entity``. Its patterns: the words of the first one between ``$ARG1`` and ``$ARG2``; those of the second too,
    or between ``$ARG2`` and ``$ARG1`` where the entity that both share stands on the other side. The other entity of
    one of them is a word for its kind (``person``, ``material``). Where a file has a pair both ways round, both
    judgements make the label.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    lines = [(where, line.split("\t")) for where, line in read_lines(path) if line.strip()]
    is_judged_one_way = bool(lines) and len(lines[0][1]) == 3
    read = _triples if is_judged_one_way else _labelled
    rows = [read(where, parts) for where, parts in lines]
    data = EntailmentData(
        [premise for premise, _, _, _ in rows],
        [hypothesis for _, hypothesis, _, _ in rows],
        np.array([[label in labels for label in LABELS] for _, _, labels, _ in rows], dtype=bool).reshape(-1, 4),
        np.array([frequencies for *_, frequencies in rows], dtype=np.float64).reshape(-1, 2),
        is_judged_one_way,
    )
    if is_judged_one_way:
        _combine_directions(data)
    if not data.relevant.any():
        raise InvalidInputError(f"{path} must have a pair with entailment, got none in {len(rows)} rows")
    return data


_Row = tuple[str, str, tuple[str, ...], tuple[float, float]]


def _labelled(where: str, parts: list[str]) -> _Row:
    if len(parts) != 5 or parts[0] not in (*LABELS, _CONTRADICTION) or not (parts[3].isdigit() and parts[4].isdigit()):
        got = "\t".join(parts)[:80]
        raise InvalidInputError(
            f"{where}: expected label (> < : N !)<TAB>pattern<TAB>pattern<TAB>frequency<TAB>frequency, got {got!r}"
        )
    for pattern in parts[1:3]:
        if pattern.count(ARG1) != 1 or pattern.count(ARG2) != 1:
            raise InvalidInputError(f"{where}: expected {ARG1} and {ARG2} once in each pattern, got {pattern!r}")
    label = "N" if parts[0] == _CONTRADICTION else parts[0]
    return parts[1], parts[2], (label,), (float(parts[3]), float(parts[4]))


def _triples(where: str, parts: list[str]) -> _Row:
    triples = [[field.strip() for field in part.split(",")] for part in parts[:2]]
    if len(parts) != 3 or parts[2] not in _FOLLOWS or any(len(t) != 3 or not all(t) for t in triples):
        got = "\t".join(parts)[:80]
        raise InvalidInputError(
            f"{where}: expected entity, words, entity<TAB>entity, words, entity<TAB>True or False, got {got!r}"
        )
    first, second = triples
    straight = _likeness(first[0], second[0]) + _likeness(first[2], second[2])
    crossed = _likeness(first[0], second[2]) + _likeness(first[2], second[0])
    premise = f"{ARG2} {second[1]} {ARG1}" if crossed > straight else f"{ARG1} {second[1]} {ARG2}"
    return premise, f"{ARG1} {first[1]} {ARG2}", _FOLLOWS[parts[2]], (0.0, 0.0)


def _likeness(entity: str, other: str) -> float:
    """Share of the words of the shorter one that both have: ``medicine``, ``these medicines``."""
    first, second = ({_PLURAL.sub("", word) for word in name.lower().split()} for name in (entity, other))
    first, second = first - _DETERMINERS, second - _DETERMINERS
    return len(first & second) / max(1, min(len(first), len(second)))


def _combine_directions(data: EntailmentData) -> None:
    """Leaves one label where a pair stands in the file both ways round: the second row's is read backwards."""
    keys = [(_ordered(p, h), _ordered(h, p)) for p, h in zip(data.premises, data.hypotheses, strict=True)]
    judged = {own: possible.copy() for (own, _), possible in zip(keys, data.possible, strict=True)}
    for place, (_, reverse) in enumerate(keys):
        if reverse in judged:
            both = data.possible[place] & judged[reverse][[1, 0, 2, 3]]
            if both.any():
                data.possible[place] = both


def _ordered(premise: str, hypothesis: str) -> tuple[str, str]:
    """The same for a pair and the pair with all arguments exchanged."""
    if premise.index(ARG1) < premise.index(ARG2):
        return premise, hypothesis
    exchange = {ARG1: ARG2, ARG2: ARG1}
    first, second = (" ".join(exchange.get(word, word) for word in text.split()) for text in (premise, hypothesis))
    return first, second


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


EntailmentSystem = System[EntailmentData, PairScores]


def weighed(features: PairFeatures, weights: EntailmentWeights) -> PairScores:
    """Scores by the probabilities of the labels."""
    entails_P, entailed_by_P, paraphrase_P, _ = label_probabilities(features, weights).T
    return PairScores(entails_P + entailed_by_P, entails_P + paraphrase_P, entails_P - entailed_by_P)


def by_facets(model: RelationModel) -> EntailmentSystem:
    """A relation model: all features weighed; the asymmetric scores of its facets alone.

    Methods are ``asymmetric`` (what the model answers), ``asymmetric_plain`` (eq. 3.10 alone), and with frequencies.
    """
    engine, weights = RelationEngine(model), model.relations.confidence.entailment

    def methods(data: EntailmentData) -> dict[str, PairScores]:
        features = engine.entailment_features(data.premises, data.hypotheses)
        answers = weighed(features, weights)
        forward, backward = features.column("coverage")
        found = {"asymmetric": answers, "asymmetric_plain": PairScores(forward, forward, forward - backward)}
        if data.frequencies.any():
            difference = data.frequencies[:, 1] - data.frequencies[:, 0]
            found["asymmetric+frequency"] = PairScores(
                _ranks(answers.one_sided) + _ranks(difference),
                _ranks(answers.follows) + _ranks(difference),
                _ranks_signed(answers.directions) + _ranks_signed(difference),
            )
        return found

    return EntailmentSystem(model.name, methods)


def by_frequency(model: RelationModel, data: EntailmentData) -> dict[str, PairScores]:
    """The general pattern occurs with more entity pairs: in the file, or in the training of a model.

    The difference is score and direction.
    """

    def counts(patterns: Sequence[str]) -> NDArray[np.float64]:
        """Entity pairs that each pattern was seen with in training, 0 for one that was not."""
        rows = model.table.find(tokenize_patterns(patterns, model.tokenizer))
        return np.where(rows >= 0, model.table.counts[rows], 0).astype(np.float64)

    if data.frequencies.any():
        difference = data.frequencies[:, 1] - data.frequencies[:, 0]
    else:
        difference = counts(data.hypotheses) - counts(data.premises)
    return {"frequency_difference": PairScores(difference, difference, difference)}


def by_chance(data: EntailmentData) -> dict[str, PairScores]:
    """Seeded scores, no direction."""
    scores = np.random.default_rng(_SEED).random(len(data.premises))
    return {"random": PairScores(scores, scores, np.zeros(len(scores)))}


def by_cosine(embed: Embed, data: EntailmentData) -> dict[str, PairScores]:
    """Cosine of embeddings of the patterns with X and Y as arguments; it has no direction."""
    first, second = (
        unit_rows(embed([text.replace(ARG1, "X").replace(ARG2, "Y") for text in side]))
        for side in (data.premises, data.hypotheses)
    )
    cosines = (first * second).sum(axis=1).astype(np.float64)
    return {"cosine": PairScores(cosines, cosines, np.zeros(len(cosines)))}


def by_wordnet(data: EntailmentData) -> dict[str, PairScores]:
    """WordNet without a model: a word of one side is a kind of one of the other, or the same."""
    tokens = ([tuple(text.split()) for text in side] for side in (data.premises, data.hypotheses))
    features = word_features(*tokens)
    forward, backward = features.column("hypernym")
    included, _ = features.column("included")
    return {"hypernyms": PairScores(np.maximum(forward, backward), included, forward - backward)}


def entailment_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[EntailmentSystem]:
    """The models; chance, the frequency difference, WordNet and MiniLM."""
    models = load_relation_models(names_or_paths, baselines)
    yield from map(by_facets, models)
    if baselines:
        yield EntailmentSystem("random", by_chance)
        yield EntailmentSystem("frequency", partial(by_frequency, models[0]))
        yield EntailmentSystem("wordnet", by_wordnet)
        yield from (EntailmentSystem("minilm", partial(by_cosine, embed)) for embed in if_installed("minilm", minilm))


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


ENTAILMENT = EvaluationTask(
    read=read_entailment,
    num_rows=lambda data: len(data.premises),
    systems=entailment_systems,
    evaluate=evaluate_entailment,
)
