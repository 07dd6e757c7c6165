"""Seeded facets for the benchmarks of documents and search: clusters, as words make them."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["make_facets"]

_NUM_CLUSTERS = 2000
_TOPIC_CLUSTERS = 40  # a document takes its facets from neighbouring clusters, as a text keeps to a topic
_NOISE = 0.7  # against unit-variance centres: facets of one cluster have a cosine of about 0.67


def make_facets(num: int, num_facets: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Unit-norm facets, ``[num, num_facets, dim]`` float32; the clusters are the same for every seed."""
    centers = np.random.default_rng(0).standard_normal((_NUM_CLUSTERS, dim), dtype=np.float32)
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, _NUM_CLUSTERS // _TOPIC_CLUSTERS, (num, 1))
    facets = centers[topics * _TOPIC_CLUSTERS + rng.integers(0, _TOPIC_CLUSTERS, (num, num_facets))]
    facets += np.float32(_NOISE) * rng.standard_normal(facets.shape, dtype=np.float32)
    facets /= np.linalg.norm(facets, axis=2, keepdims=True)
    return facets
