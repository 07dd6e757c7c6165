"""What a similarity score means to people: each method's scores on one scale, 0 unrelated, 1 (or 5) equivalent."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from facets import scoring
from facets.errors import ConfigError
from facets.tasks.interface import TextModel

__all__ = ["ScoreRange", "calibrated_scores", "curve_name"]


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


def calibrated_scores(
    model: TextModel,
    scores_P: NDArray[np.floating],
    method: str,
    *,
    attention: bool,
    score_range: ScoreRange = ScoreRange.ZERO_TO_ONE,
) -> NDArray[np.float32]:
    """Scores of one method as people would give them.

    Args:
        model: The model that scored; its ``calibration_curves`` were fitted on pairs with people's scores.
        scores_P: ``[P]``, from ``score_pairs`` with the same method and attention.
        method: How they were scored.
        attention: Whether words were weighed by attention.
        score_range: The scale.

    Returns:
        ``[P]`` float32 on that scale; order is kept (near ties may become ties).

    Raises:
        ConfigError: The model comes without a curve for the method.
    """
    name = curve_name(method, attention=attention)
    curve_2N = model.calibration_curves.get(name)
    if curve_2N is None:
        known = ", ".join(sorted(model.calibration_curves)) or "none"
        raise ConfigError(f"calibrated scores need the model's curve for {name}, it has {known}")
    calibrated_P: NDArray[np.float64] = scoring.apply_curve(curve_2N, scores_P) * ScoreRange(score_range).highest
    return calibrated_P.astype(np.float32)
