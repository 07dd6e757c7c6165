import numpy as np
import pytest
from facets_lab.evaluation.statistics import expected_calibration_error, with_intervals


def test_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(3).normal(2.0, 1.0, size=400)
    result = with_intervals(lambda x: {"mean": float(x.mean())}, values, num_resamples=2000)
    error = values.std() / np.sqrt(400)
    assert list(result) == ["mean", "mean_ci95_from", "mean_ci95_to"]
    assert result["mean_ci95_from"] == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert result["mean_ci95_to"] == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_undefined_resamples_are_left_out() -> None:
    nothing = with_intervals(lambda x: {"x": None}, np.arange(3), num_resamples=5)
    assert nothing == {"x": None, "x_ci95_from": None, "x_ci95_to": None}
    sometimes = with_intervals(lambda x: {"x": 1.0 if 0 in x else None}, np.arange(3), num_resamples=50)
    assert sometimes == {"x": 1.0, "x_ci95_from": 1.0, "x_ci95_to": 1.0}


def test_claims_that_are_right_as_often_as_they_say_have_no_error() -> None:
    confidence = np.full(10, 0.7)
    right = np.arange(10) < 7
    assert expected_calibration_error(confidence, right) == pytest.approx(0.0)
    assert expected_calibration_error(confidence, ~right) == pytest.approx(0.4)
    assert expected_calibration_error(confidence[:0], right[:0]) == 0.0
