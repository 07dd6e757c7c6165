"""The backends for indexes of large collections."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from facets.arrays import Ints
from facets.devices import compute_device
from facets.index.base import Chunks, IndexBackend
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex
from facets.index.qdrant import QdrantBackend

if TYPE_CHECKING:
    from facets.index.faiss_index import FaissIndex


class FaissBackend(IndexBackend):
    """FAISS inverted lists of facets, on the CPU; imports FAISS for the first collection that needs them."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> "FaissIndex | None":
        """Trains on a sample of the facets, adds all of them, and tunes the number of probed lists."""
        import faiss

        from facets.index.faiss_index import LISTS_SEED, TRAIN_PER_LIST, FaissIndex

        faiss.omp_set_num_threads(max(1, torch.get_num_threads() // 2))  # of this thread: requests have the rest
        rng, num_vectors = np.random.default_rng(LISTS_SEED), num_documents * num_facets
        share, parts = min(1.0, TRAIN_PER_LIST * 2 * math.isqrt(num_vectors) / num_vectors), []
        for _, facets_NKD in chunks():
            vectors = facets_NKD.reshape(-1, facets_NKD.shape[2])
            parts.append(vectors[(rng.random(len(vectors)) < share) & vectors.any(axis=1)])
        if not parts:
            return None
        sample = rng.permutation(np.concatenate(parts))
        if not len(sample):  # no document has a facet
            sample = np.zeros((1, sample.shape[1]), dtype=sample.dtype)
        index = FaissIndex.train(sample, num_facets=num_facets, num_documents=num_documents)
        seen = [(rows, index.prepare(rows, facets_NKD).astype(np.int32)) for rows, facets_NKD in chunks()]
        lists = np.concatenate([prepared.ravel() for _, prepared in seen])
        index.reserve(np.bincount(lists[lists >= 0]) * 9 // 8)  # also for what is added soon
        for (before, prepared), (rows, facets_NKD) in zip(seen, chunks(), strict=True):
            index.add_prepared(rows, facets_NKD, prepared[np.isin(before, rows)])  # some may be deleted by now
        if not len(index):
            return None
        index.tune(sample, self._config.recall_target)
        return index

    def read(
        self, path: Path, content: NDArray[np.uint8], slots: Ints, description: Mapping[str, int | float | str]
    ) -> "FaissIndex":
        """Opens the index in a snapshot; see ``FaissIndex.map``."""
        from facets.index.faiss_index import FaissIndex

        return FaissIndex.map(path, content, slots, description)


class ExactBackend(IndexBackend):
    """Exact search for collections of any size, intended for a GPU; nothing is trained or saved."""

    def __init__(self, config: EngineConfig) -> None:
        self._device = config.device

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> ExactIndex | None:
        """Copies the facets to the device."""
        index = None
        for rows, facets_SKD in chunks():
            index = index or ExactIndex(num_facets=num_facets, dim=facets_SKD.shape[2], device=self._device)
            index.add(rows, facets_SKD)
        return index


BACKENDS: dict[str, Callable[[EngineConfig], IndexBackend]] = {
    "faiss": FaissBackend,
    "exact": ExactBackend,
    "qdrant": QdrantBackend,
}


def make_backend(config: EngineConfig) -> IndexBackend:
    """The backend that the settings name; on a GPU, exact search is faster than FAISS. Raises ConfigError."""
    device = compute_device(config.device)
    name = "exact" if device != "cpu" and config.index == "faiss" else config.index.partition(":")[0]
    return BACKENDS[name](config.model_copy(update={"device": device}))
