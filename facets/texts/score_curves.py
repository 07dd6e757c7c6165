"""What a similarity score means to people: each method's scores on one scale, 0 unrelated, 1 (or 5) equivalent."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.model.contract import TextModel

__all__ = ["ScoreCurve", "ScoreRange", "curve_name", "score_curve"]


class ScoreRange(StrEnum):
    """The scale of calibrated scores."""

    ZERO_TO_ONE = "0..1"
    ZERO_TO_FIVE = "0..5"  # the scale of the STS data sets

    @property
    def highest(self) -> float:
        """Its upper end."""
        return 5.0 if self is ScoreRange.ZERO_TO_FIVE else 1.0


def curve_name(method: str, *, attention: bool) -> str:
    """Name of a method's curve: ``sif``, or ``sif+attention`` where words are weighed."""
    return f"{method}+attention" if attention else str(method)


@dataclass(frozen=True, slots=True)
class ScoreCurve:
    """What the scores of one method mean, on one scale."""

    points: NDArray[np.float64]  # [2, N], see scoring.apply_curve
    score_range: ScoreRange

    def apply(self, scores_P: NDArray[np.floating]) -> NDArray[np.float32]:
        """Scores as people would give them, ``[P]``; order is kept (near ties may become ties)."""
        calibrated_P = scoring.apply_curve(self.points, scores_P) * self.score_range.highest
        return np.ascontiguousarray(calibrated_P, dtype=np.float32)


def score_curve(model: TextModel, method: str, *, attention: bool, score_range: ScoreRange) -> ScoreCurve:
    """The curve of a method.

    Args:
        model: The model that scores; its ``score_curves`` were fitted on pairs with people's scores.
        method: How pairs are scored.
        attention: Whether words are weighed by attention.
        score_range: The scale.

    Raises:
        ConfigError: The model comes without a curve for the method.
        InvalidInputError: The scale is unknown.
    """
    if score_range not in list(ScoreRange):
        raise InvalidInputError(f"must be one of {', '.join(ScoreRange)}, got {score_range!r}", path="score_range")
    name = curve_name(method, attention=attention)
    curve_2N = model.score_curves.get(name)
    if curve_2N is None:
        known = ", ".join(sorted(model.score_curves)) or "none"
        raise ConfigError(f"calibrated scores need the model's curve for {name}, it has {known}")
    return ScoreCurve(curve_2N, ScoreRange(score_range))
