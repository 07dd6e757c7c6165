r"""The checkpoint folder of a relation model; word pieces and words are those of the model of passages it grew from.

::

    config.json          format, name, task, shape of the network, folder of the encoder
    model.safetensors    weights, facets of relations, look-up of patterns: matrices of one byte a number with scales
    relations.json       names, what is said of each relation, confidence
    patterns.txt         patterns of the look-up
    README.md            model card
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from torch import Tensor

from facets.config import Name, PatternNetworkConfig, Settings
from facets.errors import CheckpointError
from facets.model.passage_checkpoint import PASSAGE_FILES, read_passage_weights

__all__ = [
    "TASK",
    "RelationModelConfig",
    "encoder_files",
    "encoder_pieces",
]

TASK: Literal["relations"] = "relations"
_PIECES = "encoder.pieces.weight"


class RelationModelConfig(Settings):
    """What ``config.json`` holds.

    Attributes:
        name: The model's name, unique among the models of a server.
        encoder_of: Folder of the model of passages whose word pieces are read, from this checkpoint's folder.
        network: Shape of the network.
        training: Facts about the training run, for people.
    """

    name: Name
    task: Literal["relations"] = TASK
    encoder_of: Name
    network: PatternNetworkConfig = PatternNetworkConfig()
    training: dict[str, Any] = Field(default_factory=dict)

    @property
    def num_facets(self) -> int:
        """K, the number of facets of every pattern."""
        return self.network.num_facets

    @property
    def dim(self) -> int:
        """D, the width of a facet."""
        return self.network.dim

    @property
    def max_tokens(self) -> int:
        """Word pieces of a pattern that are read, two special ones included; a longer one loses its middle."""
        return self.network.max_tokens


def encoder_pieces(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> Tensor:
    """Vectors of the word pieces of a model of passages, ``[V, W]`` float32.

    Raises:
        CheckpointError: They are missing or damaged.
    """
    weights = read_passage_weights(folder, read=read)
    if _PIECES not in weights:
        raise CheckpointError(f"{folder}: expected a model of passages, its weights have no {_PIECES}")
    return weights[_PIECES].float()


def encoder_files(folder: Path) -> list[Path]:
    """Files of the model of passages that decide a relation model's answers."""
    return [folder / name for name in PASSAGE_FILES]
