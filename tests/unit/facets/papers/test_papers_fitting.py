"""Fitted vectors of candidates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from facets.papers.fitting import fit_vector


def facets(num_papers: int, num_facets: int = 3, dim: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_papers, num_facets, dim)).astype(np.float32)


@pytest.mark.parametrize("num_papers", [1, 2, 9])
def test_fitted_vector_points_along_the_best_facets(num_papers: int) -> None:
    papers = facets(num_papers)
    vector = fit_vector(papers, length=1.5, spread_DD=np.eye(8, dtype=np.float32))
    assert np.linalg.norm(vector) == pytest.approx(1.5, rel=1e-5)
    best = papers[np.arange(num_papers), (papers @ vector).argmax(axis=1)].sum(axis=0)
    assert_allclose(vector, 1.5 * best / np.linalg.norm(best), rtol=1e-4)
