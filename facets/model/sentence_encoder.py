"""The encoder of passages and queries: a transformer of MiniLM's form whose batches hold no padding.

Tokens of all texts of a batch stand one after another, so that the linear layers, which are nearly all of the work, see
real tokens only; attention alone is padded. Shape suffixes: T tokens of all texts, B texts, L tokens of the longest
text, W width, H heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.config import SentenceEncoderConfig

__all__ = ["RaggedBatch", "SentenceEncoder", "average_states", "from_bert"]

_LAYER_NORM_EPSILON = 1e-12  # BERT's
# Matrix products in half precision keep a kernel for every shape they have met: 3 MB a batch where each has another
# number of tokens. So products see multiples of this many rows: of few for a single query, where most of 64 rows would
# be padding, and of more for a batch, so that there are 70 shapes in all.
_ROWS_STEP = 64
_FEW_ROWS = 128
_FEW_ROWS_STEP = 16


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """Texts one after another.

    Attributes:
        ids: Piece ids of all texts, special pieces included, ``[T]`` int64.
        lengths: Tokens of each text, at least 1, ``[B]`` int64.
        text_numbers: The text that each token is of, ``[T]`` int64.
        positions: The place of each token in its text, from 0, ``[T]`` int64.
        max_length: L.
    """

    ids: Tensor
    lengths: Tensor
    text_numbers: Tensor
    positions: Tensor
    max_length: int

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.integer]], device: torch.device | str = "cpu") -> "RaggedBatch":
        """Texts as piece ids; at least one text, each of at least one piece."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        text = np.repeat(np.arange(len(rows)), lengths)
        position = np.arange(len(text)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids = np.concatenate(list(rows)).astype(np.int64)
        of_text, of_ids, of_place = (torch.from_numpy(array).to(device) for array in (text, ids, position))
        lengths_B = torch.from_numpy(lengths).to(device)
        return cls(of_ids, lengths_B, text_numbers=of_text, positions=of_place, max_length=int(lengths.max()))

    @property
    def mask(self) -> Tensor:
        """True where a text has a token, ``[B, L]``."""
        return torch.arange(self.max_length, device=self.lengths.device) < self.lengths[:, None]

    def pad(self, values_TX: Tensor, *, shape: tuple[int, int] | None = None) -> Tensor:
        """``[B, L, X]`` of ``[T, X]``, zeros where a text has ended; ``shape``: more and longer texts, ``(B, L)``."""
        num_texts, length = shape or (len(self.lengths), self.max_length)
        padded = values_TX.new_zeros(num_texts * length, values_TX.shape[1])
        padded = padded.index_copy(0, self.text_numbers * length + self.positions, values_TX)
        return padded.view(num_texts, length, -1)

    def flatten(self, values_BLX: Tensor) -> Tensor:
        """``[T, X]`` of ``[B, L, X]``."""
        return values_BLX.flatten(0, 1)[self.text_numbers * self.max_length + self.positions]


class SentenceEncoder(nn.Module):
    """Word pieces, positions and transformer layers (post-norm, exact GELU), as in BERT and MiniLM."""

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.pieces: nn.Module = nn.Embedding(config.vocabulary_size, config.width)
        self.positions = nn.Embedding(config.max_tokens, config.width)
        self.norm = nn.LayerNorm(config.width, eps=_LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_layers))

    def forward(self, batch: RaggedBatch) -> Tensor:
        """Contextual states of all tokens, ``[T, W]``."""
        short = _num_padding(len(batch.ids))
        pieces_TW = self.pieces(functional.pad(batch.ids, (0, short)))
        states_TW = self.norm(pieces_TW + self.positions(functional.pad(batch.positions, (0, short))))
        bias_B11L = None
        if int(batch.lengths.min()) < batch.max_length:
            unseen_BL = ~batch.mask
            bias_B11L = torch.zeros(unseen_BL.shape, dtype=states_TW.dtype, device=states_TW.device)
            bias_B11L = bias_B11L.masked_fill_(unseen_BL, torch.finfo(bias_B11L.dtype).min)[:, None, None]
        for layer in self.layers:
            states_TW = layer(states_TW, batch, bias_B11L)
        return states_TW[: len(batch.ids)]


class _Layer(nn.Module):
    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        width = config.width
        self._num_heads = config.num_heads
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=_LAYER_NORM_EPSILON)
        self.feedforward_in = nn.Linear(width, config.feedforward_dim)
        self.feedforward_out = nn.Linear(config.feedforward_dim, width)
        self.feedforward_norm = nn.LayerNorm(width, eps=_LAYER_NORM_EPSILON)

    def forward(self, states_TW: Tensor, batch: RaggedBatch, bias_B11L: Tensor | None) -> Tensor:
        num_tokens = len(batch.ids)
        joined = self.attention_in(states_TW)[:num_tokens]
        joined = joined.view(len(batch.lengths), batch.max_length, -1) if bias_B11L is None else batch.pad(joined)
        heads = joined.unflatten(2, (3, self._num_heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = heads.unbind(0)
        met = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=_like(bias_B11L, heads))
        met = met.transpose(1, 2).flatten(2)
        met = met.flatten(0, 1) if bias_B11L is None else batch.flatten(met)
        met = functional.pad(met, (0, 0, 0, len(states_TW) - num_tokens))
        states_TW = self.attention_norm(states_TW + self.attention_out(met))
        inner = self.feedforward_out(functional.gelu(self.feedforward_in(states_TW)))
        return self.feedforward_norm(states_TW + inner)


def _num_padding(num_tokens: int) -> int:
    return -num_tokens % (_FEW_ROWS_STEP if num_tokens <= _FEW_ROWS else _ROWS_STEP)


def _like(bias: Tensor | None, heads: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(heads.dtype)


def average_states(states_TW: Tensor, batch: RaggedBatch) -> Tensor:
    """The sentence vector of each text, unit norm, ``[B, W]`` float32: the mean of all its states."""
    totals = torch.zeros(len(batch.lengths), states_TW.shape[1], device=states_TW.device)
    return functional.normalize(totals.index_add(0, batch.text_numbers, states_TW.float()), dim=1)


def from_bert(weights: Mapping[str, Tensor], layers: Sequence[int]) -> dict[str, Tensor]:
    """Weights of a :class:`SentenceEncoder` from those of a BERT.

    Args:
        weights: As the ``transformers`` library names them; other tensors (the pooler) are ignored.
        layers: The layers to take, from 0, in order.
    """
    taken = {
        "pieces.weight": weights["embeddings.word_embeddings.weight"],
        # All texts are of segment 0.
        "positions.weight": weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0],
    }
    names = {
        "attention_out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "feedforward_in": "intermediate.dense",
        "feedforward_out": "output.dense",
        "feedforward_norm": "output.LayerNorm",
    }
    for part in ("weight", "bias"):
        taken[f"norm.{part}"] = weights[f"embeddings.LayerNorm.{part}"]
        for place, layer in enumerate(layers):
            theirs, ours = f"encoder.layer.{layer}.", f"layers.{place}."
            joined = [weights[f"{theirs}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            taken[f"{ours}attention_in.{part}"] = torch.cat(joined)
            for name, its_name in names.items():
                taken[f"{ours}{name}.{part}"] = weights[f"{theirs}{its_name}.{part}"]
    return taken
