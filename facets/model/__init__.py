"""The facet model: encoders, facet decoder, checkpoints."""

from facets.model.checkpoint import CheckpointConfig
from facets.model.contract import Model, TextModel
from facets.model.facet_model import FacetModel, new_model
from facets.model.loading import DEFAULT_MODEL, load
from facets.model.network import FacetNetwork
from facets.model.passage_model import PassageModel
from facets.model.shipped import find_model

__all__ = [
    "DEFAULT_MODEL",
    "CheckpointConfig",
    "FacetModel",
    "FacetNetwork",
    "Model",
    "PassageModel",
    "TextModel",
    "find_model",
    "load",
    "new_model",
]
