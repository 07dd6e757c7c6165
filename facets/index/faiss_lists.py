"""Inverted lists of compressed vectors, placed by training: the builder of every FAISS index.

Shape letters: M training vectors, D dimensions.
"""

import math
from typing import Literal

import faiss
import numpy as np
from numpy.typing import NDArray

__all__ = ["LISTS_SEED", "TRAIN_PER_LIST", "Code", "num_lists", "sample_size", "train_lists"]

Code = Literal["fp16", "int8"]

TRAIN_PER_LIST = 40  # FAISS asks for at least 39 training vectors per list
LISTS_SEED = 12345
_QUANTIZERS = {
    "fp16": faiss.ScalarQuantizer.QT_fp16,
    "int8": faiss.ScalarQuantizer.QT_8bit,
}


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

    Args:
        sample_MD: Training vectors, ``[M, D]``.
        lists: Number of lists.
        code: What is kept of a vector: 2 bytes or 1 byte a dimension.
        train_steps: Rounds of k-means.
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
