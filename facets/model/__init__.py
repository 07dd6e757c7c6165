"""The facet model: encoders, facet decoder, checkpoints."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from facets.model.facet_model import FacetModel
    from facets.model.loading import load
    from facets.model.passage_model import PassageModel

__all__ = ["FacetModel", "PassageModel", "load"]

_MODULES = {"FacetModel": "facet_model", "PassageModel": "passage_model", "load": "loading"}


def __getattr__(name: str) -> object:
    """Imports a name when it is first used: modules of this package may then be imported without torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve_name(f"{__name__}.{_MODULES[name]}:{name}")
