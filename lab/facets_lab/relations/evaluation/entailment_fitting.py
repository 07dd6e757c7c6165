"""Fits what the features of a pair count for entailment, on several sources at once, and measures it across them.

Shape suffixes: P pairs, F features of entailment, G of paraphrase, each with the constant, W all weights.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from facets.errors import InvalidInputError
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.relations.engine import RelationEngine
from facets.relations.entailment import label_probabilities
from facets.relations.entailment_weights import CONSTANT, FEATURES, PARAPHRASE_FEATURES, EntailmentWeights
from facets.relations.model import RelationModel
from facets.relations.pair_features import PairFeatures
from facets.relations.tables import write_tables
from facets_lab.evaluation.reliability import expected_calibration_error, reliability
from facets_lab.relations.evaluation.entailment import pair_metrics, weighed
from facets_lab.relations.evaluation.entailment_data import EntailmentData, read_entailment

__all__ = ["fit_across_sources", "fit_entailment_model", "fit_weights"]

# Of the squared distance from the weights that are believed beforehand; chosen across sources, above all for
# calibration.
_PRIOR_STRENGTH = 0.5
_MAX_STEPS = 2000

Source = tuple[PairFeatures, EntailmentData]


def fit_entailment_model(name_or_path: str | None, files: Sequence[Path], *, dry_run: bool) -> dict[str, object]:
    """Fits a model's weights of entailment and, unless it is a dry run, stores them with it.

    Args:
        name_or_path: The model; None is the shipped one.
        files: Pairs, as for ``facets-eval entailment``; each is a source and weighs alike.
        dry_run: Leave the model as it is.

    Returns:
        The report of ``fit_across_sources`` under the model's name.
    """
    folder = find_model(TASKS["relations"].default if name_or_path is None else name_or_path)
    model = load(folder, RelationModel)
    weights, report = fit_across_sources(model, files)
    if not dry_run:
        confidence = replace(model.relations.confidence, entailment=weights)
        write_tables(folder, replace(model.relations, confidence=confidence), model.table)
    return {"data": [str(file) for file in files], "models": {model.name: report}}


def fit_across_sources(
    model: RelationModel, files: Sequence[Path]
) -> tuple[EntailmentWeights, dict[str, dict[str, dict[str, object]]]]:
    """Weights fitted on all files, and a report by file.

    Returns:
        The weights; by file, metrics of weights fitted on the *other* files (``across``; of what is believed
        beforehand, when there is no other), and of those fitted on all (``inside``).

    Raises:
        InvalidInputError: A bad line, or two files of one name.
    """
    engine = RelationEngine(model)
    sources: dict[str, Source] = {}
    for file in files:
        data = read_entailment(file)
        if file.name in sources:
            raise InvalidInputError(f"must have different names, got {file.name} twice", path="entailment")
        sources[file.name] = engine.entailment_features(data.premises, data.hypotheses), data
    weights = fit_weights(list(sources.values()))
    report = {}
    for name, source in sources.items():
        others = [other for key, other in sources.items() if key != name]
        report[name] = {
            "across": _measured(source, fit_weights(others) if others else EntailmentWeights()),
            "inside": _measured(source, weights),
        }
    return weights, report


def fit_weights(sources: Sequence[Source]) -> EntailmentWeights:
    """Most likely weights, each source weighing alike: ``sum -log P(a possible label)`` plus a normal prior.

    A pair that was judged in one direction only counts by the probability of both labels that it may have.
    """
    believed = EntailmentWeights()
    names = [*believed.entails], [*believed.paraphrase]
    start_W = np.array([*believed.entails.values(), *believed.paraphrase.values()])
    columns = [(_columns(features, names), data.possible) for features, data in sources]

    def loss(weights_W: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        distance_W = weights_W - start_W
        total, gradient_W = _PRIOR_STRENGTH / 2 * float(distance_W @ distance_W), _PRIOR_STRENGTH * distance_W
        for own, possible_P4 in columns:
            value, slope_W = _negative_likelihood(weights_W, own, possible_P4)
            total, gradient_W = total + value / len(columns), gradient_W + slope_W / len(columns)
        return total, gradient_W

    # What a feature says must not turn round because a source has too few pairs to show it.
    bounds = [(0.0, None) if weight > 0 else (None, 0.0) for weight in start_W]
    fitted = minimize(loss, start_W, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MAX_STEPS})
    rounded = [round(float(weight), 4) for weight in fitted.x]
    return EntailmentWeights(
        dict(zip(names[0], rounded, strict=False)), dict(zip(names[1], rounded[len(names[0]) :], strict=True))
    )


_Columns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _columns(features: PairFeatures, names: tuple[list[str], list[str]]) -> _Columns:
    """The named columns forward, backward and symmetric."""
    ones_P1 = np.ones((len(features.forward), 1))
    places_F = [(*FEATURES, CONSTANT).index(name) for name in names[0]]
    places_G = [(*PARAPHRASE_FEATURES, CONSTANT).index(name) for name in names[1]]
    forward, backward, symmetric = (
        np.concatenate([block, ones_P1], axis=1) for block in (features.forward, features.backward, features.symmetric)
    )
    return forward[:, places_F], backward[:, places_F], symmetric[:, places_G]


def _negative_likelihood(
    weights_W: NDArray[np.float64], columns: _Columns, possible_P4: NDArray[np.bool_]
) -> tuple[float, NDArray[np.float64]]:
    """Mean over pairs, and its gradient."""
    forward_PF, backward_PF, symmetric_PG = columns
    entails_F, paraphrase_G = weights_W[: forward_PF.shape[1]], weights_W[forward_PF.shape[1] :]
    logits_P4 = np.zeros(possible_P4.shape)
    logits_P4[:, 0] = forward_PF @ entails_F
    logits_P4[:, 1] = backward_PF @ entails_F
    logits_P4[:, 2] = symmetric_PG @ paraphrase_G
    shares_P4 = np.exp(logits_P4 - logits_P4.max(axis=1, keepdims=True))
    shares_P4 /= shares_P4.sum(axis=1, keepdims=True)
    possible_shares_P4 = np.where(possible_P4, shares_P4, 0.0) + 1e-300
    likelihood_P1 = possible_shares_P4.sum(axis=1, keepdims=True)
    slopes_P4 = (shares_P4 - possible_shares_P4 / likelihood_P1) / len(logits_P4)
    gradient_W = np.concatenate(
        [forward_PF.T @ slopes_P4[:, 0] + backward_PF.T @ slopes_P4[:, 1], symmetric_PG.T @ slopes_P4[:, 2]]
    )
    return float(-np.log(likelihood_P1).mean()), gradient_W


def _measured(source: Source, weights: EntailmentWeights) -> dict[str, object]:
    """What ``facets-eval entailment`` reports of the answers, and how far their confidence is off."""
    features, data = source
    scores = weighed(features, weights)
    if data.is_judged_one_way:
        claims_P, right_P = scores.follows, data.relevant
    else:
        probabilities_P4 = label_probabilities(features, weights)
        label_P = probabilities_P4.argmax(axis=1)
        claims_P, right_P = probabilities_P4.max(axis=1), data.possible[np.arange(len(label_P)), label_P]
    return {
        **pair_metrics(scores, data),
        "calibration_error": expected_calibration_error(claims_P, right_P),
        "reliability": [found.to_dict() for found in reliability(claims_P, right_P)],
    }
