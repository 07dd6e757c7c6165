"""Facets: several embeddings per text, for similarity, summaries and search.

>>> import facets
>>> model = facets.load()
>>> model.encode(["A man is lifting weights in a garage."]).shape
(1, 10, 256)
"""

from typing import TYPE_CHECKING

from facets.extras import require_extra

if TYPE_CHECKING:
    from facets.model.loading import load

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> object:
    """Loads ``load`` when it is first used, so that ``import facets`` stays light."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("model", "torch", "spacy", "safetensors", "tokenizers")
    from facets.model.loading import load

    return load
