"""Fusions of two signals: scale does not matter, weights do."""

import numpy as np
import pytest
from facets_lab.documents.evaluation.fusion import DEFAULT_FUSION, FUSIONS, convex_sum, reciprocal_ranks, z_scores
from numpy.testing import assert_allclose

VECTOR = np.array([0.9, 0.5, 0.1], dtype=np.float32)
LEXICAL = np.array([0.0, 30.0, 10.0], dtype=np.float32)


def test_z_scores_have_mean_0_and_deviation_1() -> None:
    assert_allclose([z_scores(LEXICAL).mean(), z_scores(LEXICAL).std()], [0, 1], atol=1e-12)
    assert_allclose(z_scores(np.ones(3)), 0)


def test_a_convex_sum_does_not_depend_on_scales() -> None:
    fused = convex_sum(VECTOR, LEXICAL, lexical_weight=0.3)
    assert_allclose(fused, convex_sum(VECTOR * 7 - 2, LEXICAL / 3 + 5, lexical_weight=0.3), atol=1e-6)
    assert_allclose(fused, 0.7 * z_scores(VECTOR) + 0.3 * z_scores(LEXICAL))


@pytest.mark.parametrize(("weight", "first"), [(0.05, 0), (0.95, 1)])
def test_the_weight_decides_who_wins(weight: float, first: int) -> None:
    assert convex_sum(VECTOR, LEXICAL, lexical_weight=weight).argmax() == first


def test_reciprocal_ranks_are_summed() -> None:
    assert_allclose(reciprocal_ranks(VECTOR, LEXICAL), [1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def test_the_default_is_one_of_the_table() -> None:
    assert_allclose(FUSIONS[DEFAULT_FUSION](VECTOR, LEXICAL), convex_sum(VECTOR, LEXICAL, lexical_weight=0.5))
