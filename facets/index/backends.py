"""Which backends there are for the indexes of large collections: one line each."""

from collections.abc import Callable

from facets.devices import compute_device
from facets.index.config import BackendName, EngineConfig
from facets.index.exact_backend import ExactBackend
from facets.index.faiss_backend import FaissBackend
from facets.index.protocols import IndexBackend

__all__ = ["BACKENDS", "make_backend"]

BACKENDS: dict[BackendName, Callable[[EngineConfig], IndexBackend]] = {
    "faiss": FaissBackend,
    "exact": ExactBackend,
}


def make_backend(config: EngineConfig) -> IndexBackend:
    """The backend that the settings name; on a GPU comparing everything beats skipping.

    Raises:
        ConfigError: No such device.
    """
    device = compute_device(config.device)
    name: BackendName = "exact" if device != "cpu" else config.backend
    return BACKENDS[name](config.model_copy(update={"device": device}))
