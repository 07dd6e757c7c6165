"""Fits what a relation model's scores mean: thresholds, probabilities, the look-up's scale, entailment weights.

Shape suffixes: E entity pairs, P patterns or pairs of patterns, R relations, F features.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from facets.evaluation.entailment import EntailmentData
from facets.evaluation.relations import PairData, best_threshold, pair_scores
from facets.model.relation_model import RelationModel
from facets.model.relation_tables import RelationCalibration
from facets.tasks.entailment import label_features
from facets.tasks.relations import RelationScorer

__all__ = ["fit_entailment", "fit_relations", "with_calibration"]

# A relation with so many pairs in the data gets a threshold halfway between its own and the common one.
_PRIOR_POSITIVES = 4.0
_L2_WEIGHT = 0.02


def with_calibration(model: RelationModel, calibration: RelationCalibration) -> RelationModel:
    """The same model with other numbers."""
    return RelationModel(
        model.network,
        model.words,
        config=model.config,
        relations=replace(model.relations, calibration=calibration),
        table=model.table,
        revision=model.revision,
    )


def fit_relations(model: RelationModel, data: PairData) -> RelationCalibration:
    """Thresholds, probabilities and the look-up's scale from pairs whose relations are known.

    The look-up's cosines get the scale at which the maximum of both ranks pairs best. A relation's threshold lies
    so many standard deviations above the mean of its scores, the same number for all: the one with the best micro F1.
    Where the data has pairs of the relation, it moves towards the middle between them and the others.
    """
    names = model.relations.names
    calibration = replace(model.relations.calibration, schema_scale=1.0, schema_shift=0.0)
    arrays = RelationScorer(with_calibration(model, calibration)).score_arrays(data.patterns, names)
    gold_ER = data.gold(names)
    scale, shift = _schema_scale(arrays.symmetric, arrays.universal_schema, data, gold_ER)
    scores_PR = np.fmax(arrays.symmetric, np.clip(scale * arrays.universal_schema + shift, -1.0, 1.0))
    scores_ER = pair_scores(data, scores_PR)
    thresholds_R = _thresholds(scores_ER, gold_ER, num_missed=data.num_unknown(names))
    distances = (scores_ER - thresholds_R).reshape(-1, 1)
    curve = LogisticRegression(C=100.0).fit(distances, gold_ER.ravel())
    return replace(
        calibration,
        thresholds=tuple(round(float(t), 4) for t in thresholds_R),
        default_threshold=round(float(np.median(thresholds_R)), 4),
        slope=round(float(curve.coef_[0, 0]), 4),
        offset=round(float(curve.intercept_[0]), 4),
        schema_scale=round(scale, 4),
        schema_shift=round(shift, 4),
    )


def _schema_scale(
    symmetric_PR: NDArray[np.float32],
    schema_PR: NDArray[np.float32],
    data: PairData,
    gold_ER: NDArray[np.bool_],
) -> tuple[float, float]:
    """Scale and shift of the look-up with the best mean average precision of the maximum, on a small grid."""
    seen = np.isfinite(schema_PR)
    if not seen.any():
        return 1.0, 0.0
    ratio = float(symmetric_PR[seen].std() / max(float(schema_PR[seen].std()), 1e-6))
    best = (-1.0, 1.0, 0.0)
    for factor in (0.25, 0.5, 0.75, 1.0, 1.5):
        scale = ratio * factor
        # Where the best hundredth of the look-up's scores lands among the best of the facets' scores.
        for level in (97.0, 99.0, 99.7):
            top = float(np.percentile(schema_PR[seen], level))
            for target in (95.0, 98.0, 99.5):
                shift = float(np.percentile(symmetric_PR[seen], target)) - scale * top
                scores_ER = pair_scores(data, np.fmax(symmetric_PR, np.clip(scale * schema_PR + shift, -1.0, 1.0)))
                best = max(best, (_mean_precision(scores_ER, gold_ER), scale, shift))
    return best[1], best[2]


def _mean_precision(scores_ER: NDArray[np.float32], gold_ER: NDArray[np.bool_]) -> float:
    present = np.flatnonzero(gold_ER.any(axis=0))
    return float(np.mean([average_precision_score(gold_ER[:, r], scores_ER[:, r]) for r in present]))


def _thresholds(scores_ER: NDArray[np.float32], gold_ER: NDArray[np.bool_], *, num_missed: int) -> NDArray[np.float64]:
    means_R, deviations_R = scores_ER.mean(axis=0), scores_ER.std(axis=0) + 1e-6
    level = best_threshold((scores_ER - means_R) / deviations_R, gold_ER, num_missed=num_missed)
    thresholds_R = (means_R + level * deviations_R).astype(np.float64)
    for relation in np.flatnonzero(gold_ER.any(axis=0)):
        own = best_threshold(scores_ER[:, relation], gold_ER[:, relation])
        # Down to the middle between the last pair that counts and the next one below.
        below = scores_ER[scores_ER[:, relation] < own, relation].max(initial=-1.0)
        weight = gold_ER[:, relation].sum() / (gold_ER[:, relation].sum() + _PRIOR_POSITIVES)
        thresholds_R[relation] += weight * ((own + below) / 2 - thresholds_R[relation])
    return np.clip(thresholds_R, -1.0, 1.0)


def fit_entailment(model: RelationModel, data: EntailmentData) -> RelationCalibration:
    """Weights of ``label_probabilities``: maximum likelihood, a small L2 penalty, each pair taken both ways round."""
    arrays = RelationScorer(model).entailment_scores(data.premises, data.hypotheses)
    forward_PF, backward_PF, alike_PF = label_features(arrays)
    num_weights, num_alike = forward_PF.shape[1], alike_PF.shape[1]
    labels_P = np.array(["><:N".index(label) for label in data.labels])
    mirrored_P = np.array([1, 0, 2, 3])[labels_P]
    rows = np.arange(len(labels_P))

    def loss(weights: NDArray[np.float64]) -> float:
        first, second = forward_PF @ weights[:num_weights], backward_PF @ weights[:num_weights]
        alike = alike_PF @ weights[num_weights:]
        total = 0.0
        for logits, labels in (((first, second), labels_P), ((second, first), mirrored_P)):
            columns = np.stack([*logits, alike, np.zeros_like(alike)], axis=1)
            top = columns.max(axis=1)
            normalisers = top + np.log(np.exp(columns - top[:, None]).sum(axis=1))
            total += float((normalisers - columns[rows, labels]).mean())
        return total / 2 + _L2_WEIGHT * float((weights**2).mean())

    fitted = minimize(loss, np.zeros(num_weights + num_alike), method="L-BFGS-B").x
    return replace(
        model.relations.calibration,
        entailment_weights=tuple(round(float(w), 4) for w in fitted[:num_weights]),
        paraphrase_weights=tuple(round(float(w), 4) for w in fitted[num_weights:]),
    )
