"""The sentence encoder that students learn from: its weights, its word pieces, its vectors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer

from facets.config import SentenceEncoderConfig
from facets.errors import CheckpointError
from facets.model.network import backbone_folder
from facets.model.passage_network import RaggedBatch, SentenceEncoder, average_states, from_bert

__all__ = ["Teacher", "vectors_of"]

_BATCH_TOKENS = 3000


class Teacher:
    """A sentence-transformers model of BERT's form, read without that library.

    Attributes:
        folder: Its files.
        pieces: Its tokenizer.
        config: Its shape.

    Args:
        name: A packaged model, or a folder.

    Raises:
        ImportError: The package is not installed.
        CheckpointError: The folder holds no such model.
    """

    def __init__(self, name: str) -> None:
        self.folder = backbone_folder(name)
        try:
            self.pieces: Tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
            self.config = _config(json.loads((self.folder / "config.json").read_text(encoding="utf-8")))
            weights = load_file(self.folder / "model.safetensors")
        except Exception as error:  # safetensors and tokenizers raise plain exceptions of their own
            expected = "expected config.json, tokenizer.json and model.safetensors"
            raise CheckpointError(f"{self.folder}: {expected} of a BERT, got: {error}") from error
        self.pieces.no_padding()
        self.pieces.no_truncation()
        self._weights = {key.removeprefix("bert."): weight for key, weight in weights.items()}

    def encoder(self, layers: Sequence[int] | None = None) -> SentenceEncoder:
        """An encoder of some of its layers, of all where none are named, ready to encode.

        Raises:
            CheckpointError: It has no such layer.
        """
        layers = range(self.config.num_layers) if layers is None else layers
        network = SentenceEncoder(self.config.replaced(num_layers=len(layers)))
        try:
            network.load_state_dict(from_bert(self._weights, layers))
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{self.folder}: expected a BERT with layers {list(layers)}: {error}") from error
        return network.eval()

    def ids(self, texts: Sequence[str], max_tokens: int) -> list[NDArray[np.uint16]]:
        """Piece ids of each text, special pieces included; the closing one survives a cut."""
        rows = [encoding.ids for encoding in self.pieces.encode_batch_fast(list(texts))]
        return [
            np.array(row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]], dtype=np.uint16)
            for row in rows
        ]


@torch.inference_mode()
def vectors_of(encoder: SentenceEncoder, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float16]:
    """Unit vectors of texts, ``[N, W]``."""
    vectors = np.zeros((len(rows), encoder.config.width), dtype=np.float16)
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    start = 0
    while start < len(order):
        stop, tokens = start, 0
        while stop < len(order) and (stop == start or tokens + len(rows[order[stop]]) <= _BATCH_TOKENS):
            tokens += len(rows[order[stop]])
            stop += 1
        batch = RaggedBatch.of([rows[number] for number in order[start:stop]])
        vectors[order[start:stop]] = average_states(encoder(batch), batch).numpy().astype(np.float16)
        start = stop
    return vectors


def _config(bert: Mapping[str, Any]) -> SentenceEncoderConfig:
    return SentenceEncoderConfig(
        num_layers=bert["num_hidden_layers"],
        width=bert["hidden_size"],
        num_heads=bert["num_attention_heads"],
        feedforward_dim=bert["intermediate_size"],
        vocabulary_size=bert["vocab_size"],
        max_tokens=bert["max_position_embeddings"],
    )
