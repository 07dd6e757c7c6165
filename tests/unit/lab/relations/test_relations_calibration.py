import numpy as np
import pytest
from facets_lab.relations.calibration import fit_weights
from facets_lab.relations.entailment import EntailmentData

from facets.relations.entailment import PairFeatures, label_probabilities
from facets.relations.tables import FEATURES, EntailmentWeights


def source(labels: str, **columns: list[float]) -> tuple[PairFeatures, EntailmentData]:
    """Pairs with the given features; ``NAME_back`` is that of the exchanged sides, else both are alike."""
    forward = np.zeros((len(labels), len(FEATURES)))
    backward = forward.copy()
    for name, values in columns.items():
        if not name.endswith("_back"):
            forward[:, FEATURES.index(name)] = values
            backward[:, FEATURES.index(name)] = columns.get(f"{name}_back", values)
    patterns = ["$ARG1 a $ARG2"] * len(labels)
    possible = np.array([[label == other for other in "><:N"] for label in labels])
    return PairFeatures(forward, backward), EntailmentData(patterns, patterns, possible, False)


def test_weights_follow_the_pairs_and_stay_where_pairs_say_nothing() -> None:
    pairs = source(
        ">>>>::NN" * 20,
        similarity=[0.8, 0.8, 0.8, 0.8, 0.9, 0.9, 0.1, 0.1] * 20,
        hypernym=[0.9, 0.9, 0.9, 0.9, 0.0, 0.0, 0.0, 0.0] * 20,
        hypernym_back=[0.0] * 160,
    )
    weights, believed = fit_weights([pairs]), EntailmentWeights()
    assert weights.entails["hypernym"] > believed.entails["hypernym"]
    assert weights.entails["negated"] == pytest.approx(believed.entails["negated"], abs=1e-3)
    labels = label_probabilities(pairs[0], weights).argmax(axis=1)
    assert labels[:8].tolist() == [0, 0, 0, 0, 2, 2, 3, 3]


def test_each_source_weighs_alike() -> None:
    small = source("N" * 4, similarity=[0.8] * 4)
    few, many = (source(":" * size, similarity=[0.8] * size) for size in (4, 400))
    one, other = fit_weights([small, few]), fit_weights([small, many])
    assert one.paraphrase["similarity"] == pytest.approx(other.paraphrase["similarity"], abs=1e-3)
    assert fit_weights([many]).paraphrase["similarity"] > one.paraphrase["similarity"]
