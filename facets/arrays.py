"""Short names for types of NumPy arrays, and members of groups of consecutive rows."""

from typing import TypeAlias

import numkong
import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Ints32: TypeAlias = NDArray[np.int32]
Vectors: TypeAlias = NDArray[np.floating]  # of any precision


def products(first_ND: Floats, second_MD: Floats) -> Floats:
    """``first_ND @ second_MD.T``, in the calling thread.

    NumPy's product wakes threads of OpenBLAS, which then wait busily for 100 ms and slow those of PyTorch.
    """
    packed = numkong.dots_pack(np.ascontiguousarray(second_MD), dtype="float32")
    return np.asarray(numkong.dots_packed(np.ascontiguousarray(first_ND), packed), dtype=np.float32)


def take_groups(starts_N1: Ints, places_C: Ints) -> tuple[Ints, Ints]:
    """Places of the members of some consecutive groups, in this order, and the offsets of these groups, ``[C + 1]``."""
    counts_C = starts_N1[places_C + 1] - starts_N1[places_C]
    starts_C1 = np.append(0, np.cumsum(counts_C))
    return np.repeat(starts_N1[places_C] - starts_C1[:-1], counts_C) + np.arange(starts_C1[-1]), starts_C1
