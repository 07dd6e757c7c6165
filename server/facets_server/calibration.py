"""Calibration: similarity scores on a scale of 0 to 1 that means the same for every method.

A curve is a monotone, piecewise linear map, fitted on pairs with gold similarities by isotonic regression. A
checkpoint folder may hold curves in ``calibration.json``::

    {"format": 1, "curves": {"codebook": {"scores": [-1.2, -0.4], "calibrated": [0.1, 0.9]}, "sif+attention": ...}}

Fit them for a model with ``python -m facets_server.calibration MODEL STS.tsv`` (score, sentence, sentence a line).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import CheckpointError, ConfigError
from facets.tasks.similarity import WORD_METHODS, PairScorer, SimilarityMethod

__all__ = ["Calibration", "Curve", "fit_curve", "main"]

FILE_NAME = "calibration.json"
_FORMAT = 1
_MAX_POINTS = 64
_HIGHEST_GOLD = 5.0  # of the STS benchmark


@dataclass(frozen=True, slots=True)
class Curve:
    """A monotone map of scores to [0, 1].

    Attributes:
        scores: ``[N]``, growing.
        calibrated: ``[N]``, in [0, 1], never falling.
    """

    scores: NDArray[np.float64]
    calibrated: NDArray[np.float64]

    def __post_init__(self) -> None:
        fits = self.scores.ndim == 1 and self.scores.shape == self.calibrated.shape and len(self.scores) >= 2
        if not (
            fits
            and np.isfinite(self.scores).all()
            and (np.diff(self.scores) > 0).all()
            and (np.diff(self.calibrated) >= 0).all()
            and 0 <= self.calibrated[0] <= self.calibrated[-1] <= 1
        ):
            raise ConfigError("a calibration curve must be two growing lists of equal length, the second in [0, 1]")

    def apply(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Calibrated scores in [0, 1], constant beyond the ends of the curve."""
        calibrated: NDArray[np.float64] = np.interp(scores, self.scores, self.calibrated)
        return calibrated


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of one model, by method (``sif``, ``sif+attention``)."""

    curves: Mapping[str, Curve] = field(default_factory=dict)

    def curve(self, method: SimilarityMethod, *, attention: bool) -> Curve:
        """The curve of a method.

        Raises:
            ConfigError: The model comes without it.
        """
        name = curve_name(method, attention=attention)
        if name not in self.curves:
            raise ConfigError(f"the model has no calibration curve for {name}, it has {sorted(self.curves) or 'none'}")
        return self.curves[name]

    @classmethod
    def load(cls, folder: Path) -> "Calibration":
        """Reads the curves of a checkpoint folder; none when there is no file.

        Raises:
            CheckpointError: The file is damaged.
        """
        file = folder / FILE_NAME
        if not file.exists():
            return cls()
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise CheckpointError(f"{file}: expected format {_FORMAT}, got {content['format']!r}")
            return cls(
                {
                    name: Curve(np.array(curve["scores"], np.float64), np.array(curve["calibrated"], np.float64))
                    for name, curve in content["curves"].items()
                }
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{file}: expected calibration curves, got a damaged file: {error}") from error

    def save(self, folder: Path) -> None:
        """Writes ``calibration.json``."""
        curves = {
            name: {"scores": curve.scores.round(6).tolist(), "calibrated": curve.calibrated.round(6).tolist()}
            for name, curve in sorted(self.curves.items())
        }
        text = json.dumps({"format": _FORMAT, "curves": curves}, indent=1)
        (folder / FILE_NAME).write_text(text + "\n", encoding="utf-8")


def curve_name(method: SimilarityMethod, *, attention: bool) -> str:
    """Name of a method's curve, with ``+attention`` where words are weighed."""
    return f"{method.value}+attention" if attention else method.value


def fit_curve(scores: Sequence[float], gold: Sequence[float]) -> Curve:
    """Isotonic regression of gold similarities on scores, thinned to few points.

    Minimizes the squared error over all never-falling maps by pooling adjacent violators, then keeps the middles
    of the pools.

    Args:
        scores: Scores of pairs, at least two different ones.
        gold: Gold similarities of the same pairs, in [0, 1].
    """
    order = np.argsort(scores, kind="stable")
    # A pool: sum of gold, sum of scores, number of pairs.
    pools: list[tuple[float, float, int]] = []
    for row in order:
        pool = (float(gold[row]), float(scores[row]), 1)
        while pools and pools[-1][0] / pools[-1][2] >= pool[0] / pool[2]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    points = np.array([(s / n, g / n) for g, s, n in pools])
    if len(points) < 2:  # gold does not grow with the scores at all
        low, high = float(np.min(scores)), float(np.max(scores))
        points = np.array([(low, points[0, 1]), (high, points[0, 1])])
    kept = np.unique(np.linspace(0, len(points) - 1, _MAX_POINTS).round().astype(int))
    return Curve(points[kept, 0], np.clip(points[kept, 1], 0.0, 1.0))


def main(argv: Sequence[str]) -> int:
    """Fits the curves of a checkpoint folder on an STS file and writes them into the folder."""
    from facets.model.facet_model import find_model, load

    if len(argv) != 2:
        sys.stderr.write("usage: python -m facets_server.calibration MODEL STS.tsv\n")
        return 2
    folder, data = find_model(argv[0]), Path(argv[1])
    rows = [line.split("\t") for line in data.read_text(encoding="utf-8").splitlines() if line.strip()]
    gold = [float(row[0]) / _HIGHEST_GOLD for row in rows]
    scorer = PairScorer(load(folder), [(row[1], row[2]) for row in rows])
    curves = {
        curve_name(method, attention=attention): fit_curve(scorer.scores(method, attention=attention).tolist(), gold)
        for method in SimilarityMethod
        for attention in ((False, True) if method in WORD_METHODS else (False,))
    }
    Calibration(curves).save(folder)
    sys.stdout.write(f"{folder / FILE_NAME}: {len(curves)} curves from {len(rows)} pairs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
