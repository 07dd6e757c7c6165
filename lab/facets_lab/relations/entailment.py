"""Evaluates entailment of patterns (Chang 2022, table 3.7, and the pairs of Levy and Holt).

Shape suffixes: P pairs.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from facets.arrays import Bools, Doubles, Ints
from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.relations.entailment import background_facets, label_probabilities, pair_features, tokenize_pairs
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2
from facets_lab.evaluation.comparison import Embed, Report, if_installed, make_report, minilm
from facets_lab.evaluation.files import read_lines
from facets_lab.evaluation.options import Baselines, Bootstrap, DataFile, Models
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.relations.evaluation import load_relation_models, mirror

LABELS = (">", "<", ":", "N")
_CONTRADICTION = "!"  # counts as N: the evaluation concerns only entailment
_POSSIBLE_LABELS = {"True": (">", ":"), "False": ("<", "N")}  # by whether the second triple entails the first
_ENDING = re.compile("(ies|es|s|y|e)$")
_DETERMINERS = frozenset("the a an this that these those some any his her its their our my your of in".split())


@dataclass(frozen=True, slots=True)
class EntailmentData:
    """Candidate pairs of patterns."""

    premises: list[str]  # the specific pattern of each pair
    hypotheses: list[str]  # the general one
    # possible LABELS, [P, 4]: > the premise entails the hypothesis, < the reverse, : paraphrase, N neither. One label
    # if both directions were judged, else two.
    possible: Bools
    # whether each row judges if the premise entails the hypothesis; average precision then measures that, otherwise
    # entailment in either direction that is not a paraphrase
    is_judged_one_way: bool

    @property
    def directions(self) -> Ints:
        """1 for ``>``, -1 for ``<``, 0 for other or unknown labels, ``[P]``."""
        is_known_P = self.possible.sum(axis=1) == 1
        return np.where(is_known_P & self.possible[:, 0], 1, np.where(is_known_P & self.possible[:, 1], -1, 0))

    @property
    def relevant(self) -> Bools:
        """What average precision counts as relevant, ``[P]``."""
        return ~self.possible[:, 3] & ~self.possible[:, 1] if self.is_judged_one_way else self.directions != 0

    @property
    def hypernyms(self) -> list[str]:
        """Words of each hypothesis that are not in its premise; the macro accuracy averages over these."""
        return [
            " ".join(word for word in hypothesis.split() if word not in premise.split())
            for premise, hypothesis in zip(self.premises, self.hypotheses, strict=True)
        ]


def read_entailment(path: Path) -> EntailmentData:
    """Reads one of the two formats of ``evaluate_entailment``, chosen by the first line.

    Arguments of triples are matched by the entity that both share. If a pair occurs in both directions, both judgements
    determine the label.
    """
    lines = [(place, line.split("\t")) for place, line in read_lines(path) if line.strip()]
    is_judged_one_way = bool(lines) and len(lines[0][1]) == 3
    parse = _parse_triples if is_judged_one_way else _parse_labelled
    rows = [parse(place, fields) for place, fields in lines]
    data = EntailmentData(
        [premise for premise, _, _ in rows],
        [hypothesis for _, hypothesis, _ in rows],
        np.array([[label in labels for label in LABELS] for _, _, labels in rows], dtype=bool).reshape(-1, 4),
        is_judged_one_way,
    )
    if is_judged_one_way:
        _combine_directions(data)
    if not data.relevant.any():
        raise InvalidInputError(f"{path} must have a pair with entailment, got none in {len(rows)} rows")
    return data


_Row = tuple[str, str, tuple[str, ...]]


def _parse_labelled(place: str, fields: list[str]) -> _Row:
    is_valid = len(fields) == 5 and fields[0] in (*LABELS, _CONTRADICTION) and all(map(str.isdigit, fields[3:]))
    if not is_valid:
        form = "label (> < : N !)<TAB>pattern<TAB>pattern<TAB>frequency<TAB>frequency"
        got = "\t".join(fields)[:80]
        raise InvalidInputError(f"{place}: expected {form}, got {got!r}")
    for pattern in fields[1:3]:
        if pattern.count(ARG1) != 1 or pattern.count(ARG2) != 1:
            raise InvalidInputError(f"{place}: expected {ARG1} and {ARG2} once in each pattern, got {pattern!r}")
    label = "N" if fields[0] == _CONTRADICTION else fields[0]
    return fields[1], fields[2], (label,)


def _parse_triples(place: str, fields: list[str]) -> _Row:
    triples = [[part.strip() for part in field.split(",")] for field in fields[:2]]
    if len(fields) != 3 or fields[2] not in _POSSIBLE_LABELS or any(len(t) != 3 or not all(t) for t in triples):
        form = "entity, words, entity<TAB>entity, words, entity<TAB>True or False"
        got = "\t".join(fields)[:80]
        raise InvalidInputError(f"{place}: expected {form}, got {got!r}")
    first, second = triples
    straight = _word_overlap(first[0], second[0]) + _word_overlap(first[2], second[2])
    crossed = _word_overlap(first[0], second[2]) + _word_overlap(first[2], second[0])
    premise = f"{ARG2} {second[1]} {ARG1}" if crossed > straight else f"{ARG1} {second[1]} {ARG2}"
    return premise, f"{ARG1} {first[1]} {ARG2}", _POSSIBLE_LABELS[fields[2]]


def _word_overlap(entity: str, other: str) -> float:
    """Share of the words of the shorter name that both names have, ignoring endings and determiners."""
    first, second = ({_ENDING.sub("", word) for word in name.lower().split()} for name in (entity, other))
    first, second = first - _DETERMINERS, second - _DETERMINERS
    return len(first & second) / max(1, min(len(first), len(second)))


def _combine_directions(data: EntailmentData) -> None:
    """Leaves one label for pairs that occur in both directions."""
    keys = [(_in_order(p, h), _in_order(h, p)) for p, h in zip(data.premises, data.hypotheses, strict=True)]
    judged = {key: possible.copy() for (key, _), possible in zip(keys, data.possible, strict=True)}
    for row, (_, reverse) in enumerate(keys):
        if reverse in judged:
            both = data.possible[row] & judged[reverse][[1, 0, 2, 3]]
            if both.any():
                data.possible[row] = both


def _in_order(premise: str, hypothesis: str) -> tuple[str, str]:
    """The same key for a pair and for the pair with all arguments exchanged."""
    if premise.index(ARG1) < premise.index(ARG2):
        return premise, hypothesis
    return mirror(premise), mirror(hypothesis)


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of pairs by one method, ``[P]`` each."""

    one_sided: Doubles  # ranks entailment in either direction that is not a paraphrase
    follows: Doubles  # ranks "the premise entails the hypothesis", paraphrases included
    directions: Doubles  # above 0: the premise is the specific one


