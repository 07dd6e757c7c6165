"""Fits thresholds and probabilities of a relation model, and the weights of entailment.

Shape suffixes: E entity pairs, P patterns or pairs of patterns, R relations, B best relations, F features of
entailment, G features of paraphrase, W all weights; features include the constant.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from torch import Tensor

from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.relations.engine import RelationEngine
from facets.relations.entailment import PairFeatures, entailment_features, label_probabilities
from facets.relations.model import RelationModel
from facets.relations.scoring import combined_scores
from facets.relations.tables import CONSTANT, FEATURES, PARAPHRASE_FEATURES, Confidence, EntailmentWeights, write_tables
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import CalibratedModel, DataFile, DryRun
from facets_lab.evaluation.statistics import expected_calibration_error
from facets_lab.relations.entailment import EntailmentData, pair_metrics, read_entailment, weigh_features
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
_PRIOR_STRENGTH = 0.5  # weight of the squared distance from the prior weights; chosen across sources
_MAX_STEPS = 2000

Source = tuple[PairFeatures, EntailmentData]


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


def calibrate_entailment(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pairs, as for the command entailment.")],
    name_or_path: CalibratedModel = None,
    dry_run: DryRun = False,
) -> Report:
    """Fit the weights of the entailment features; all files have equal weight.

    Reports each file with weights fitted on the other files (across) and on all files (inside).

    Example: facets-eval calibrate-entailment entailment-dev.tsv levy_holt-dev.tsv --model models/facets-relations-en
    """
    folder = find_model(name_or_path or TASKS["relations"].default)
    model = load(folder, RelationModel)
    sources = dict[str, Source]()
    for file in files:
        data = read_entailment(file)
        sources[str(file)] = entailment_features(model, data.premises, data.hypotheses), data
    weights = fit_weights(list(sources.values()))
    report = {}
    for name, source in sources.items():
        others = [other for key, other in sources.items() if key != name]
        across = fit_weights(others) if others else EntailmentWeights()
        report[name] = {"across": _measure(source, across), "inside": _measure(source, weights)}
    if not dry_run:
        confidence = model.relations.confidence.replaced(entailment=weights)
        write_tables(folder, replace(model.relations, confidence=confidence), model.table)
    return {"data": [str(file) for file in files], "models": {model.name: report}}


def fit_weights(sources: Sequence[Source]) -> EntailmentWeights:
    """Maximum a posteriori weights: ``sum -log P(a possible label)`` plus a normal prior; equal source weights."""
    prior = EntailmentWeights()
    names = [*prior.entails], [*prior.paraphrase]
    start_W = np.array([*prior.entails.values(), *prior.paraphrase.values()])
    columns = [(_columns(features, names), torch.from_numpy(data.possible)) for features, data in sources]

    def loss(weights_W: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = torch.tensor(weights_W, requires_grad=True)
        entails_F, paraphrase_G = weights[: len(names[0])], weights[len(names[0]) :]
        total = _PRIOR_STRENGTH / 2 * (weights - torch.from_numpy(start_W)).square().sum()
        for (forward_PF, backward_PF, symmetric_PG), possible_P4 in columns:
            logits = [forward_PF @ entails_F, backward_PF @ entails_F, symmetric_PG @ paraphrase_G]
            shares_P4 = torch.stack([*logits, torch.zeros_like(logits[0])], dim=1).log_softmax(dim=1)
            likelihood_P = shares_P4.masked_fill(~possible_P4, -torch.inf).logsumexp(dim=1)
            total = total - likelihood_P.mean() / len(columns)
        (slope_W,) = torch.autograd.grad(total, weights)
        return total.item(), slope_W.numpy()

    # A source with few pairs must not change the sign of a feature's weight.
    bounds = [(0.0, None) if weight > 0 else (None, 0.0) for weight in start_W]
    fitted = minimize(loss, start_W, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MAX_STEPS})
    rounded = [round(float(weight), 4) for weight in fitted.x]
    return EntailmentWeights(
        entails=dict(zip(names[0], rounded, strict=False)),
        paraphrase=dict(zip(names[1], rounded[len(names[0]) :], strict=True)),
    )


def _columns(features: PairFeatures, names: tuple[list[str], list[str]]) -> list[Tensor]:
    """The named columns of the forward, backward and symmetric features."""
    rows_F = [(*FEATURES, CONSTANT).index(name) for name in names[0]]
    rows_G = [(*PARAPHRASE_FEATURES, CONSTANT).index(name) for name in names[1]]
    blocks = ((features.forward, rows_F), (features.backward, rows_F), (features.symmetric, rows_G))
    return [torch.from_numpy(np.pad(block, ((0, 0), (0, 1)), constant_values=1.0)[:, rows]) for block, rows in blocks]


def _measure(source: Source, weights: EntailmentWeights) -> dict[str, object]:
    """``pair_metrics`` and the calibration of the confidence."""
    features, data = source
    scores = weigh_features(features, weights)
    if data.is_judged_one_way:
        claims_P, right_P = scores.follows, data.relevant
    else:
        probabilities_P4 = label_probabilities(features, weights)
        label_P = probabilities_P4.argmax(axis=1)
        claims_P, right_P = probabilities_P4.max(axis=1), data.possible[np.arange(len(label_P)), label_P]
    return {**pair_metrics(scores, data), "calibration_error": expected_calibration_error(claims_P, right_P)}
