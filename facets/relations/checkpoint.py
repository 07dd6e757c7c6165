r"""The checkpoint folder of a relation model; word pieces and words are those of the model of passages it grew from.

::

    config.json          format, name, task, shape of the network, folder of the encoder
    model.safetensors    weights, facets of relations, look-up of patterns: matrices of one byte a number with scales
    relations.json       names, what is said of each relation, confidence
    patterns.txt         patterns of the look-up
    README.md            model card
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from facets.config import PatternNetworkConfig
from facets.errors import CheckpointError, ConfigError
from facets.model.checkpoint import read_settings, reading_settings, write_parts
from facets.model.passage_checkpoint import PASSAGE_FILES, packed_weights, read_passage_weights

__all__ = [
    "TASK",
    "RelationModelConfig",
    "encoder_files",
    "encoder_pieces",
    "read_relation_config",
    "write_relation_checkpoint",
]

TASK = "relations"
_PIECES = "encoder.pieces.weight"


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationModelConfig:
    """What ``config.json`` holds.

    Attributes:
        name: The model's name, unique among the models of a server.
        encoder_of: Folder of the model of passages whose word pieces are read, from this checkpoint's folder.
        network: Shape of the network.
        training: Facts about the training run, for people.
    """

    name: str
    encoder_of: str
    network: PatternNetworkConfig = field(default_factory=PatternNetworkConfig)
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "encoder_of"):
            if not getattr(self, name):
                raise ConfigError(f"{name} is empty, expected a name")


def write_relation_checkpoint(folder: Path, config: RelationModelConfig, weights: Mapping[str, Tensor]) -> None:
    """Writes configuration and weights; each file appears whole or not at all."""
    settings = {
        "name": config.name,
        "task": TASK,
        "encoder_of": config.encoder_of,
        "network": config.network.to_dict(),
        "training": config.training,
    }
    write_parts(folder, settings, packed_weights(weights))


def read_relation_config(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> RelationModelConfig:
    """Reads what a checkpoint says about itself, without its weights.

    Raises:
        NotFoundError: There is no such folder.
        CheckpointError: The file is missing or damaged, the format is unknown, or the model is for another task.
    """
    values = read_settings(folder, read=read)
    if values.get("task") != TASK:
        raise CheckpointError(f"{folder}: expected a model for {TASK}, got one for {values.get('task')!r}")
    if "encoder_of" not in values:
        raise CheckpointError(
            f"{folder}: expected a relation model with the encoder of a model of passages, got one of an older kind: "
            "train it again"
        )
    with reading_settings(folder):
        return RelationModelConfig(
            name=str(values["name"]),
            encoder_of=str(values["encoder_of"]),
            network=PatternNetworkConfig.from_dict(values["network"], section="network"),
            training=dict(values["training"]),
        )


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
