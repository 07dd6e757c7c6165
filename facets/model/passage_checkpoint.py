r"""The checkpoint folder of a passage model, which is self-contained, and of readers, which have no words.

::

    config.json          format, name, task, space, shape of the encoder, facets, windows
    model.safetensors    weights: matrices with one byte per number and scales, the rest in half precision
    tokenizer.json       word pieces
    vocabulary.tsv       words and counts      \\  words with vectors in the space of the facets
    vectors.safetensors  1 byte per number     /
    README.md            model card
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Generic, Literal, Self, TypeVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from facets.config import AtLeastOne, Name, SentenceEncoderConfig
from facets.devices import compute_device
from facets.model.base import ModelConfig
from facets.model.checkpoint import (
    fit_weights,
    packed_weights,
    read_config,
    read_table,
    read_weights,
    shared,
    write_parts,
)
from facets.model.passage_network import CrossEncoder
from facets.model.precision import fastest_precision, wants_int8
from facets.model.shipped import find_model
from facets.model.word_pieces import WordPieces
from facets.storage.files import reading, write_whole

TASK: Literal["passages"] = "passages"
PIECES = "pieces.weight"  # the vectors of word pieces, among the weights
PASSAGE_FILES = ("config.json", "model.safetensors", "tokenizer.json", "vectors.safetensors", "vocabulary.tsv")
_READER_FILES = PASSAGE_FILES[:3]
_word_pieces = lru_cache(4)(WordPieces.from_json)  # models share equal ones


class EncoderConfig(ModelConfig):
    """What ``config.json`` says about a model with a sentence encoder."""

    encoder: SentenceEncoderConfig = SentenceEncoderConfig()


class PassageModelConfig(EncoderConfig):
    """``config.json`` of a passage model."""

    task: Literal["passages"] = TASK
    space: Name  # name of the vector space; models with the same space can search each other's collections
    queries: str = ""  # path of the model of this space that encodes queries, relative to the folder; empty: this one
    num_facets: AtLeastOne = 16  # most facets of a text, K
    reads_windows: bool = False  # also read sentences within windows: slightly better facets for twice the time
    window_tokens: Annotated[int, Field(ge=3)] = 256  # tokens read at once, including the two special ones

    @model_validator(mode="after")
    def _check(self) -> Self:
        most = self.encoder.max_tokens
        self.require("window_tokens", self.window_tokens <= most, f"in [3, {most}]")
        return self


def write_encoder(folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], pieces: WordPieces) -> None:
    """Writes configuration, weights and word pieces, each file atomically."""
    write_parts(folder, config, packed_weights(weights))
    write_whole(folder / "tokenizer.json", pieces.to_json())


def read_word_pieces(folder: Path, encoder: SentenceEncoderConfig) -> WordPieces:
    """The tokenizer; raises CheckpointError if its number of pieces is not that of the network, too."""
    path = folder / "tokenizer.json"
    with reading(path):
        pieces = _word_pieces(path.read_bytes())
        if len(pieces) != encoder.vocabulary_size:
            raise ValueError(f"it has {len(pieces)} word pieces, the network expects {encoder.vocabulary_size}")
    return pieces


NetworkT = TypeVar("NetworkT", bound=CrossEncoder)
ConfigT = TypeVar("ConfigT", bound=EncoderConfig)


class TextReader(Generic[NetworkT, ConfigT]):
    """A cross-encoder on one device, in evaluation mode; thread-safe."""

    network_class: type[NetworkT]
    config_class: type[ConfigT]
    shipped: str  # name of the default reader

    def __init__(self, network: NetworkT, pieces: WordPieces, config: ConfigT, *, device: str = "cpu") -> None:
        target = torch.device(device)
        self.network = network.to(target, fastest_precision(target)).eval().requires_grad_(False)
        for layer in self.network.children():
            if isinstance(layer, nn.Linear):
                layer.float()
        if wants_int8(target):
            self.network.encoder.use_int8()
        self.name, self.config, self.pieces = config.name, config, pieces

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint; raises CheckpointError if it is incomplete or damaged."""
        config = read_config(folder, cls.config_class)
        pieces = read_word_pieces(folder, config.encoder)
        network = fit_weights(folder, lambda: cls.network_class(config.encoder), read_weights(folder))
        network.encoder.pieces = read_table(folder, f"encoder.{PIECES}")
        return cls(network, pieces, config, device=device)

    @classmethod
    def shared(cls, name_or_path: str | Path = "", *, device: str = "cpu") -> Self:
        """Loads a reader by its name or folder, empty: the shipped one, or shares one that is in use.

        Raises NotFoundError if it is not installed, CheckpointError if damaged.
        """
        folder, target = find_model(name_or_path or cls.shipped), compute_device(device)
        return shared(partial(cls.from_folder, device=target), folder, _READER_FILES, target)
