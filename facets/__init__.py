"""Facets: several embeddings per text, for similarity, summaries and search.

>>> import facets
>>> model = facets.load()
>>> model.encode(["A man is lifting weights in a garage."]).shape
(1, 10, 256)
"""

from pathlib import Path
from typing import TYPE_CHECKING, overload

from facets.extras import require_extra

if TYPE_CHECKING:
    from facets.model import FacetModel, Model
    from facets.model.loading import ModelT

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


@overload
def load(name_or_path: None = None, *, device: str = "cpu") -> "FacetModel": ...
@overload
def load(name_or_path: "str | Path", *, device: str = "cpu") -> "Model": ...
@overload
def load(name_or_path: "str | Path | None", kind: "type[ModelT]", *, device: str = "cpu") -> "ModelT": ...
def load(
    name_or_path: "str | Path | None" = None, kind: "type[ModelT] | None" = None, *, device: str = "cpu"
) -> "Model":
    """Loads a model, offline.

    Args:
        name_or_path: Name of a shipped model, or a checkpoint folder; None: the default model of ``kind``.
        kind: Expected class of the model, such as ``FacetModel``; None: any.
        device: ``cpu``, ``cuda``, ``cuda:1`` and so on, or ``auto``: ``cuda`` if there is one.

    Raises:
        ImportError: The ``model`` extra is not installed.
        NotFoundError: There is no model of that name and no such folder.
        CheckpointError: The folder is incomplete or damaged.
        InvalidInputError: The model is for another task than ``kind``.
        ConfigError: There is no such device.
    """
    require_extra("model", "torch", "spacy", "safetensors", "tokenizers")
    # Imported here, so that `import facets` stays light.
    from facets.model.loading import load as load_model

    if kind is not None:
        return load_model(name_or_path, kind, device=device)
    return load_model(device=device) if name_or_path is None else load_model(name_or_path, device=device)
