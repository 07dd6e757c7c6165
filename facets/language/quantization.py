"""Matrices of one byte a number: rows are cut into groups, each with a scale of its own."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["dequantize", "quantize"]

_GROUP = 64
_LARGEST = 127
_SMALLEST_SCALE = float(np.finfo(np.float16).tiny)


def quantize(matrix: NDArray[np.floating]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Rounds a matrix to 255 steps a group of 64 numbers of a row; the largest number of a group is nearly exact.

    Args:
        matrix: ``[N, M]``, finite and of magnitudes below 65,504; the last group of a row may be shorter.

    Returns:
        Whole numbers ``[N, M]``, and the scales ``[N, ceil(M / 64)]`` that they are to be multiplied with.

    Example:
        >>> values, scales = quantize(np.array([[0.5, -1.0, 0.25]]))
        >>> values.tolist(), dequantize(values, scales).round(2).tolist()
        ([[64, -127, 32]], [[0.5, -1.0, 0.25]])
    """
    matrix = np.asarray(matrix, dtype=np.float32)
    groups = np.arange(0, matrix.shape[1], _GROUP)
    largest = np.maximum.reduceat(np.abs(matrix), groups, axis=1)
    scales = np.maximum(largest / _LARGEST, _SMALLEST_SCALE).astype(np.float16)
    values = np.rint(matrix / _spread(scales, matrix.shape[1]))
    return np.clip(values, -_LARGEST, _LARGEST).astype(np.int8), scales


def dequantize(values: NDArray[np.int8], scales: NDArray[np.float16]) -> NDArray[np.float32]:
    """The matrix again, ``[N, M]``; each number within half a step of what it was.

    Raises:
        ValueError: The shapes do not fit.
    """
    if values.ndim != 2 or scales.shape != (len(values), -(-values.shape[1] // _GROUP)):
        raise ValueError(f"expected a scale for {_GROUP} numbers of a row of {values.shape}, got {scales.shape}")
    return values * _spread(scales, values.shape[1])


def _spread(scales: NDArray[np.float16], width: int) -> NDArray[np.float32]:
    return np.repeat(scales.astype(np.float32), _GROUP, axis=1)[:, :width]