def model_scores(model: RelationModel, data: EntailmentData) -> dict[str, PairScores]:
    """Scores ``asymmetric``, as the model answers, and ``asymmetric_plain``, by eq. 3.10 alone."""
    tokens = tokenize_pairs(model, data.premises, data.hypotheses)
    features = pair_features(model, *tokens, background_facets(model))
    weights = model.relations.confidence.entailment
    entails_P, entailed_by_P, paraphrase_P, _ = label_probabilities(features, weights).T
    forward, backward = features.column("coverage")
    return {
        "asymmetric": PairScores(entails_P + entailed_by_P, entails_P + paraphrase_P, entails_P - entailed_by_P),
        "asymmetric_plain": PairScores(forward, forward, forward - backward),
    }


def cosine_scores(embed: Embed, data: EntailmentData) -> dict[str, PairScores]:
    """Cosine of the patterns with X and Y as arguments; it has no direction."""
    first, second = (
        unit_rows(embed([text.replace(ARG1, "X").replace(ARG2, "Y") for text in side]))
        for side in (data.premises, data.hypotheses)
    )
    cosines = (first * second).sum(axis=1).astype(np.float64)
    return {"cosine": PairScores(cosines, cosines, np.zeros(len(cosines)))}


def evaluate_entailment(
    file: DataFile, names_or_paths: Models = None, *, baselines: Baselines = False, num_resamples: Bootstrap = 0
) -> Report:
    """Evaluate entailment. Tab-separated columns: label (> < : N), specific and general pattern, two frequencies.

    Or triple, triple, True or False: whether the second triple (entity, words, entity) entails the first.

    Example: facets-eval entailment entailment-dev.tsv --baselines
    """
    data = read_entailment(file)
    models = load_relation_models(names_or_paths, baselines)
    scored = [(model.name, model_scores(model, data)) for model in models]
    if baselines:
        scored += [("minilm", cosine_scores(embed, data)) for embed in if_installed("minilm", minilm)]
    measured = (
        (name, {m: pair_metrics(scores, data, num_resamples=num_resamples) for m, scores in methods.items()})
        for name, methods in scored
    )
    return make_report(file, len(data.premises), measured)


def pair_metrics(scores: PairScores, data: EntailmentData, *, num_resamples: int = 0) -> Metrics:
    """``ap``, its ``base_rate``, and the accuracy of known directions, where a prediction of 0 is half right."""
    ranking = scores.follows if data.is_judged_one_way else scores.one_sided
    columns = (ranking, scores.directions, data.relevant, data.directions, np.array(data.hypernyms))
    return with_intervals(_metrics, *columns, num_resamples=num_resamples)


def _metrics(
    scores_P: Doubles, directions_P: Doubles, relevant_P: Bools, gold_P: Ints, hypernyms_P: NDArray[np.str_]
) -> Metrics:
    metrics: Metrics = dict.fromkeys(("ap", "micro_accuracy", "macro_accuracy"))
    metrics["base_rate"] = float(relevant_P.mean())
    if relevant_P.any():
        metrics["ap"] = float(average_precision_score(relevant_P, scores_P))
    directed = gold_P != 0
    if directed.any():
        right = (np.sign(directions_P[directed]) * gold_P[directed] + 1) / 2
        _, group = np.unique(hypernyms_P[directed], return_inverse=True)
        metrics["micro_accuracy"] = float(right.mean())
        metrics["macro_accuracy"] = float((np.bincount(group, right) / np.bincount(group)).mean())
    return metrics
