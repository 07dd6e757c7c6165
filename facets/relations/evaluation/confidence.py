"""Fits what a relation model's scores mean: thresholds, probabilities, the look-up's scale, entailment weights.

Shape suffixes: E entity pairs, P patterns or pairs of patterns, R relations, F features.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from facets.model.loading import TASKS, find_model, load
from facets.relations.confidence import Confidence
from facets.relations.engine import RelationEngine
from facets.relations.entailment import EntailmentArrays, label_features
from facets.relations.evaluation.entailment import EntailmentData, read_entailment
from facets.relations.evaluation.relations import (
    PairData,
    best_decision,
    best_threshold,
    evaluate_relations,
    near_best,
    pair_scores,
    read_pairs,
)
from facets.relations.evaluation.systems import FacetRelations
from facets.relations.model import RelationModel
from facets.relations.ranking import combined_scores
from facets.relations.tables import write_tables

__all__ = ["fit_entailment", "fit_label_weights", "fit_relation_model", "fit_relations", "with_confidence"]

# A relation with so many pairs in the data gets a threshold halfway between its own and the common one.
_PRIOR_POSITIVES = 4.0
# Of the look-up: its slope, and what a cosine of 1 counts in terms of the facets' score.
_SCALES = (0.2, 0.3, 0.5, 0.7, 1.0)
_PEAKS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
_OWN_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def with_confidence(model: RelationModel, confidence: Confidence) -> RelationModel:
    """The same model with other numbers."""
    return RelationModel(
        model.network,
        model.words,
        config=model.config,
        relations=replace(model.relations, confidence=confidence),
        table=model.table,
        revision=model.revision,
    )


def fit_relation_model(
    name_or_path: str | None, file: Path, *, entailment: Path | None, dry_run: bool
) -> dict[str, object]:
    """Fits a model and, unless it is a dry run, stores what was fitted with it.

    Args:
        name_or_path: The model; None is the shipped one.
        file: Pairs, as for ``facets-eval relations``.
        entailment: Pairs, as for ``facets-eval entailment``.
        dry_run: Leave the model as it is.

    Returns:
        The report of the fitted model on ``file``.
    """
    data = read_pairs(file)
    folder = find_model(TASKS["relations"].default if name_or_path is None else name_or_path)
    model = load(folder, RelationModel)
    model = with_confidence(model, fit_relations(model, data))
    if entailment is not None:
        model = with_confidence(model, fit_entailment(model, read_entailment(entailment)))
    if not dry_run:
        write_tables(folder, model.relations, model.table)
    results = evaluate_relations(FacetRelations(model), data)
    return {"data": str(file), "rows": data.num_rows, "models": {model.name: results}}


def fit_relations(model: RelationModel, data: PairData) -> Confidence:
    """Thresholds, probabilities and the look-up's scale from pairs whose relations are known.

    The look-up's cosines get the scale at which the maximum of both ranks pairs best. The threshold follows the mean
    score of each relation as far as that gives the best micro F1. Where the data has pairs of the relation, it moves
    towards the middle between them and the others.
    """
    names = model.relations.names
    confidence = replace(model.relations.confidence, schema_scale=1.0, schema_shift=0.0)
    arrays = RelationEngine(with_confidence(model, confidence)).score_arrays(data.patterns, names)
    gold_ER = data.gold(names)
    choices = [
        _schema_scale(scores, arrays.universal_schema, data, gold_ER, replace(confidence, use_asymmetric=is_asymmetric))
        for is_asymmetric, scores in ((False, arrays.symmetric), (True, arrays.asymmetric))
    ]
    # At a tie the symmetric score, which comes first, decides.
    _, confidence = max(choices, key=lambda choice: round(choice[0], 6))
    facet_PR = arrays.asymmetric if confidence.use_asymmetric else arrays.symmetric
    scores_ER = pair_scores(data, combined_scores(facet_PR, arrays.universal_schema, confidence))
    thresholds_R, margin = _thresholds(scores_ER, gold_ER, num_missed=data.num_unknown(names))
    distances_ER = scores_ER - thresholds_R
    gaps_ER = scores_ER - scores_ER.max(axis=1, keepdims=True)
    features = np.stack([distances_ER.ravel(), gaps_ER.ravel()], axis=1)
    curve = LogisticRegression(C=100.0).fit(features, gold_ER.ravel())
    return replace(
        confidence,
        thresholds=_rounded(thresholds_R),
        default_threshold=round(float(np.median(thresholds_R)), 4),
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


def _thresholds(
    scores_ER: NDArray[np.float32], gold_ER: NDArray[np.bool_], *, num_missed: int
) -> tuple[NDArray[np.float64], float]:
    """Thresholds ``[R]`` and the margin."""
    decisions = []
    for share in _OWN_SHARES:
        # What a relation's scores are on average, as far as it is taken off.
        usual_R = share * (scores_ER.mean(axis=0) - float(scores_ER.mean()))
        f1, margin, threshold = best_decision(scores_ER, gold_ER, num_missed=num_missed, usual_R=usual_R)
        decisions.append((f1, share, margin, threshold))
    _, share, margin, threshold = max(decisions)
    thresholds_R = share * (scores_ER.mean(axis=0) - float(scores_ER.mean())) + threshold
    kept_ER = near_best(scores_ER, margin) - thresholds_R
    thresholds_R = thresholds_R.astype(np.float64)
    for relation in np.flatnonzero(gold_ER.any(axis=0)):
        own_E, positive_E = kept_ER[:, relation], gold_ER[:, relation]
        own = best_threshold(own_E, positive_E)
        # Down to the middle between the last pair that counts and the next one below.
        below = own_E[np.isfinite(own_E) & (own_E < own)].max(initial=-1.0)
        weight = positive_E.sum() / (positive_E.sum() + _PRIOR_POSITIVES)
        if np.isfinite(own):
            thresholds_R[relation] += weight * (own + below) / 2
    return np.clip(thresholds_R, -1.0, 1.0), margin


def fit_entailment(model: RelationModel, data: EntailmentData) -> Confidence:
    """Weights of ``label_probabilities``: logistic regressions of the labels, and of the direction of entailment."""
    return fit_label_weights(model, RelationEngine(model).entailment_scores(data.premises, data.hypotheses), data)


def fit_label_weights(model: RelationModel, arrays: EntailmentArrays, data: EntailmentData) -> Confidence:
    """``fit_entailment`` of scores that are there already."""
    features_P5, direction_P2 = label_features(arrays)
    gold_P = data.directions
    kinds_P = np.where(gold_P != 0, 0, np.where(np.array(data.labels) == ":", 1, 2))
    # Standardised for the penalty; the constant is the regression's own.
    means, deviations = features_P5[:, :-1].mean(axis=0), features_P5[:, :-1].std(axis=0) + 1e-9
    labels = LogisticRegression(max_iter=1000).fit((features_P5[:, :-1] - means) / deviations, kinds_P)
    weights = np.zeros((3, features_P5.shape[1]))
    weights[labels.classes_, :-1] = labels.coef_ / deviations
    weights[labels.classes_, -1] = labels.intercept_ - (labels.coef_ / deviations) @ means
    entailed = gold_P != 0
    scales = np.abs(direction_P2).mean(axis=0) + 1e-9
    sides = direction_P2[entailed] / scales
    # Each pair both ways round: the curve goes through 1/2 where nothing sets the sides apart.
    direction = LogisticRegression(fit_intercept=False).fit(
        np.concatenate([sides, -sides]), np.concatenate([gold_P[entailed], -gold_P[entailed]])
    )
    return replace(
        model.relations.confidence,
        entailment_weights=_rounded(weights[0] - weights[2]),
        paraphrase_weights=_rounded(weights[1] - weights[2]),
        direction_weights=_rounded(direction.coef_[0] / scales),
    )


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
