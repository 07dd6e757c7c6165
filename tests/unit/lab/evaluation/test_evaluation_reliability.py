import numpy as np
import pytest
from facets_lab.evaluation.reliability import expected_calibration_error, reliability


def test_bins_hold_every_claim_once() -> None:
    confidence = np.array([0.0, 0.05, 0.3, 1.0])
    bins = reliability(confidence, np.array([False, True, False, True]))
    assert [found.claims for found in bins] == [2, 1, 1]
    assert (bins[0].right, bins[0].confidence) == (0.5, pytest.approx(0.025))


def test_claims_that_are_right_as_often_as_they_say_have_no_error() -> None:
    confidence = np.full(10, 0.7)
    right = np.arange(10) < 7
    assert expected_calibration_error(confidence, right) == pytest.approx(0.0)
    assert expected_calibration_error(confidence, ~right) == pytest.approx(0.4)
    assert expected_calibration_error(confidence[:0], right[:0]) == 0.0
