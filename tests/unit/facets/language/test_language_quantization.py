"""Matrices of one byte a number come back within half a step."""

import numpy as np
import pytest

from facets.language.quantization import dequantize, quantize


@pytest.mark.parametrize("width", [1, 64, 65, 384])
def test_numbers_come_back_within_half_a_step_of_their_group(width: int) -> None:
    matrix = np.random.default_rng(0).standard_normal((7, width)).astype(np.float32) * np.float32(10.0)
    matrix[3] = 0.0
    values, scales = quantize(matrix)
    assert values.dtype == np.int8 and scales.shape == (7, -(-width // 64))
    # Half precision scales add up to a thousandth of the largest number.
    limit = np.repeat(scales.astype(np.float32), 64, axis=1)[:, :width] * (0.5 + 127e-3)
    assert (np.abs(dequantize(values, scales) - matrix) <= limit).all()
    assert not dequantize(values, scales)[3].any()


def test_scales_of_another_matrix_are_refused() -> None:
    values, scales = quantize(np.ones((2, 130)))
    with pytest.raises(ValueError, match="expected a scale"):
        dequantize(values[:, :64], scales)
