"""Inverted lists of compressed vectors, placed by training: the builder of every FAISS index, and the room in them.

Shape letters: M training vectors, D dimensions, L lists.
"""

import math
from typing import Literal

import faiss
import numpy as np
from numpy.typing import NDArray

Code = Literal["fp16", "int8"]

TRAIN_PER_LIST = 40  # FAISS asks for at least 39 training vectors per list
LISTS_SEED = 12345
_QUANTIZERS = {
    "fp16": faiss.ScalarQuantizer.QT_fp16,
    "int8": faiss.ScalarQuantizer.QT_8bit,
}
_TRAIN_STEPS = 6
_PROBED_SHARE = 1 / 14  # of the lists, for each query
_MIN_PROBES = 8


def num_lists(num_vectors: int, sample_size: int) -> int:
    """How many lists suit so many vectors, as far as the sample can place them."""
    return max(1, min(2 * math.isqrt(num_vectors), sample_size // TRAIN_PER_LIST))


def sample_size(num_vectors: int) -> int:
    """How many of ``num_vectors`` vectors are wanted for training."""
    return min(num_vectors, TRAIN_PER_LIST * 2 * math.isqrt(num_vectors))


def train_lists(
    sample_MD: NDArray[np.float32], lists: int, *, code: Code, train_steps: int
) -> faiss.IndexIVFScalarQuantizer:
    """An empty index of inverted lists for inner products.

    ``sample_MD``: training vectors, ``[M, D]``. ``code``: what is kept of a vector: 2 bytes or 1 byte a dimension.
    """
    quantizer = faiss.IndexFlatIP(sample_MD.shape[1])
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, sample_MD.shape[1], lists, _QUANTIZERS[code], faiss.METRIC_INNER_PRODUCT, False
    )
    quantizer.this.disown()  # type: ignore[attr-defined]  # SWIG's own handle
    index.own_fields = True
    index.cp.niter = train_steps
    index.cp.seed = LISTS_SEED
    index.cp.min_points_per_centroid = 1
    index.train(sample_MD)
    return index


class ListRoom:
    """How many vectors each list of an index takes before it has to move in memory, where it then takes twice as many.

    Lists that are filled one after another overflow at about the same time: whoever searches would wait until all of
    them have moved. And lists that only ever doubled hold nothing in a third of their memory.

    Args:
        index: Of inverted lists in this process's memory.
    """

    def __init__(self, index: faiss.IndexIVF) -> None:
        assert index.invlists is not None
        self._lists = index.invlists
        self._room_L = np.zeros(index.nlist, dtype=np.int64)

    def make(self, more_L: NDArray[np.int64], *, spare: float = 0.0, max_bytes: int | None = None) -> bool:
        """Gives every list room for so many more vectors; nobody may search meanwhile.

        ``more_L``: vectors to come, ``[L]``. ``spare``: room beyond that, as a share of the list. ``max_bytes``: about
        how much one call may move; None: everything. Returns whether there is room for all of them now; else call
        again.
        """
        moved = 0
        for number in np.flatnonzero(more_L).tolist():
            size = self._lists.list_size(number)
            needed = size + int(more_L[number])
            if needed <= self._room_L[number]:
                continue
            if max_bytes is not None and moved > max_bytes:
                return False
            room = needed + int(spare * needed)
            self._lists.resize(number, room)
            self._lists.resize(number, size)  # keeps the room
            self._room_L[number] = max(room, 2 * size)
            moved += room * self._lists.code_size
        return True
