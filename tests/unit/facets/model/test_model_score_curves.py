"""``calibration.json``: what is written is read, damage is reported, curves of another model are left out."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from facets.errors import CheckpointError
from facets.model import load
from facets.model.score_curves import read_score_curves, write_score_curves

CURVES = {
    "sif+attention": np.array([[-0.5, 0.25, 1.0], [0.0, 0.125, 1.0]]),
    "codebook": np.array([[-1.0, 0.0], [0.5, 0.5]]),
}


def test_curves_come_back(tmp_path: Path) -> None:
    file = write_score_curves(tmp_path, "r1", CURVES, source="people")
    read = read_score_curves(tmp_path, "r1")
    assert set(read) == set(CURVES)
    for name, curve_2N in CURVES.items():
        np.testing.assert_array_equal(read[name], curve_2N)
    assert json.loads(file.read_text())["source"] == "people"
    assert [path.name for path in tmp_path.iterdir()] == ["calibration.json"]


def test_curves_of_another_model_are_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_score_curves(tmp_path, "r1", CURVES, source="people")
    with caplog.at_level(logging.WARNING):
        assert read_score_curves(tmp_path, "r2") == {}
    assert "r1" in caplog.text and "r2" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1, "revision": "r1"}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [1, 0], "calibrated": [0, 1]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, 1], "calibrated": [0, 2]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, 1], "calibrated": [1, 0]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, NaN], "calibrated": [0, 1]}}}',
    ],
)
def test_a_damaged_file_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "calibration.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"calibration\.json"):
        read_score_curves(tmp_path, "r1")


def test_shipped_curves_were_fitted_on_the_model_they_lie_beside() -> None:
    folder = Path(__file__).parents[4] / "models" / "facets-en"
    curves = read_score_curves(folder, load(folder).revision)
    assert {"codebook", "average", "sif", "sif+attention"} <= set(curves)  # else: facets-eval calibrate
