"""Pre-norm transformer blocks.

Shape suffixes: B texts, L tokens (keys), Q queries, H hidden width, N heads, E width of a head.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Attention", "Block", "sinusoidal_positions"]


def sinusoidal_positions(num_positions: int, width: int) -> Tensor:
    """Fixed position codes ``[num_positions, width]``: sines, then cosines, of geometric wavelengths."""
    positions = torch.arange(num_positions, dtype=torch.float32).unsqueeze(1)
    wavelengths = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10_000.0) / width))
    return torch.cat([torch.sin(positions * wavelengths), torch.cos(positions * wavelengths)], dim=1)


class Attention(nn.Module):
    """Multi-head attention of queries over a memory, which may be the queries themselves."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, queries_BQH: Tensor, memory_BLH: Tensor, mask_B11L: Tensor | None) -> Tensor:
        """Attends to the memory positions where the mask is True.

        Args:
            queries_BQH: ``[B, Q, H]``.
            memory_BLH: ``[B, L, H]``.
            mask_B11L: Boolean ``[B, 1, 1, L]``, or None when nothing is padded.

        Returns:
            ``[B, Q, H]``.
        """
        # [B, Q, H] -> [B, N, Q, E]
        queries_BNQE = self.query(queries_BQH).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        keys_BLH, values_BLH = self.key_value(memory_BLH).chunk(2, dim=-1)
        keys_BNLE = keys_BLH.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        values_BNLE = values_BLH.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        mixed_BNQE = attend(queries_BNQE, keys_BNLE, values_BNLE, mask_B11L)
        # [B, N, Q, E] -> [B, Q, H]
        return self.output(mixed_BNQE.transpose(1, 2).flatten(2))


def attend(queries_BNQE: Tensor, keys_BNLE: Tensor, values_BNLE: Tensor, mask_B11L: Tensor | None) -> Tensor:
    """Softmax attention ``[B, N, Q, E]``, written out where the fused kernel is slow.

    On a CPU the backward pass of the fused kernel takes eight times as long as these three lines at
    the lengths of sentences (20 tokens, bfloat16).
    """
    if queries_BNQE.is_cuda or not torch.is_grad_enabled():
        return functional.scaled_dot_product_attention(queries_BNQE, keys_BNLE, values_BNLE, attn_mask=mask_B11L)
    scores_BNQL = queries_BNQE @ keys_BNLE.mT * queries_BNQE.shape[-1] ** -0.5
    if mask_B11L is not None:
        scores_BNQL = scores_BNQL.masked_fill(~mask_B11L, float("-inf"))
    return scores_BNQL.softmax(dim=-1) @ values_BNLE


class Block(nn.Module):
    """Self-attention, optional cross-attention and feed-forward, each normalised first and added."""

    def __init__(
        self,
        width: int,
        num_heads: int,
        feedforward_width: int,
        *,
        dropout: float,
        cross_attention: bool = False,
    ) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, num_heads)
        self.cross_norm = nn.LayerNorm(width) if cross_attention else None
        self.cross_attention = Attention(width, num_heads) if cross_attention else None
        self.feedforward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feedforward_width)
        self.contract = nn.Linear(feedforward_width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states_BQH: Tensor,
        mask_B11Q: Tensor | None,
        memory_BLH: Tensor | None = None,
        memory_mask_B11L: Tensor | None = None,
    ) -> Tensor:
        """One layer, ``[B, Q, H] -> [B, Q, H]``; masks are True at real positions, None without padding."""
        normed_BQH = self.self_norm(states_BQH)
        states_BQH = states_BQH + self.dropout(self.self_attention(normed_BQH, normed_BQH, mask_B11Q))
        if self.cross_attention is not None and self.cross_norm is not None and memory_BLH is not None:
            normed_BQH = self.cross_norm(states_BQH)
            states_BQH = states_BQH + self.dropout(self.cross_attention(normed_BQH, memory_BLH, memory_mask_B11L))
        hidden = functional.relu(self.expand(self.feedforward_norm(states_BQH)))
        return states_BQH + self.dropout(self.contract(hidden))
