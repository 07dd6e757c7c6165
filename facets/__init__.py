"""Facets: several embeddings per text, for similarity, summaries and search.

>>> import facets
>>> model = facets.load()
>>> model.encode(["A man is lifting weights in a garage."]).shape
(1, 10, 256)
"""

from pathlib import Path
from typing import TYPE_CHECKING

from facets.extras import require_extra

if TYPE_CHECKING:
    from facets.model import FacetModel

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


def load(name_or_path: "str | Path | None" = None, *, device: str = "cpu") -> "FacetModel":
    """Loads a model, offline; the default one without an argument.

    Args:
        name_or_path: A shipped model's name or a checkpoint folder.
        device: ``cpu``, ``cuda``, ``cuda:1`` ...

    Raises:
        ImportError: The ``model`` extra is not installed.
        NotFoundError: No model of that name, no such folder.
        CheckpointError: The folder is incomplete or damaged.
    """
    require_extra("model", "torch", "spacy", "safetensors")
    # Imported here, so that `import facets` stays light.
    from facets.model import load as load_model

    return load_model(name_or_path, device=device)
