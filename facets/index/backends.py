"""The backends for indexes of large collections."""

from collections.abc import Callable

from facets.devices import compute_device
from facets.index.base import Chunks, IndexBackend
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex
from facets.index.faiss_index import FaissBackend
from facets.index.qdrant import QdrantBackend


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
