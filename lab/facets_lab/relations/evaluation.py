"""Relations of entity pairs from the patterns they occur with (the paper's table 3.5, on WebNLG).

Shape suffixes: E entity pairs, P patterns, R relations.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.model.loading import load
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2
from facets.relations.scoring import combined_scores
from facets_lab.evaluation.comparison import Embed, EvaluationTask, if_installed, load_systems, minilm
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.relations.data import KB_PREFIX, read_cells

_ARGUMENT = re.compile(r"\$ARG[12](?![A-Za-z0-9])")
_NO_SCORE = -1e9
MARGINS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 2.0)


@dataclass(frozen=True, slots=True)
class PairData:
    """Entity pairs with their patterns and relations.

    Attributes:
        patterns: Distinct patterns.
        offsets: ``[E + 1]``; pair ``i`` has the patterns ``members[offsets[i]:offsets[i + 1]]``.
        members: Numbers of patterns.
        relations: Relations of each pair.
        num_rows: Lines of the file.
    """

    patterns: list[str]
    offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    relations: list[tuple[str, ...]]
    num_rows: int

    def gold(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """``[E, R]``, True where a pair has the relation."""
        columns = {name: column for column, name in enumerate(names)}
        gold_ER = np.zeros((len(self.relations), len(names)), dtype=np.bool_)
        for row, own in enumerate(self.relations):
            gold_ER[row, [columns[name] for name in own if name in columns]] = True
        return gold_ER

    def canonical(self, meanings: Mapping[str, tuple[str, bool]]) -> "PairData":
        """The pairs under a model's own names; a relation that it has the other way round becomes one of the pair so.

        Args:
            meanings: The relation behind each name, and whether head and tail are exchanged.
        """
        pairs: list[tuple[list[str], tuple[str, ...]]] = []
        for row, names in enumerate(self.relations):
            patterns = [self.patterns[number] for number in self.members[self.offsets[row] : self.offsets[row + 1]]]
            known = [meanings.get(name, (name, False)) for name in names]
            for is_inverse in (False, True):
                own = tuple(dict.fromkeys(name for name, inverse in known if inverse == is_inverse))
                if own:
                    pairs.append(([_mirror_image(p) for p in patterns] if is_inverse else patterns, own))
        return _pair_data(pairs, self.num_rows)

    def single_patterns(self, symmetric: Collection[str]) -> "PairData":
        """Each pattern of each pair as if it were alone, and its mirror image, which says symmetric relations alone."""
        pairs: list[tuple[list[str], tuple[str, ...]]] = []
        for row, names in enumerate(self.relations):
            both_ways = tuple(name for name in names if name in symmetric)
            for number in self.members[self.offsets[row] : self.offsets[row + 1]]:
                pairs.append(([self.patterns[number]], names))
                pairs.append(([_mirror_image(self.patterns[number])], both_ways))
        return _pair_data(pairs, self.num_rows)

    def num_unknown(self, names: Sequence[str]) -> int:
        """Relations of pairs that are not among the names: they cannot be found."""
        known = set(names)
        return sum(name not in known for own in self.relations for name in own)


@dataclass(frozen=True, slots=True)
class PatternMethod:
    """Scores of one way to compare patterns with relations.

    Attributes:
        scores: ``[P, R]``; NaN where it says nothing, ranked last.
        thresholds: ``[R]``, pairs from here on have the relation; None: the one threshold, and the margin, that suit
            the file best.
        margin: A pair has only relations whose score is at most so far below its best.
    """

    scores: NDArray[np.float32]
    thresholds: NDArray[np.float32] | None
    margin: float = 2.0


@dataclass(frozen=True, slots=True)
class RelationSystem:
    """Something that compares patterns with relations.

    Attributes:
        name: Its key in the report.
        relations: Names of the columns.
        meanings: The relation behind each name and alias, and whether head and tail are exchanged.
        symmetric: Relations that hold both ways round.
        methods: Patterns -> scores by method.
    """

    name: str
    relations: Sequence[str]
    meanings: Mapping[str, tuple[str, bool]]
    symmetric: Collection[str]
    methods: Callable[[Sequence[str]], dict[str, PatternMethod]]

    @classmethod
    def of(
        cls,
        name: str,
        model: RelationModel,
        methods: Callable[[RelationModel, Sequence[str]], dict[str, PatternMethod]],
    ) -> "RelationSystem":
        """The relations of a model, whatever compares patterns with them."""
        table = model.relations
        return cls(name, table.names, table.meanings(), table.symmetric_names, partial(methods, model))


def read_pairs(path: Path) -> PairData:
    """Reads ``entity<TAB>entity<TAB>pattern or kb:relation<TAB>count``.

    Pairs without a pattern or without a relation are left out: they can be neither scored nor judged.

    Raises:
        InvalidInputError: A bad line, or no pair is left; the message names file and line.
        ConfigError: The file cannot be read.
    """
    pairs: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    num_rows = 0
    for head, tail, said, _ in read_cells(path):
        num_rows += 1
        own = pairs.setdefault((head, tail), ([], []))
        own[said.startswith(KB_PREFIX)].append(said.removeprefix(KB_PREFIX))
    complete = [own for own in pairs.values() if own[0] and own[1]]
    if not complete:
        raise InvalidInputError(f"{path} must have a pair with a pattern and a relation, got none in {num_rows} rows")
    return _pair_data(complete, num_rows)


def _pair_data(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], num_rows: int) -> PairData:
    """Patterns and relations of each pair."""
    numbers = {pattern: n for n, pattern in enumerate(dict.fromkeys(p for patterns, _ in pairs for p in patterns))}
    return PairData(
        patterns=list(numbers),
        offsets=np.cumsum([0, *(len(patterns) for patterns, _ in pairs)]),
        members=np.array([numbers[p] for patterns, _ in pairs for p in patterns], dtype=np.int64),
        relations=[tuple(relations) for _, relations in pairs],
        num_rows=num_rows,
    )


def _mirror_image(pattern: str) -> str:
    return _ARGUMENT.sub(lambda found: ARG2 if found.group() == ARG1 else ARG1, pattern)


def pair_scores(data: PairData, scores_PR: NDArray[np.float32]) -> NDArray[np.float32]:
    """Best score of any pattern of each pair, ``[E, R]``; NaN becomes -inf."""
    filled_PR = np.where(np.isnan(scores_PR), -np.inf, scores_PR)
    scores_ER: NDArray[np.float32] = np.maximum.reduceat(filled_PR[data.members], data.offsets[:-1], axis=0)
    return scores_ER


def best_threshold(scores: NDArray[np.float32], gold: NDArray[np.bool_], *, num_missed: int = 0) -> float:
    """The threshold with the highest F1.

    Args:
        scores: Any shape.
        gold: Same shape.
        num_missed: Positives that no threshold finds.
    """
    order = np.argsort(-scores, axis=None, kind="stable")
    ranked = scores.ravel()[order]
    hits = np.cumsum(gold.ravel()[order])
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + int(gold.sum()) + num_missed)
    # Equal scores stand or fall together.
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    return float(ranked[int(np.argmax(np.where(last_of_ties, f1, -1.0)))])


def near_best(scores_ER: NDArray[np.float32], margin: float) -> NDArray[np.float32]:
    """Scores at most ``margin`` below the best of their pair; the others become -inf."""
    best_E1 = scores_ER.max(axis=1, keepdims=True)
    return np.where(scores_ER >= best_E1 - margin, scores_ER, np.float32(-np.inf))


def best_decision(
    scores_ER: NDArray[np.float32],
    gold_ER: NDArray[np.bool_],
    *,
    num_missed: int,
) -> tuple[float, float, float]:
    """F1, margin and threshold of the best decision with one of each for all relations."""
    decisions = []
    for margin in MARGINS:
        kept_ER = near_best(scores_ER, margin)
        threshold = best_threshold(kept_ER, gold_ER, num_missed=num_missed)
        accepted_ER = kept_ER >= threshold
        hits = int((accepted_ER & gold_ER).sum())
        f1 = 2 * hits / max(1, int(accepted_ER.sum() + gold_ER.sum()) + num_missed)
        decisions.append((f1, margin, threshold))
    return max(decisions)


def evaluate_relations(system: RelationSystem, data: PairData, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """Mean average precision over relations, micro F1, and direction, of each method.

    Names of the file that mean the same count as one. Only relations that the system knows and the file has are
    averaged over; a relation it does not know counts as missed in the F1. A method without thresholds gets the one
    threshold and margin that suit the file best. ``direction`` is the share of what the pairs have, symmetric
    relations aside, that scores higher than the same with the arguments exchanged; a tie is half right.
    """
    data = data.canonical(system.meanings)
    gold_ER = data.gold(system.relations)
    # Missed positives of each pair, so that a resample carries its own.
    known = set(system.relations)
    missed_E = np.array([sum(name not in known for name in own) for own in data.relations])
    directed_ER = gold_ER & np.array([name not in system.symmetric for name in system.relations])
    exchanged = system.methods([_mirror_image(pattern) for pattern in data.patterns])
    results = {}
    for name, method in system.methods(data.patterns).items():
        scores_ER = pair_scores(data, method.scores)
        if method.thresholds is None:
            _, margin, threshold = best_decision(scores_ER, gold_ER, num_missed=int(missed_E.sum()))
            accepted_ER = near_best(scores_ER, margin) >= threshold
        else:
            accepted_ER = near_best(scores_ER, method.margin) >= method.thresholds
        # Where neither order has a score, it is a tie.
        floor = np.float32(_NO_SCORE)
        signs_ER = np.sign(np.maximum(scores_ER, floor) - np.maximum(pair_scores(data, exchanged[name].scores), floor))
        results[name] = with_intervals(
            _metrics, scores_ER, accepted_ER, gold_ER, missed_E, signs_ER, directed_ER, num_resamples=num_resamples
        )
    return results


def _metrics(
    scores_ER: NDArray[np.float32],
    accepted_ER: NDArray[np.bool_],
    gold_ER: NDArray[np.bool_],
    missed_E: NDArray[np.int64],
    signs_ER: NDArray[np.float32],
    directed_ER: NDArray[np.bool_],
) -> Metrics:
    present = np.flatnonzero(gold_ER.any(axis=0))
    # scikit-learn takes finite scores only.
    finite = np.maximum(scores_ER, np.float32(_NO_SCORE))
    precisions = [average_precision_score(gold_ER[:, r], finite[:, r]) for r in present]
    hits = int((accepted_ER & gold_ER).sum())
    total = int(accepted_ER.sum() + gold_ER.sum() + missed_E.sum())
    signs = signs_ER[directed_ER]
    return {
        "map": float(np.mean(precisions)) if precisions else None,
        "micro_f1": 2 * hits / total if total else 0.0,
        "direction": float((signs + 1).mean() / 2) if len(signs) else None,
    }


_BASELINES = ("facets-relations-en-k1",)
_SEED = 0


def by_facets(model: RelationModel, patterns: Sequence[str]) -> dict[str, PatternMethod]:
    """``symmetric`` (eq. 3.11), ``asymmetric`` (eq. 3.10), ``universal_schema`` (look-up), and maxima with it."""
    arrays = RelationEngine(model).score_arrays(patterns, model.relations.names)
    confidence = model.relations.confidence
    schema = arrays.universal_schema
    both = {
        name: combined_scores(scores, schema, confidence)
        for name, scores in (("symmetric", arrays.symmetric), ("asymmetric", arrays.asymmetric))
    }
    # The model decides by one of the two maxima; the thresholds are that one's.
    decides = "asymmetric" if confidence.use_asymmetric else "symmetric"
    thresholds = np.array(confidence.thresholds, dtype=np.float32)
    return {
        "symmetric": PatternMethod(arrays.symmetric, None),
        "asymmetric": PatternMethod(arrays.asymmetric, None),
        "universal_schema": PatternMethod(schema, None),
        **{
            f"{name}+universal_schema": PatternMethod(
                scores, thresholds if name == decides else None, confidence.margin
            )
            for name, scores in both.items()
        },
    }


def by_chance(model: RelationModel, patterns: Sequence[str]) -> dict[str, PatternMethod]:
    """Seeded random scores."""
    rng = np.random.default_rng([_SEED, *patterns[0].encode()])  # another order of arguments, other numbers
    return {"random": PatternMethod(rng.random((len(patterns), len(model.relations.names)), dtype=np.float32), None)}


def by_nearest_pattern(embed: Embed, model: RelationModel, patterns: Sequence[str]) -> dict[str, PatternMethod]:
    """Cosine of embeddings to the nearest training pattern of each relation."""
    table, members = list(model.table.rows), model.relations.patterns
    used = sorted({row for rows in members for row in rows})
    places = {row: place for place, row in enumerate(used)}
    training = unit_rows(embed([table[row] for row in used]))
    cosines = unit_rows(embed([pattern.lower() for pattern in patterns])) @ training.T
    columns = [
        cosines[:, [places[row] for row in rows]].max(axis=1) if rows else np.full(len(patterns), np.nan)
        for rows in members
    ]
    return {"nearest_pattern": PatternMethod(np.stack(columns, axis=1).astype(np.float32), None)}


def load_relation_models(names_or_paths: Sequence[str], baselines: bool) -> list[RelationModel]:
    """Relation models in the given order, or the shipped one; with baselines the single-facet one too."""
    return load_systems(names_or_paths, _BASELINES if baselines else (), lambda asked: load(asked, RelationModel))


def relation_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[RelationSystem]:
    """The models; chance and MiniLM over the relations and training patterns of the first one."""
    models = load_relation_models(names_or_paths, baselines)
    yield from (RelationSystem.of(model.name, model, by_facets) for model in models)
    if baselines:
        yield RelationSystem.of("random", models[0], by_chance)
        for embed in if_installed("minilm", minilm):
            yield RelationSystem.of("minilm", models[0], partial(by_nearest_pattern, embed))


RELATIONS = EvaluationTask(
    read=read_pairs,
    num_rows=lambda data: data.num_rows,
    systems=relation_systems,
    evaluate=evaluate_relations,
)
