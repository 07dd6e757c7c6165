"""Calibrated scores: a curve puts the scores of every method on one scale.

Shape suffixes: P pairs, N points of a curve.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["apply_curve"]


def apply_curve(curve_2N: NDArray[np.float64], scores_P: NDArray[np.floating]) -> NDArray[np.float64]:
    """A monotone, piecewise linear map of scores to [0, 1], constant beyond its ends.

    Args:
        curve_2N: Scores, growing, and what they mean, never falling, in [0, 1]; ``[2, N]``.
        scores_P: Scores of one method, ``[P]``.

    Returns:
        ``[P]`` in ``[0, 1]``; a higher score never gives less.

    Example:
        >>> apply_curve(np.array([[-1.0, 0.0], [0.2, 1.0]]), np.array([-2.0, -0.5, 0.0])).round(6).tolist()
        [0.2, 0.6, 1.0]
    """
    calibrated_P: NDArray[np.float64] = np.interp(scores_P, curve_2N[0], curve_2N[1])
    return calibrated_P
