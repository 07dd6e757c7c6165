"""Calibrated scores: on the scale asked for, in the order of the scores, refused without a curve."""

import numpy as np
import pytest

from facets.errors import ConfigError
from facets.model.contract import TextModel
from facets.texts import ScoreRange, score_pairs
from facets.texts.similarity_methods import SimilarityMethod

PAIRS = [("the cat is a dog", "kitten puppy"), ("cat", "piano"), ("cat", "cat"), ("qwxz", "cat")]


@pytest.fixture
def calibrated(model: TextModel) -> TextModel:
    model.score_curves["average+attention"] = np.array([[-1.0, 0.5, 1.0], [0.0, 0.25, 1.0]])
    return model


@pytest.mark.parametrize(("score_range", "highest"), [("0..1", 1.0), (ScoreRange.ZERO_TO_FIVE, 5.0)])
def test_scores_are_mapped_by_the_curve_of_the_method(
    calibrated: TextModel, score_range: ScoreRange, highest: float
) -> None:
    result = score_pairs(calibrated, PAIRS, SimilarityMethod.AVERAGE, attention=True, score_range=score_range)
    assert result.calibrated is not None and result.calibrated.dtype == np.float32
    expected = np.interp(result.scores, [-1.0, 0.5, 1.0], [0.0, 0.25, 1.0]) * highest
    np.testing.assert_allclose(result.calibrated, expected, atol=1e-6)
    assert result.calibrated[2] == pytest.approx(highest)  # a text with itself
    assert (np.argsort(result.calibrated, kind="stable") == np.argsort(result.scores, kind="stable")).all()


def test_nothing_is_calibrated_unless_asked_for(calibrated: TextModel) -> None:
    assert score_pairs(calibrated, PAIRS, SimilarityMethod.AVERAGE, attention=True).calibrated is None


def test_a_method_without_a_curve_is_refused_with_those_there_are(calibrated: TextModel) -> None:
    with pytest.raises(ConfigError, match=r"curve for average, it has average\+attention"):
        score_pairs(calibrated, PAIRS, SimilarityMethod.AVERAGE, score_range=ScoreRange.ZERO_TO_ONE)


def test_an_unknown_scale_is_refused(calibrated: TextModel) -> None:
    with pytest.raises(ValueError, match="percent"):
        score_pairs(calibrated, PAIRS, SimilarityMethod.AVERAGE, attention=True, score_range="percent")


def test_no_pairs_have_no_calibrated_scores(calibrated: TextModel) -> None:
    result = score_pairs(calibrated, [], SimilarityMethod.AVERAGE, attention=True, score_range=ScoreRange.ZERO_TO_ONE)
    assert result.calibrated is not None and result.calibrated.shape == (0,)
