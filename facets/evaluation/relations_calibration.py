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
from facets.evaluation.relations import PairData, best_decision, best_threshold, near_best, pair_scores
from facets.model.relation_model import RelationModel
from facets.model.relation_tables import RelationCalibration
from facets.tasks.entailment import EntailmentArrays, label_features
from facets.tasks.relations import RelationScorer

__all__ = ["fit_entailment", "fit_label_weights", "fit_relations", "with_calibration"]

# A relation with so many pairs in the data gets a threshold halfway between its own and the common one.
_PRIOR_POSITIVES = 4.0
_OWN_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_L2_WEIGHT = 0.02
# Of pairs with entailment taken the other way round: they teach the direction.
_MIRRORED_WEIGHT = 0.5


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

    The look-up's cosines get the scale at which the maximum of both ranks pairs best. The threshold follows the mean
    score of each relation as far as that gives the best micro F1. Where the data has pairs of the relation, it moves
    towards the middle between them and the others.
    """
    names = model.relations.names
    calibration = replace(model.relations.calibration, schema_scale=1.0, schema_shift=0.0)
    arrays = RelationScorer(with_calibration(model, calibration)).score_arrays(data.patterns, names)
    gold_ER = data.gold(names)
    scale, shift = _schema_scale(arrays.symmetric, arrays.universal_schema, data, gold_ER)
    scores_PR = np.fmax(arrays.symmetric, np.clip(scale * arrays.universal_schema + shift, -1.0, 1.0))
    scores_ER = pair_scores(data, scores_PR)
    thresholds_R, margin = _thresholds(scores_ER, gold_ER, num_missed=data.num_unknown(names))
    distances_ER = scores_ER - thresholds_R
    gaps_ER = distances_ER - distances_ER.max(axis=1, keepdims=True)
    features = np.stack([distances_ER.ravel(), gaps_ER.ravel()], axis=1)
    curve = LogisticRegression(C=100.0).fit(features, gold_ER.ravel())
    return replace(
        calibration,
        thresholds=tuple(round(float(t), 4) for t in thresholds_R),
        default_threshold=round(float(np.median(thresholds_R)), 4),
        margin=margin,
        slope=round(float(curve.coef_[0, 0]), 4),
        gap_slope=round(float(curve.coef_[0, 1]), 4),
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


def _thresholds(
    scores_ER: NDArray[np.float32], gold_ER: NDArray[np.bool_], *, num_missed: int
) -> tuple[NDArray[np.float64], float]:
    """Thresholds ``[R]`` and the margin."""
    decisions = []
    for share in _OWN_SHARES:
        # What a relation's scores are on average, as far as it is taken off.
        usual_R = share * (scores_ER.mean(axis=0) - float(scores_ER.mean()))
        f1, margin, threshold = best_decision(scores_ER - usual_R, gold_ER, num_missed=num_missed)
        decisions.append((f1, share, margin, threshold))
    _, share, margin, threshold = max(decisions)
    thresholds_R = share * (scores_ER.mean(axis=0) - float(scores_ER.mean())) + threshold
    kept_ER = near_best((scores_ER - thresholds_R).astype(np.float32), margin)
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


def fit_entailment(model: RelationModel, data: EntailmentData) -> RelationCalibration:
    """Weights of ``label_probabilities`` by maximum likelihood with a small L2 penalty.

    Pairs are taken as they stand, premise first; those with entailment the other way round too.
    """
    arrays = RelationScorer(model).entailment_scores(data.premises, data.hypotheses)
    weights, alike_weights = fit_label_weights(arrays, data)
    return replace(
        model.relations.calibration,
        entailment_weights=tuple(round(float(w), 4) for w in weights),
        paraphrase_weights=tuple(round(float(w), 4) for w in alike_weights),
    )


def fit_label_weights(
    arrays: EntailmentArrays, data: EntailmentData
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of "entails" and of "paraphrase" for the features of ``label_features``."""
    forward_PF, backward_PF, alike_PF = label_features(arrays)
    num_weights, num_alike = forward_PF.shape[1], alike_PF.shape[1]
    labels_P = np.array(["><:N".index(label) for label in data.labels])
    entailed = np.flatnonzero(labels_P < 2)
    first_QF = np.concatenate([forward_PF, backward_PF[entailed]])
    second_QF = np.concatenate([backward_PF, forward_PF[entailed]])
    alike_QF = np.concatenate([alike_PF, alike_PF[entailed]])
    labels_Q = np.concatenate([labels_P, 1 - labels_P[entailed]])
    shares_Q = np.where(np.arange(len(labels_Q)) < len(labels_P), 1.0, _MIRRORED_WEIGHT)
    rows = np.arange(len(labels_Q))

    def loss(weights: NDArray[np.float64]) -> float:
        own, alike = weights[:num_weights], weights[num_weights:]
        columns = [first_QF @ own, second_QF @ own, alike_QF @ alike, np.zeros(len(rows))]
        logits_Q4 = np.stack(columns, axis=1)
        top_Q = logits_Q4.max(axis=1)
        normalisers_Q = top_Q + np.log(np.exp(logits_Q4 - top_Q[:, None]).sum(axis=1))
        losses_Q = normalisers_Q - logits_Q4[rows, labels_Q]
        return float((shares_Q * losses_Q).sum() / shares_Q.sum()) + _L2_WEIGHT * float((weights**2).mean())

    fitted = minimize(loss, np.zeros(num_weights + num_alike), method="L-BFGS-B").x
    return fitted[:num_weights], fitted[num_weights:]
