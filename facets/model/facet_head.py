"""The folder of a facet head: a linear map on the facets of another passage model, see ``facets-train passages``.

::

    config.json          format, name, task, the model whose facets it changes
    model.safetensors    head, [D, D]
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from facets.config import Name
from facets.errors import CheckpointError
from facets.model.base import ModelConfig
from facets.model.checkpoint import read_config, read_settings, read_weights, revision_of
from facets.model.loading import load
from facets.model.passage_checkpoint import TASK
from facets.model.passage_model import PassageModel
from facets.model.shipped import ENCODER_PREFIX, find_model

HEAD = "head"  # name of the tensor


class FacetHeadConfig(ModelConfig):
    """``config.json`` of a facet head."""

    task: Literal["passages"] = TASK
    encoder_of: Name  # the model, as `facets.load` takes it
    encoder_revision: str  # that the head was trained for
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for human readers


def load_facet_head(folder: Path, **settings: Any) -> PassageModel:
    """The model with its head; raises as ``facets.load``, and CheckpointError if the two do not fit.

    ``settings``: of ``facets.load``, for the model.
    """
    config = read_config(folder, FacetHeadConfig)
    head = read_weights(folder).get(HEAD)
    name = config.encoder_of
    if not name.startswith(ENCODER_PREFIX) and "encoder_of" in read_settings(find_model(name)):
        raise CheckpointError(f"{folder}: expected encoder_of to name an encoder or a model without a head, got {name}")
    model = load(name, PassageModel, **settings)
    if model.revision != config.encoder_revision:
        expected = f"revision {config.encoder_revision} of {config.encoder_of}"
        raise CheckpointError(f"{folder}: the head is for {expected}, found {model.revision}; train it again")
    if head is None or head.shape != (model.dim, model.dim):
        raise CheckpointError(f"{folder}: expected a head of shape [{model.dim}, {model.dim}]")
    revision = revision_of(folder / "config.json", folder / "model.safetensors")
    return model.with_head(head.numpy(), name=config.name, revision=revision)
