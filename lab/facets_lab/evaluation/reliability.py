"""Whether confidence means what it says: how often claims of each confidence are right.

Shape suffixes: C claims, B bins.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReliabilityBin", "expected_calibration_error", "reliability"]

_NUM_BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Claims of about one confidence.

    Attributes:
        confidence: Their mean confidence.
        right: The share of them that is right.
        claims: How many.
    """

    confidence: float
    right: float
    claims: int

    def to_dict(self) -> dict[str, float]:
        """For a report, with four digits."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def reliability(confidence_C: NDArray[np.floating], right_C: NDArray[np.bool_]) -> list[ReliabilityBin]:
    """The reliability diagram as a table: ten bins of equal width, those with a claim.

    Args:
        confidence_C: In ``[0, 1]``.
        right_C: Whether each claim holds.

    Example:
        >>> [found] = reliability(np.array([0.72, 0.78]), np.array([True, False]))
        >>> found.confidence, found.right, found.claims
        (0.75, 0.5, 2)
    """
    bin_C = np.minimum((np.asarray(confidence_C) * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
    counts_B = np.bincount(bin_C, minlength=_NUM_BINS)
    confidence_B = np.bincount(bin_C, weights=confidence_C, minlength=_NUM_BINS)
    right_B = np.bincount(bin_C, weights=right_C, minlength=_NUM_BINS)
    return [
        ReliabilityBin(float(confidence_B[b] / counts_B[b]), float(right_B[b] / counts_B[b]), int(counts_B[b]))
        for b in np.flatnonzero(counts_B)
    ]


def expected_calibration_error(confidence_C: NDArray[np.floating], right_C: NDArray[np.bool_]) -> float:
    """Mean distance of confidence and share of right claims over the bins of ``reliability``, weighed by claims.

    References:
        Guo et al. 2017, eq. 3.

    Example:
        >>> expected_calibration_error(np.array([0.75, 0.75]), np.array([True, False]))
        0.25
    """
    bins = reliability(confidence_C, right_C)
    total = sum(found.claims for found in bins)
    return sum(found.claims * abs(found.confidence - found.right) for found in bins) / max(1, total)
