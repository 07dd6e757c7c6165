"""Evaluates relations of entity pairs, predicted from the patterns they occur with (Chang 2022, table 3.5, on WebNLG).

Also fits the thresholds and probabilities of a relation model. Shape suffixes: E entity pairs, P patterns, R and B
relations.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from facets.arrays import Bools, Floats, Ints
from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2
from facets.relations.scoring import combined_scores
from facets.relations.tables import Confidence, write_tables
from facets_lab.evaluation.comparison import Embed, Report, if_installed, load_models, make_report, minilm
from facets_lab.evaluation.options import Baselines, Bootstrap, CalibratedModel, DataFile, DryRun, Models
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.relations.data import KB_PREFIX, read_cells

MARGINS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 2.0)
_ARGUMENT = re.compile(r"\$ARG[12](?![A-Za-z0-9])")
_NO_SCORE = np.float32(-1e9)
_BASELINES = ("facets-relations-en-k1",)
# Grid of the look-up: its slope, and the facet score that a cosine of 1 corresponds to.
_GRID = [*product((0.2, 0.3, 0.5, 0.7, 1.0), (0.8, 0.9, 1.0, 1.1, 1.2, 1.3))]
_BEST_WEIGHT = 20.0  # weight of the best relation of a pair when probabilities are fitted
_NUM_BEST = 5  # relations of a pair whose probabilities are fitted

Pair = tuple[list[str], tuple[str, ...]]  # patterns and relations of an entity pair


@dataclass(frozen=True, slots=True)
class PairData:
    """Entity pairs with their patterns and relations."""

    pairs: list[Pair]  # E of them
    num_rows: int  # lines of the file

    @property
    def patterns(self) -> list[str]:
        """The P distinct patterns."""
        return list(dict.fromkeys(pattern for patterns, _ in self.pairs for pattern in patterns))

    def gold(self, names: Sequence[str]) -> Bools:
        """True where a pair has the relation, ``[E, R]``."""
        columns = {name: column for column, name in enumerate(names)}
        gold_ER = np.zeros((len(self.pairs), len(names)), dtype=np.bool_)
        for row, (_, relations) in enumerate(self.pairs):
            gold_ER[row, [columns[name] for name in relations if name in columns]] = True
        return gold_ER

    def num_unknown(self, names: Collection[str]) -> Ints:
        """Number of relations of each pair that are not among ``names``, ``[E]``."""
        return np.array([sum(name not in names for name in relations) for _, relations in self.pairs])

    def canonical(self, meanings: Mapping[str, tuple[str, bool]]) -> "PairData":
        """The pairs with canonical relation names; an inverse relation becomes a relation of the mirrored pair."""
        pairs: list[Pair] = []
        for patterns, names in self.pairs:
            known = [meanings.get(name, (name, False)) for name in names]
            for is_inverse in (False, True):
                relations = tuple(dict.fromkeys(name for name, inverse in known if inverse == is_inverse))
                if relations:
                    pairs.append(([mirror(p) for p in patterns] if is_inverse else patterns, relations))
        return PairData(pairs, self.num_rows)

    def single_patterns(self, symmetric: Collection[str]) -> "PairData":
        """Each pattern of each pair separately, and its mirror image, which has only the symmetric relations."""
        pairs: list[Pair] = []
        for patterns, names in self.pairs:
            both_ways = tuple(name for name in names if name in symmetric)
            for pattern in patterns:
                pairs += [([pattern], names), ([mirror(pattern)], both_ways)]
        return PairData(pairs, self.num_rows)


def read_pairs(path: Path) -> PairData:
    """The pairs of a matrix file that have a pattern and a relation."""
    pairs: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    num_rows = 0
    for head, tail, cell, _ in read_cells(path):
        num_rows += 1
        columns = pairs.setdefault((head, tail), ([], []))
        columns[cell.startswith(KB_PREFIX)].append(cell.removeprefix(KB_PREFIX))
    complete = [(patterns, tuple(relations)) for patterns, relations in pairs.values() if patterns and relations]
    if not complete:
        raise InvalidInputError(f"{path} must have a pair with a pattern and a relation, got none in {num_rows} rows")
    return PairData(complete, num_rows)


def mirror(pattern: str) -> str:
    """The pattern with its arguments exchanged."""
    return _ARGUMENT.sub(lambda match: ARG2 if match.group() == ARG1 else ARG1, pattern)


@dataclass(frozen=True, slots=True)
class PatternScores:
    """Scores of patterns and relations by one method."""

    scores: Floats  # [P, R]; NaN where the method has no score, ranked last
    # lowest accepted score of each relation, [R]; None: the best threshold and margin for the file
    thresholds: Floats | None = None
    margin: float = 2.0  # relations with a score this far below the best one of the pair are not accepted


Methods = Callable[[RelationModel, Sequence[str]], dict[str, PatternScores]]


def pair_scores(data: PairData, scores_PR: Floats) -> Floats:
    """Best score of any pattern of each pair, ``[E, R]``; NaN becomes -inf."""
    row_of = {pattern: row for row, pattern in enumerate(data.patterns)}
    rows = [row_of[pattern] for patterns, _ in data.pairs for pattern in patterns]
    starts = np.cumsum([0, *(len(patterns) for patterns, _ in data.pairs[:-1])])
    filled_PR = np.where(np.isnan(scores_PR), -np.inf, scores_PR)
    scores_ER: Floats = np.maximum.reduceat(filled_PR[rows], starts, axis=0)
    return scores_ER


def best_threshold(scores: Floats, gold: Bools, *, num_missed: int) -> tuple[float, float]:
    """The highest F1 and its threshold; no threshold finds ``num_missed`` further positives."""
    order = np.argsort(-scores, axis=None, kind="stable")
    ranked = scores.ravel()[order]
    hits = np.cumsum(gold.ravel()[order])
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + int(gold.sum()) + num_missed)
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)  # equal scores are accepted together
    best = int(np.argmax(np.where(last_of_ties, f1, -1.0)))
    return float(f1[best]), float(ranked[best])


def near_best(scores_ER: Floats, margin: float) -> Floats:
    """Keeps scores at most ``margin`` below the best of their pair; the others become -inf."""
    best_E1 = scores_ER.max(axis=1, keepdims=True)
    return np.where(scores_ER >= best_E1 - margin, scores_ER, np.float32(-np.inf))


def best_decision(scores_ER: Floats, gold_ER: Bools, *, num_missed: int) -> tuple[float, float, float]:
    """The best F1 with one margin and one threshold for all relations, that margin, and that threshold."""
    decisions = []
    for margin in MARGINS:
        f1, threshold = best_threshold(near_best(scores_ER, margin), gold_ER, num_missed=num_missed)
        decisions.append((f1, margin, threshold))
    return max(decisions)


def relation_metrics(
    model: RelationModel, methods: Methods, data: PairData, *, num_resamples: int = 0
) -> dict[str, Metrics]:
    """``map`` (over relations) and ``micro_f1`` of each method; relations unknown to the model count as missed."""
    table = model.relations
    data = data.canonical(table.meanings())
    gold_ER = data.gold(table.names)
    missed_E = data.num_unknown(set(table.names))
    results = {}
    for name, method in methods(model, data.patterns).items():
        scores_ER = pair_scores(data, method.scores)
        if method.thresholds is None:
            _, margin, threshold = best_decision(scores_ER, gold_ER, num_missed=int(missed_E.sum()))
            accepted_ER = near_best(scores_ER, margin) >= threshold
        else:
            accepted_ER = near_best(scores_ER, method.margin) >= method.thresholds
        columns = scores_ER, accepted_ER, gold_ER, missed_E
        results[name] = with_intervals(_metrics, *columns, num_resamples=num_resamples)
    return results


def _metrics(scores_ER: Floats, accepted_ER: Bools, gold_ER: Bools, missed_E: Ints) -> Metrics:
    finite = np.maximum(scores_ER, _NO_SCORE)  # scikit-learn accepts only finite scores
    present_R = gold_ER.any(axis=0)
    precision = float(average_precision_score(gold_ER[:, present_R], finite[:, present_R])) if present_R.any() else None
    hits = int((accepted_ER & gold_ER).sum())
    total = int(accepted_ER.sum() + gold_ER.sum() + missed_E.sum())
    return {"map": precision, "micro_f1": 2 * hits / total if total else 0.0}


def model_methods(model: RelationModel, patterns: Sequence[str]) -> dict[str, PatternScores]:
    """``symmetric`` (eq. 3.11), ``asymmetric`` (eq. 3.10), ``universal_schema`` (look-up), and maxima with the last."""
    arrays = RelationEngine(model).score_arrays(patterns, model.relations.names)
    confidence = model.relations.confidence
    facet_scores = {"symmetric": arrays.symmetric, "asymmetric": arrays.asymmetric}
    # The model decides by one of the two maxima, and its thresholds apply to that one.
    decides = "asymmetric" if confidence.use_asymmetric else "symmetric"
    thresholds = np.array(confidence.thresholds, dtype=np.float32)
    methods = {name: PatternScores(scores) for name, scores in facet_scores.items()}
    methods["universal_schema"] = PatternScores(arrays.universal_schema)
    for name, scores in facet_scores.items():
        both = combined_scores(scores, arrays.universal_schema, confidence)
        own_thresholds = thresholds if name == decides else None
        methods[f"{name}+universal_schema"] = PatternScores(both, own_thresholds, confidence.margin)
    return methods


def nearest_pattern_methods(embed: Embed) -> Methods:
    """Cosine with the nearest training pattern of each relation."""

    def methods(model: RelationModel, patterns: Sequence[str]) -> dict[str, PatternScores]:
        table, members = list(model.table.rows), model.relations.patterns
        used = sorted({row for rows in members for row in rows})
        column_of = {row: column for column, row in enumerate(used)}
        training = unit_rows(embed([table[row] for row in used]))
        cosines = unit_rows(embed([pattern.lower() for pattern in patterns])) @ training.T
        columns = [
            cosines[:, [column_of[row] for row in rows]].max(axis=1) if rows else np.full(len(patterns), np.nan)
            for rows in members
        ]
        return {"nearest_pattern": PatternScores(np.stack(columns, axis=1).astype(np.float32))}

    return methods


def load_relation_models(names_or_paths: Sequence[str] | None, baselines: bool) -> list[RelationModel]:
    """The requested models and, with ``baselines``, the one with a single facet."""
    return load_models(names_or_paths, _BASELINES if baselines else (), lambda name: load(name, RelationModel))


def evaluate_relations(
    file: DataFile, names_or_paths: Models = None, *, baselines: Baselines = False, num_resamples: Bootstrap = 0
) -> Report:
    """Evaluate relations of entity pairs. Tab-separated columns: entity, entity, pattern or kb:relation, count.

    Example: facets-eval relations webnlg-dev.tsv --baselines
    """
    data = read_pairs(file)
    models = load_relation_models(names_or_paths, baselines)
    systems: list[tuple[str, RelationModel, Methods]] = [(model.name, model, model_methods) for model in models]
    if baselines:  # for the relations of the first model
        systems += [("minilm", models[0], nearest_pattern_methods(embed)) for embed in if_installed("minilm", minilm)]
    measured = (
        (name, relation_metrics(model, methods, data, num_resamples=num_resamples)) for name, model, methods in systems
    )
    return make_report(file, data.num_rows, measured)


def with_confidence(model: RelationModel, confidence: Confidence) -> RelationModel:
    """A copy of the model with these thresholds and probabilities."""
    changed = copy(model)
    changed.relations = replace(model.relations, confidence=confidence)
    return changed


def calibrate_relations(file: DataFile, name_or_path: CalibratedModel = None, dry_run: DryRun = False) -> Report:
    """Fit the threshold and the probabilities of a relation model; data as for ``relations``.

    Example: facets-eval calibrate-relations webnlg-dev.tsv --model models/facets-relations-en
    """
    data = read_pairs(file)
    folder = find_model(name_or_path or TASKS["relations"].default)
    model = load(folder, RelationModel)
    model = with_confidence(model, fit_confidence(model, data))
    if not dry_run:
        write_tables(folder, model.relations, model.table)
    metrics = relation_metrics(model, model_methods, data)
    return {"data": str(file), "rows": data.num_rows, "models": {model.name: metrics}}


def fit_confidence(model: RelationModel, data: PairData) -> Confidence:
    """Fits threshold, probabilities and scale of the look-up on pairs with known relations.

    The scale is the one at which the maximum of facets and look-up ranks pairs best. The threshold, one for all
    relations, is for single patterns as in extraction; mirrored patterns, which have symmetric relations only, are its
    negative examples. Probabilities are those of the best relations of pairs.
    """
    table = model.relations
    names = table.names
    data = data.canonical(table.meanings())
    unscaled = table.confidence.replaced(schema_scale=1.0, schema_shift=0.0)
    arrays = RelationEngine(with_confidence(model, unscaled)).score_arrays(data.patterns, names)
    gold_ER = data.gold(names)
    choices = [
        _fit_schema_scale(scores, arrays.universal_schema, data, gold_ER, unscaled.replaced(use_asymmetric=asymmetric))
        for asymmetric, scores in ((False, arrays.symmetric), (True, arrays.asymmetric))
    ]
    _, confidence = max(choices, key=lambda choice: round(choice[0], 6))  # the symmetric score wins ties
    single = data.single_patterns(table.symmetric_names)
    engine = RelationEngine(with_confidence(model, confidence))
    single_scores = pair_scores(single, engine.score_arrays(single.patterns, names).scores)
    num_missed = int(single.num_unknown(set(names)).sum())
    _, margin, threshold = best_decision(single_scores, single.gold(names), num_missed=num_missed)
    scores_ER = pair_scores(data, engine.score_arrays(data.patterns, names).scores)
    gaps_ER = scores_ER - scores_ER.max(axis=1, keepdims=True)
    best_EB = np.argsort(-scores_ER, axis=1, kind="stable")[:, :_NUM_BEST]
    features = [np.take_along_axis(values, best_EB, axis=1).ravel() for values in (scores_ER - threshold, gaps_ER)]
    right = np.take_along_axis(gold_ER, best_EB, axis=1).ravel()
    # Users see the best relation; the others only help to interpret the gap between scores.
    weights = np.tile([_BEST_WEIGHT] + [1.0] * (best_EB.shape[1] - 1), len(best_EB))
    curve = LogisticRegression(C=100.0).fit(np.stack(features, axis=1), right, sample_weight=weights)
    return confidence.replaced(
        thresholds=(round(threshold, 4),) * len(names),
        default_threshold=round(threshold, 4),
        margin=margin,
        slope=round(float(curve.coef_[0, 0]), 4),
        gap_slope=round(float(curve.coef_[0, 1]), 4),
        offset=round(float(curve.intercept_[0]), 4),
    )


def _fit_schema_scale(
    facet_PR: Floats, schema_PR: Floats, data: PairData, gold_ER: Bools, confidence: Confidence
) -> tuple[float, Confidence]:
    """The best mean average precision on the grid, and its settings."""
    present_R = gold_ER.any(axis=0)

    def precision(scaled: Confidence) -> float:
        scores_ER = pair_scores(data, combined_scores(facet_PR, schema_PR, scaled))
        return float(average_precision_score(gold_ER[:, present_R], scores_ER[:, present_R]))

    grid = [confidence.replaced(schema_scale=scale, schema_shift=round(peak - scale, 4)) for scale, peak in _GRID]
    return max(((precision(scaled), scaled) for scaled in grid), key=lambda choice: choice[0])
