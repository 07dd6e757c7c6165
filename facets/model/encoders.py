"""Encoders: rows of tokens in, contextual states out, one interface for all of them.

Shape suffixes: B texts, L tokens (the <eos> included), D dimensions of word vectors, H hidden width.

Every encoder appends <eos> to each text itself, so that callers pass plain token rows padded
at the end, and returns states ``[B, L + 1, H]`` whose position ``length`` is <eos>.
"""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.config import FacetModelConfig
from facets.model.transformer import Block, sinusoidal_positions

__all__ = ["Encoder", "RecurrentEncoder", "TokenEmbedding", "TransformerEncoder"]


class Encoder(Protocol):
    """What the facet decoder needs from an encoder."""

    def __call__(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """States ``[B, L + 1, H]`` of token rows padded at the end; ``lengths_B`` counts the real ones."""
        ...


class TokenEmbedding(nn.Module):
    """Frozen word vectors, plus learned vectors for <unk> (row V) and <eos> (row V + 1).

    The word vectors are also the target space. They are stored once beside the network,
    not in its weights.
    """

    word_vectors: Tensor

    def __init__(self, word_vectors_VD: Tensor) -> None:
        super().__init__()
        self.register_buffer("word_vectors", word_vectors_VD, persistent=False)
        self.special = nn.Parameter(torch.randn(2, word_vectors_VD.shape[1]) * word_vectors_VD.shape[1] ** -0.5)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """``[B, L]`` rows -> ``[B, L + 1, D]`` vectors with <eos> after the last token."""
        num_words = self.word_vectors.shape[0]
        rows_BL = functional.pad(rows_BL, (0, 1), value=num_words)
        rows_BL = rows_BL.scatter(1, lengths_B.unsqueeze(1), num_words + 1)
        vectors_BLD = functional.embedding(rows_BL.clamp_max(num_words - 1), self.word_vectors)
        special_BLD = functional.embedding((rows_BL - num_words).clamp_min(0), self.special)
        return torch.where((rows_BL >= num_words).unsqueeze(-1), special_BLD, vectors_BLD)


class TransformerEncoder(nn.Module):
    """Pre-norm transformer over word vectors with fixed position codes."""

    positions: Tensor

    def __init__(self, config: FacetModelConfig, word_vectors_VD: Tensor) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(word_vectors_VD)
        self.input = nn.Linear(config.dim, config.hidden_dim)
        self.register_buffer(
            "positions", sinusoidal_positions(config.max_tokens + 1, config.hidden_dim), persistent=False
        )
        self.position_scale = nn.Parameter(torch.tensor(0.1))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            Block(config.hidden_dim, config.num_heads, config.feedforward_dim, dropout=config.dropout)
            for _ in range(config.num_encoder_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_dim)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """See ``Encoder``."""
        vectors_BLD = self.embedding(rows_BL, lengths_B)
        states_BLH = self.input(vectors_BLD) + self.position_scale * self.positions[: vectors_BLD.shape[1]]
        states_BLH = self.dropout(states_BLH)
        mask_B11L = padding_mask(lengths_B, rows_BL.shape[1])
        for block in self.blocks:
            states_BLH = block(states_BLH, mask_B11L)
        normed: Tensor = self.norm(states_BLH)
        return normed


class RecurrentEncoder(nn.Module):
    """Bidirectional LSTM or GRU over word vectors."""

    def __init__(self, config: FacetModelConfig, word_vectors_VD: Tensor) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(word_vectors_VD)
        kind = nn.LSTM if config.encoder == "lstm" else nn.GRU
        self.recurrence = kind(
            config.dim,
            config.hidden_dim // 2,
            num_layers=config.num_encoder_layers,
            dropout=config.dropout if config.num_encoder_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.norm = nn.LayerNorm(config.hidden_dim)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """See ``Encoder``; packing keeps padding out of the backward direction."""
        vectors_BLD = self.embedding(rows_BL, lengths_B)
        packed = nn.utils.rnn.pack_padded_sequence(
            vectors_BLD, (lengths_B + 1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = self.recurrence(packed)
        states_BLH, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=vectors_BLD.shape[1])
        normed: Tensor = self.norm(states_BLH)
        return normed


def padding_mask(lengths_B: Tensor, width: int) -> Tensor | None:
    """Boolean ``[B, 1, 1, width + 1]``, True at tokens and <eos>; None when no text is padded."""
    if bool((lengths_B == width).all()):
        return None
    return (torch.arange(width + 1, device=lengths_B.device) <= lengths_B.unsqueeze(1))[:, None, None]
