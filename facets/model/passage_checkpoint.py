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
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from facets.config import AtLeastOne, Name, NonNegativeInt, PassageNetworkConfig, Settings
from facets.errors import CheckpointError
from facets.language.vectors import WordVectors, dequantize, quantize
from facets.model.checkpoint import read_weights, write_parts
from facets.model.word_pieces import WordPieces
from facets.storage import write_whole

TASK: Literal["passages"] = "passages"
PASSAGE_FILES = ("config.json", "model.safetensors", "tokenizer.json", "vectors.safetensors", "vocabulary.tsv")
_TOKENIZER_FILE = "tokenizer.json"
_SCALES_SUFFIX = ".scales"


class PassageModelConfig(Settings):
    """What ``config.json`` holds."""

    name: Name  # the model's name, unique among the models of a server
    task: Literal["passages"] = TASK
    space: Name  # name of the space of its vectors; models of one space search each other's collections
    network: PassageNetworkConfig = PassageNetworkConfig()  # shape of the network
    # Tokens of a text that are read at once, the two special ones included.
    window_tokens: Annotated[int, Field(ge=3)] = 256
    window_overlap: NonNegativeInt = 32  # tokens that two windows of a longer text share
    max_facets: AtLeastOne = 128  # facets that a document keeps at most of a text with more sentences than K; K or more
    # Tokens of such a text for each facet that the document keeps, where that is more than K: so few that hardly a
    # sentence loses its own.
    tokens_per_long_facet: AtLeastOne = 8
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for people

    @model_validator(mode="after")
    def _check(self) -> Self:
        most, overlap, least = self.network.encoder.max_tokens, self.window_tokens - 3, self.network.num_facets
        self.require("window_tokens", self.window_tokens <= most, f"in [3, {most}]")
        self.require("window_overlap", self.window_overlap <= overlap, f"in [0, {overlap}]")
        self.require("max_facets", self.max_facets >= least, f"num_facets, {least}, or more")
        return self

    @property
    def num_facets(self) -> int:
        """K, the number of facets of a text at most."""
        return self.network.num_facets

    @property
    def dim(self) -> int:
        """D, the width of a facet."""
        return self.network.encoder.width

    @property
    def max_tokens(self) -> int:
        """Tokens that are read at once; longer texts are read window by window, whole."""
        return self.window_tokens

    def facets_kept(self, num_tokens: int) -> int:
        """Facets that a document of so many tokens keeps at most."""
        return min(self.max_facets, max(self.network.num_facets, -(-num_tokens // self.tokens_per_long_facet)))


def write_passage_checkpoint(
    folder: Path, config: PassageModelConfig, weights: Mapping[str, Tensor], *, pieces: WordPieces, words: WordVectors
) -> None:
    """Writes all of a checkpoint but its card; each file appears whole or not at all."""
    write_parts(folder, config, packed_weights(weights))
    write_whole(folder / _TOKENIZER_FILE, pieces.to_json())
    words.save(folder, quantized=True)


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
