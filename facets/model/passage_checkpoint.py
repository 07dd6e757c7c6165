r"""The checkpoint folder of a model of passages; complete in itself.

::

    config.json          format, name, task, space, shape of the network, windows
    model.safetensors    weights: matrices of one byte a number with scales, the rest in half precision
    tokenizer.json       word pieces
    vocabulary.tsv       words and counts      \\  words with vectors in the space of the facets
    vectors.safetensors  one byte a number     /
    README.md            model card
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from facets.config import PassageNetworkConfig
from facets.errors import CheckpointError, ConfigError
from facets.language.quantization import dequantize, quantize
from facets.language.vectors import WordVectors
from facets.model.checkpoint import read_settings, read_weights, reading_settings, write_parts
from facets.model.word_pieces import WordPieces
from facets.storage import write_atomically

__all__ = [
    "PASSAGE_FILES",
    "TASK",
    "PassageModelConfig",
    "packed_weights",
    "read_passage_config",
    "read_passage_weights",
    "read_passage_words",
    "read_word_pieces",
    "write_passage_checkpoint",
]

TASK = "passages"
PASSAGE_FILES = ("config.json", "model.safetensors", "tokenizer.json", "vectors.safetensors", "vocabulary.tsv")
_TOKENIZER_FILE = "tokenizer.json"
_SCALES_SUFFIX = ".scales"


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageModelConfig:
    """What ``config.json`` holds.

    Attributes:
        name: The model's name, unique among the models of a server.
        space: Name of the space of its vectors; models of one space search each other's collections.
        network: Shape of the network.
        window_tokens: Tokens of a text that are read at once, the two special ones included.
        window_overlap: Tokens that two windows of a longer text share.
        max_facets: Facets that a document keeps of a text longer than a window, at most; K or more.
        tokens_per_long_facet: Tokens of such a text for each facet that the document keeps, where that is more than K.
        training: Facts about the training run, for people.
    """

    name: str
    space: str
    network: PassageNetworkConfig = field(default_factory=PassageNetworkConfig)
    window_tokens: int = 256
    window_overlap: int = 32
    max_facets: int = 128
    tokens_per_long_facet: int = 20
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "space"):
            if not getattr(self, name):
                raise ConfigError(f"{name} is empty, expected a name")
        most = self.network.encoder.max_tokens
        if not 3 <= self.window_tokens <= most:
            raise ConfigError(f"window_tokens must be in [3, {most}], got {self.window_tokens}")
        if not 0 <= self.window_overlap < self.window_tokens - 2:
            raise ConfigError(f"window_overlap must be in [0, {self.window_tokens - 3}], got {self.window_overlap}")
        least = self.network.num_facets
        if self.max_facets < least:
            raise ConfigError(f"max_facets must be num_facets, {least}, or more, got {self.max_facets}")
        if self.tokens_per_long_facet < 1:
            raise ConfigError(f"tokens_per_long_facet must be 1 or more, got {self.tokens_per_long_facet}")

    def facets_kept(self, num_tokens: int) -> int:
        """Facets that a document of so many tokens keeps at most."""
        return min(self.max_facets, max(self.network.num_facets, -(-num_tokens // self.tokens_per_long_facet)))


def write_passage_checkpoint(
    folder: Path, config: PassageModelConfig, weights: Mapping[str, Tensor], *, pieces: WordPieces, words: WordVectors
) -> None:
    """Writes all of a checkpoint but its card; each file appears whole or not at all."""
    settings = {
        "name": config.name,
        "task": TASK,
        "space": config.space,
        "network": config.network.to_dict(),
        "window_tokens": config.window_tokens,
        "window_overlap": config.window_overlap,
        "training": config.training,
    }
    write_parts(folder, settings, packed_weights(weights))
    with write_atomically(folder / _TOKENIZER_FILE, durable=False) as part:
        part.write_bytes(pieces.to_json())
    words.save(folder, quantized=True)


def read_passage_config(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> PassageModelConfig:
    """Reads what a checkpoint says about itself, without its weights.

    Raises:
        NotFoundError: There is no such folder.
        CheckpointError: The file is missing or damaged, the format is unknown, or the model is for another task.
    """
    values = read_settings(folder, read=read)
    if values.get("task") != TASK:
        raise CheckpointError(f"{folder}: expected a model for {TASK}, got one for {values.get('task')!r}")
    with reading_settings(folder):
        return PassageModelConfig(
            name=str(values["name"]),
            space=str(values["space"]),
            network=PassageNetworkConfig.from_dict(values["network"], section="network"),
            window_tokens=int(values["window_tokens"]),
            window_overlap=int(values["window_overlap"]),
            training=dict(values["training"]),
        )


def read_passage_weights(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> dict[str, Tensor]:
    """Weights of the network, float32.

    Raises:
        CheckpointError: The file is missing or damaged.
    """
    tensors = read_weights(folder, read=read)
    try:
        return {
            name: _matrix(tensor, tensors[name + _SCALES_SUFFIX]) if name + _SCALES_SUFFIX in tensors else tensor
            for name, tensor in tensors.items()
            if not name.endswith(_SCALES_SUFFIX)
        }
    except ValueError as error:
        raise CheckpointError(f"{folder / 'model.safetensors'}: {error}") from error


def read_word_pieces(
    folder: Path, config: PassageModelConfig, *, read: Callable[[Path], bytes] = Path.read_bytes
) -> WordPieces:
    """The tokenizer.

    Raises:
        CheckpointError: The file is missing or damaged, or has other pieces than the network.
    """
    path = folder / _TOKENIZER_FILE
    try:
        pieces = WordPieces.from_json(read(path))
    except OSError as error:
        raise CheckpointError(f"{path}: expected the model's word pieces: {error.strerror}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if len(pieces) != config.network.encoder.vocabulary_size:
        expected = config.network.encoder.vocabulary_size
        raise CheckpointError(f"{path}: has {len(pieces)} word pieces, the network expects {expected}")
    return pieces


def read_passage_words(
    folder: Path, config: PassageModelConfig, *, read: Callable[[Path], bytes] = Path.read_bytes
) -> WordVectors:
    """Words with vectors in the space of the facets.

    Raises:
        CheckpointError: They are missing or damaged, or not as wide as the facets.
    """
    words = WordVectors.load(folder, read=read)
    if words.dim != config.network.encoder.width:
        expected = config.network.encoder.width
        raise CheckpointError(f"{folder}: word vectors have {words.dim} dimensions, the model expects {expected}")
    return words


def packed_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as they are stored, and read by ``read_passage_weights``: matrices of one byte a number with scales."""
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim == 2:
            values, scales = quantize(tensor.detach().float().cpu().numpy())
            packed |= {name: torch.from_numpy(values), name + _SCALES_SUFFIX: torch.from_numpy(scales)}
        else:
            packed[name] = tensor.half() if tensor.is_floating_point() else tensor
    return packed


def _matrix(values: Tensor, scales: Tensor) -> Tensor:
    return torch.from_numpy(dequantize(values.numpy(), scales.half().numpy()))
