"""Fits what a relation model's scores mean: thresholds, probabilities, the look-up's scale.

Shape suffixes: E entity pairs, P patterns or pairs of patterns, R relations, F features.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.relations.confidence import Confidence
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.ranking import combined_scores
from facets.relations.tables import write_tables
from facets_lab.relations.evaluation.relations import (
    PairData,
    best_decision,
    evaluate_relations,
    pair_scores,
    read_pairs,
)
from facets_lab.relations.evaluation.systems import FacetRelations

__all__ = ["fit_relation_model", "fit_relations", "with_confidence"]

# Of the look-up: its slope, and what a cosine of 1 counts in terms of the facets' score.
_SCALES = (0.2, 0.3, 0.5, 0.7, 1.0)
_PEAKS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
_BEST_WEIGHT = 20.0
_BEST_RELATIONS = 5  # of each pair: what probability must be right about


def with_confidence(model: RelationModel, confidence: Confidence) -> RelationModel:
    """The same model with other numbers."""
    return RelationModel(
        model.network,
        model.words,
        pieces=model.pieces,
        config=model.config,
        relations=replace(model.relations, confidence=confidence),
        table=model.table,
        revision=model.revision,
    )


def fit_relation_model(
    name_or_path: str | None, file: Path, *, threshold: float | None, dry_run: bool
) -> dict[str, object]:
    """Fits a model and, unless it is a dry run, stores what was fitted with it.

    Args:
        name_or_path: The model; None is the shipped one.
        file: Pairs, as for ``facets-eval relations``.
        threshold: Scores from here on are accepted; None: where the F1 of single patterns is best.
        dry_run: Leave the model as it is.

    Returns:
        The report of the fitted model on ``file``.
    """
    data = read_pairs(file)
    folder = find_model(TASKS["relations"].default if name_or_path is None else name_or_path)
    model = load(folder, RelationModel)
    model = with_confidence(model, fit_relations(model, data, threshold=threshold))
    if not dry_run:
        write_tables(folder, model.relations, model.table)
    results = evaluate_relations(FacetRelations(model), data)
    return {"data": str(file), "rows": data.num_rows, "models": {model.name: results}}


def fit_relations(model: RelationModel, data: PairData, *, threshold: float | None = None) -> Confidence:
    """Threshold, probabilities and the look-up's scale from pairs whose relations are known.

    The look-up's cosines get the scale at which the maximum of both ranks pairs best. The threshold, one for
    all relations, is for single patterns, as extraction meets them, and has seen what says no relation: each pattern
    also counts the other way round, where it says symmetric relations alone. The probabilities are those of the best
    relations of pairs: of one pattern the data does not know which of them it says.
    """
    table = model.relations
    names = table.names
    data = data.canonical(table.meanings())
    confidence = replace(table.confidence, schema_scale=1.0, schema_shift=0.0)
    arrays = RelationEngine(with_confidence(model, confidence)).score_arrays(data.patterns, names)
    gold_ER = data.gold(names)
    choices = [
        _schema_scale(scores, arrays.universal_schema, data, gold_ER, replace(confidence, use_asymmetric=is_asymmetric))
        for is_asymmetric, scores in ((False, arrays.symmetric), (True, arrays.asymmetric))
    ]
    # At a tie the symmetric score, which comes first, decides.
    _, confidence = max(choices, key=lambda choice: round(choice[0], 6))
    single = data.single_patterns(table.symmetric_names)
    engine = RelationEngine(with_confidence(model, confidence))
    single_scores = pair_scores(single, engine.score_arrays(single.patterns, names).scores)
    _, margin, best = best_decision(single_scores, single.gold(names), num_missed=single.num_unknown(names))
    threshold = best if threshold is None else threshold
    scores_ER = pair_scores(data, engine.score_arrays(data.patterns, names).scores)
    gaps_ER = scores_ER - scores_ER.max(axis=1, keepdims=True)
    best_EB = np.argsort(-scores_ER, axis=1, kind="stable")[:, :_BEST_RELATIONS]
    features = [np.take_along_axis(values, best_EB, axis=1).ravel() for values in (scores_ER - threshold, gaps_ER)]
    right = np.take_along_axis(gold_ER, best_EB, axis=1).ravel()
    # The best relation is what people are told; the others only teach what a gap means.
    weights = np.tile([_BEST_WEIGHT] + [1.0] * (best_EB.shape[1] - 1), len(best_EB))
    curve = LogisticRegression(C=100.0).fit(np.stack(features, axis=1), right, sample_weight=weights)
    return replace(
        confidence,
        thresholds=(round(threshold, 4),) * len(names),
        default_threshold=round(threshold, 4),
        margin=margin,
        slope=round(float(curve.coef_[0, 0]), 4),
        gap_slope=round(float(curve.coef_[0, 1]), 4),
        offset=round(float(curve.intercept_[0]), 4),
    )


def _schema_scale(
    facet_PR: NDArray[np.float32],
    schema_PR: NDArray[np.float32],
    data: PairData,
    gold_ER: NDArray[np.bool_],
    confidence: Confidence,
) -> tuple[float, Confidence]:
    """Best mean average precision of the maximum on a small grid, and the settings that give it."""
    tried = []
    for scale in _SCALES:
        for peak in _PEAKS:
            own = replace(confidence, schema_scale=scale, schema_shift=round(peak - scale, 4))
            scores_ER = pair_scores(data, combined_scores(facet_PR, schema_PR, own))
            tried.append((_mean_precision(scores_ER, gold_ER), own))
    return max(tried, key=lambda choice: choice[0])


def _mean_precision(scores_ER: NDArray[np.float32], gold_ER: NDArray[np.bool_]) -> float:
    present = np.flatnonzero(gold_ER.any(axis=0))
    return float(np.mean([average_precision_score(gold_ER[:, r], scores_ER[:, r]) for r in present]))
