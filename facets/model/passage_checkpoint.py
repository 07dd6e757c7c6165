r"""The checkpoint folder of a passage model, which is self-contained.

::

    config.json          format, name, task, space, shape of the encoder, facets, windows
    model.safetensors    weights: matrices with one byte per number and scales, the rest in half precision
    tokenizer.json       word pieces
    vocabulary.tsv       words and counts      \\  words with vectors in the space of the facets
    vectors.safetensors  1 byte per number     /
    README.md            model card
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor

from facets.config import AtLeastOne, Name, SentenceEncoderConfig
from facets.model.base import ModelConfig
from facets.model.checkpoint import packed_weights, write_parts
from facets.model.word_pieces import WordPieces
from facets.storage.files import reading, write_whole

TASK: Literal["passages"] = "passages"
PIECES = "pieces.weight"  # the vectors of word pieces, among the weights
PASSAGE_FILES = ("config.json", "model.safetensors", "tokenizer.json", "vectors.safetensors", "vocabulary.tsv")
_word_pieces = lru_cache(4)(WordPieces.from_json)  # models share equal ones


class PassageModelConfig(ModelConfig):
    """``config.json`` of a passage model."""

    task: Literal["passages"] = TASK
    space: Name  # name of the vector space; models with the same space can search each other's collections
    encoder: SentenceEncoderConfig = SentenceEncoderConfig()
    queries: str = ""  # path of the model of this space that encodes queries, relative to the folder; empty: this one
    num_facets: AtLeastOne = 16  # most facets of a text, K
    reads_windows: bool = False  # also read sentences within windows: slightly better facets for twice the time
    window_tokens: Annotated[int, Field(ge=3)] = 256  # tokens read at once, including the two special ones
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for human readers

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
