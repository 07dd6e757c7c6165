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
from numpy.typing import NDArray

from facets.errors import CheckpointError
from facets.storage.files import write_atomically
from facets.storage.fitted import FITTED_FORMAT, read_fitted

ScoreCurves = Mapping[str, NDArray[np.float64]]  # method, such as sif+attention -> curve [2, N], see apply_curve

_FILE_NAME = "calibration.json"


def apply_curve(curve_2N: NDArray[np.float64], scores_P: NDArray[np.floating]) -> NDArray[np.float64]:
    """Maps scores to [0, 1] by a monotone, piecewise linear curve that is constant beyond its ends.

    ``curve_2N``: increasing scores and their calibrated values, non-decreasing in [0, 1]. ``scores_P``: scores of one
    method.

    Example:
        >>> apply_curve(np.array([[-1.0, 0.0], [0.2, 1.0]]), np.array([-2.0, -0.5, 0.0])).round(6).tolist()
        [0.2, 0.6, 1.0]
    """
    calibrated_P: NDArray[np.float64] = np.interp(scores_P, curve_2N[0], curve_2N[1])
    return calibrated_P


def read_score_curves(folder: Path, revision: str) -> dict[str, NDArray[np.float64]]:
    """The curves of a checkpoint folder, ``[2, N]`` float64 by method; empty when there is no file.

    Curves that were fitted on another ``revision`` of the model are ignored with a warning.

    Raises:
        CheckpointError: The file is damaged or of an unknown format.
    """
    return read_fitted(folder / _FILE_NAME, revision, _parse) or {}


def _parse(content: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    curves = {
        str(name): np.array([curve["scores"], curve["calibrated"]], dtype=np.float64)
        for name, curve in content["curves"].items()
    }
    for name, curve_2N in curves.items():
        _check(curve_2N, name)
    return curves


def write_score_curves(folder: Path, revision: str, curves: ScoreCurves, *, source: str) -> Path:
    """Writes ``calibration.json`` atomically and returns its path.

    ``revision``: revision of the model the curves were fitted on. ``source``: origin of the human scores, for readers.

    Raises:
        CheckpointError: A curve is not monotone or not in [0, 1].
    """
    for name, curve_2N in curves.items():
        _check(curve_2N, name)
    points = {
        name: {"scores": curve_2N[0].tolist(), "calibrated": curve_2N[1].tolist()} for name, curve_2N in curves.items()
    }
    head = {"format": FITTED_FORMAT, "revision": revision, "source": source}
    # One line for each curve, so that diffs show which curves changed.
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(points[name])}" for name in sorted(points))
    content = f'{json.dumps(head)[:-1]}, "curves": {{\n{lines}\n}}}}\n'
    file = folder / _FILE_NAME
    with write_atomically(file, durable=False) as part:
        part.write_text(content, encoding="utf-8")
    return file


def _check(curve_2N: NDArray[np.float64], name: str) -> None:
    fits = curve_2N.ndim == 2 and curve_2N.shape[0] == 2 and curve_2N.shape[1] >= 2
    if not (
        fits
        and np.isfinite(curve_2N).all()
        and (np.diff(curve_2N[0]) > 0).all()
        and (np.diff(curve_2N[1]) >= 0).all()
        and 0 <= curve_2N[1, 0] <= curve_2N[1, -1] <= 1
    ):
        raise CheckpointError(f"{name}: expected scores that grow and values in [0, 1] that never fall")
