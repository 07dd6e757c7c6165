"""Calibration of similarity scores: ``calibration.json`` of a checkpoint folder, with a curve for each method.

::

    {"format": 1, "revision": "0123456789ab", "source": "origin of the human scores",
     "curves": {"codebook": {"scores": [-1.2, -0.4], "calibrated": [0.1, 0.9]}, "sif+attention": ...}}

Shape suffixes: P pairs, N points of a curve.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from facets.arrays import Doubles, Vectors
from facets.errors import CheckpointError
from facets.storage.files import write_whole
from facets.storage.fitted import FITTED_FORMAT, read_fitted

ScoreCurves = Mapping[str, Doubles]  # method, such as sif+attention -> curve [2, N], see apply_curve

_FILE_NAME = "calibration.json"


def apply_curve(curve_2N: Doubles, scores_P: Vectors) -> Doubles:
    """Maps the scores of one method to [0, 1] by a monotone, piecewise linear curve that is constant beyond its ends.

    ``curve_2N``: increasing scores and their calibrated values, non-decreasing in [0, 1].

    Example:
        >>> apply_curve(np.array([[-1.0, 0.0], [0.2, 1.0]]), np.array([-2.0, -0.5, 0.0])).round(6).tolist()
        [0.2, 0.6, 1.0]
    """
    calibrated_P: Doubles = np.interp(scores_P, curve_2N[0], curve_2N[1])
    return calibrated_P


def read_score_curves(folder: Path, revision: str) -> dict[str, Doubles]:
    """The curves of a checkpoint folder, ``[2, N]`` by method; empty if there are none for this revision."""
    return read_fitted(folder / _FILE_NAME, revision, _parse) or {}


def _parse(content: Mapping[str, Any]) -> dict[str, Doubles]:
    return {
        str(name): _checked(np.array([curve["scores"], curve["calibrated"]], dtype=np.float64), name)
        for name, curve in content["curves"].items()
    }


def write_score_curves(folder: Path, revision: str, curves: ScoreCurves, *, source: str) -> Path:
    """Writes ``calibration.json`` for a model of this revision; ``source``: origin of the human scores, for readers."""
    for name, curve_2N in curves.items():
        _checked(curve_2N, name)
    points = {name: {"scores": curves[name][0].tolist(), "calibrated": curves[name][1].tolist()} for name in curves}
    content = {"format": FITTED_FORMAT, "revision": revision, "source": source, "curves": points}
    file = folder / _FILE_NAME
    write_whole(file, json.dumps(content) + "\n")
    return file


def _checked(curve_2N: Doubles, name: str) -> Doubles:
    fits = curve_2N.ndim == 2 and curve_2N.shape[0] == 2 and curve_2N.shape[1] >= 2 and np.isfinite(curve_2N).all()
    steps = np.diff(curve_2N) if fits else curve_2N
    if not (fits and (steps[0] > 0).all() and (steps[1] >= 0).all() and 0 <= curve_2N[1, 0] <= curve_2N[1, -1] <= 1):
        raise CheckpointError(f"{name}: expected scores that grow and values in [0, 1] that never fall")
    return curve_2N
