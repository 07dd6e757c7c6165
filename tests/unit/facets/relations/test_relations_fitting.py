"""Facets of a relation from example patterns."""

import numpy as np

from facets.relations.fitting import fitted_facets


def test_fitted_facets_are_the_examples_facets_when_they_fit() -> None:
    facets = np.eye(4, dtype=np.float32).reshape(2, 2, 4) * 5
    assert fitted_facets(facets, 4).tolist() == np.eye(4).tolist()
    assert fitted_facets(facets, 6)[4:].tolist() == np.eye(4)[:2].tolist()


def test_fitted_facets_are_cluster_centres_when_there_are_more() -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(3, 8, dtype=np.float32)
    facets = (np.repeat(centres, 10, axis=0) + 0.05 * rng.standard_normal((30, 8))).astype(np.float32)
    found = fitted_facets(facets.reshape(10, 3, 8), 3)
    assert sorted((found @ centres.T).argmax(axis=1).tolist()) == [0, 1, 2]
    assert (found @ centres.T).max(axis=1).min() > 0.98
