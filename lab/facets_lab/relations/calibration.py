"""Fits thresholds and probabilities of a relation model. Shape suffixes: E pairs, P patterns, R and B relations."""

from copy import copy
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.scoring import combined_scores
from facets.relations.tables import Confidence, write_tables
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import CalibratedModel, DataFile, DryRun
from facets_lab.relations.evaluation import (
    PairData,
    best_decision,
    model_methods,
    pair_scores,
    read_pairs,
    relation_metrics,
)

# Grid of the look-up: its slope, and the facet score that a cosine of 1 corresponds to.
_GRID = [*product((0.2, 0.3, 0.5, 0.7, 1.0), (0.8, 0.9, 1.0, 1.1, 1.2, 1.3))]
_BEST_WEIGHT = 20.0  # weight of the best relation of a pair when probabilities are fitted
_NUM_BEST = 5  # relations of a pair whose probabilities are fitted


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
    facet_PR: NDArray[np.float32],
    schema_PR: NDArray[np.float32],
    data: PairData,
    gold_ER: NDArray[np.bool_],
    confidence: Confidence,
) -> tuple[float, Confidence]:
    """The best mean average precision on the grid, and its settings."""
    present = np.flatnonzero(gold_ER.any(axis=0))

    def precision(scaled: Confidence) -> float:
        scores_ER = pair_scores(data, combined_scores(facet_PR, schema_PR, scaled))
        return float(np.mean([average_precision_score(gold_ER[:, r], scores_ER[:, r]) for r in present]))

    grid = [confidence.replaced(schema_scale=scale, schema_shift=round(peak - scale, 4)) for scale, peak in _GRID]
    return max(((precision(scaled), scaled) for scaled in grid), key=lambda choice: choice[0])
