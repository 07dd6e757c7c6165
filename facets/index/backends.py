"""Which backends there are for the indexes of large collections: one line each."""

from collections.abc import Callable

from facets.index.config import BackendName, EngineConfig
from facets.index.faiss_backend import FaissBackend
from facets.index.protocols import IndexBackend

__all__ = ["BACKENDS", "make_backend"]

BACKENDS: dict[BackendName, Callable[[EngineConfig], IndexBackend]] = {
    "faiss": FaissBackend,
}


def make_backend(config: EngineConfig) -> IndexBackend:
    """The backend that the settings name."""
    return BACKENDS[config.backend](config)
