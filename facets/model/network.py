"""The network: text -> encoder -> K input maps -> facet decoder -> K facets (Chang 2022, eq. 3.3, 3.4).

An encoder takes token rows ``[B, L]``, padded at the end, with the lengths of the texts. It appends <eos> to each text
itself and returns contextual states ``[B, L + 1, H]``; the state at index ``length`` is that of <eos>.
Shape suffixes: B texts, L tokens (keys of attention), Q queries of attention, K facets, D dimensions of the target
space, H hidden width.
"""

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.config import FacetModelConfig
from facets.language.vectors import WordVectors
from facets.model.precision import Int8Linear, Traced, has_int8


def sinusoidal_positions(num_positions: int, width: int) -> Tensor:
    """Position codes ``[num_positions, width]``: sines, then cosines, with geometric wavelengths."""
    positions = torch.arange(num_positions, dtype=torch.float32).unsqueeze(1)
    wavelengths = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10_000.0) / width))
    return torch.cat([torch.sin(positions * wavelengths), torch.cos(positions * wavelengths)], dim=1)


class Attention(nn.Module):
    """Multi-head attention of queries over a memory; for self-attention both are the same."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, queries_BQH: Tensor, memory_BLH: Tensor, mask_B11L: Tensor | None) -> Tensor:
        """Attends, ``[B, Q, H]``, to the memory positions where the mask is True; None: nothing is padded."""
        # [B, Q, H] -> [B, N, Q, E]
        queries_BNQE = self.query(queries_BQH).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        keys_BLH, values_BLH = self.key_value(memory_BLH).chunk(2, dim=-1)
        keys_BNLE = keys_BLH.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        values_BNLE = values_BLH.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        if queries_BNQE.is_cuda or not torch.is_grad_enabled():
            mixed_BNQE = functional.scaled_dot_product_attention(
                queries_BNQE, keys_BNLE, values_BNLE, attn_mask=mask_B11L
            )
        else:
            # On a CPU, at 20 tokens, the backward pass of PyTorch's fused kernel takes eight times as long as this.
            scores_BNQL = queries_BNQE @ keys_BNLE.mT * queries_BNQE.shape[-1] ** -0.5
            if mask_B11L is not None:
                scores_BNQL = scores_BNQL.masked_fill(~mask_B11L, float("-inf"))
            mixed_BNQE = scores_BNQL.softmax(dim=-1) @ values_BNLE
        # [B, N, Q, E] -> [B, Q, H]
        return self.output(mixed_BNQE.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A pre-norm transformer layer: self-attention, optional cross-attention, feed-forward."""

    def __init__(self, width: int, num_heads: int, feedforward_width: int, *, cross_attention: bool = False) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, num_heads)
        self.cross_norm = nn.LayerNorm(width) if cross_attention else None
        self.cross_attention = Attention(width, num_heads) if cross_attention else None
        self.feedforward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feedforward_width)
        self.contract = nn.Linear(feedforward_width, width)

    def forward(
        self,
        states_BQH: Tensor,
        mask_B11Q: Tensor | None,
        memory_BLH: Tensor | None = None,
        memory_mask_B11L: Tensor | None = None,
    ) -> Tensor:
        """One layer, ``[B, Q, H] -> [B, Q, H]``; masks are True at real positions, None without padding."""
        normed_BQH = self.self_norm(states_BQH)
        states_BQH = states_BQH + self.self_attention(normed_BQH, normed_BQH, mask_B11Q)
        if self.cross_attention is not None and self.cross_norm is not None and memory_BLH is not None:
            normed_BQH = self.cross_norm(states_BQH)
            states_BQH = states_BQH + self.cross_attention(normed_BQH, memory_BLH, memory_mask_B11L)
        hidden = functional.relu(self.expand(self.feedforward_norm(states_BQH)))
        return states_BQH + self.contract(hidden)


class WordTable(nn.Module):
    """Frozen vectors: floats, or bytes with a scale for each of G equal groups of a row, which need a quarter."""

    vectors: Tensor
    scales: Tensor | None

    def __init__(self, vectors_VD: Tensor, scales_VG: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors_VD, persistent=False)
        self.register_buffer("scales", scales_VG, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        scales = self.scales
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.scales = None if scales is None else scales.to(self.vectors.device)  # bfloat16 would round them
        return self

    @classmethod
    def of(cls, words: WordVectors) -> Self:
        """The unit vectors of words as they are stored."""
        vectors, scales = words.stored_units()
        return cls(torch.from_numpy(vectors), None if scales is None else torch.from_numpy(scales))

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., D]`` for rows ``[...]``."""
        vectors = functional.embedding(rows, self.vectors)
        if self.scales is None:
            return vectors
        scales = functional.embedding(rows, self.scales)
        return (vectors.view(*scales.shape, -1) * scales.unsqueeze(-1)).flatten(-2)


class TokenEmbedding(nn.Module):
    """Frozen word vectors, plus learned vectors for <unk> (row V) and <eos> (row V + 1)."""

    def __init__(self, words: WordTable) -> None:
        super().__init__()
        self.words = words
        self._num_words, dim = words.vectors.shape
        self.special = nn.Parameter(torch.randn(2, dim) * dim**-0.5)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Vectors ``[B, L + 1, D]`` of token rows ``[B, L]``, with <eos> after the last token."""
        num_words = self._num_words
        rows_BL = functional.pad(rows_BL, (0, 1), value=num_words)
        rows_BL = rows_BL.scatter(1, lengths_B.unsqueeze(1), num_words + 1)
        vectors_BLD = self.words(rows_BL.clamp_max(num_words - 1))
        special_BLD = functional.embedding((rows_BL - num_words).clamp_min(0), self.special)
        return torch.where((rows_BL >= num_words).unsqueeze(-1), special_BLD, vectors_BLD)


class TransformerEncoder(nn.Module):
    """Pre-norm transformer over word vectors with fixed position codes."""

    positions: Tensor

    def __init__(self, config: FacetModelConfig, words: WordTable) -> None:
        super().__init__()
        self.width = config.hidden_dim
        self.embedding = TokenEmbedding(words)
        self.input = nn.Linear(config.dim, config.hidden_dim)
        self.register_buffer(
            "positions", sinusoidal_positions(config.max_tokens + 1, config.hidden_dim), persistent=False
        )
        self.position_scale = nn.Parameter(torch.tensor(0.1))
        self.blocks = nn.ModuleList(
            Block(config.hidden_dim, config.num_heads, config.feedforward_dim) for _ in range(config.num_encoder_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_dim)

    def embed(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """The mean of the states of each text's tokens, without <eos>, ``[B, H]``."""
        states_BLH = self(rows_BL, lengths_B)
        mask_BL1 = (torch.arange(states_BLH.shape[1], device=rows_BL.device) < lengths_B[:, None]).unsqueeze(2)
        return states_BLH.masked_fill(~mask_BL1, 0.0).sum(dim=1) / lengths_B[:, None]

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Contextual states ``[B, L + 1, H]`` of token rows ``[B, L]`` of the given lengths."""
        vectors_BLD = self.embedding(rows_BL, lengths_B)
        states_BLH = self.input(vectors_BLD) + self.position_scale * self.positions[: vectors_BLD.shape[1]]
        mask_B11L = padding_mask(lengths_B, rows_BL.shape[1])
        for block in self.blocks:
            states_BLH = block(states_BLH, mask_B11L)
        normed: Tensor = self.norm(states_BLH)
        return normed


def padding_mask(lengths_B: Tensor, width: int) -> Tensor | None:
    """Boolean ``[B, 1, 1, width + 1]``, True at tokens and <eos>; None when no text is padded."""
    if bool((lengths_B == width).all()):
        return None
    return (torch.arange(width + 1, device=lengths_B.device) <= lengths_B.unsqueeze(1))[:, None, None]


class FacetDecoder(nn.Module):
    """K linear maps of the <eos> state, then a transformer over the facets, which may attend to the tokens."""

    def __init__(self, config: FacetModelConfig) -> None:
        super().__init__()
        self.num_facets = config.num_facets
        self.input_maps = nn.Linear(config.hidden_dim, config.num_facets * config.hidden_dim)
        # With small biases the facets would stay near-copies of each other for a long time.
        nn.init.uniform_(self.input_maps.bias, -0.5, 0.5)
        self.blocks = nn.ModuleList(
            Block(config.hidden_dim, config.num_heads, config.feedforward_dim, cross_attention=config.cross_attention)
            for _ in range(config.num_decoder_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_dim)
        self.output = nn.Linear(config.hidden_dim, config.dim)

    def forward(self, eos_BH: Tensor, states_BLH: Tensor, mask_B11L: Tensor | None) -> Tensor:
        """Facets ``[B, K, D]`` of any magnitude, from the <eos> states and all states."""
        facets_BKH = self.input_maps(eos_BH).unflatten(-1, (self.num_facets, -1))
        for block in self.blocks:
            facets_BKH = block(facets_BKH, None, states_BLH, mask_B11L)
        facets_BKD: Tensor = self.output(self.norm(facets_BKH))
        return facets_BKD


_LEAST_RELU = -1e-6
_SMALL_TOKENS = 256  # tokens of the largest batch that is recorded, see `Traced`


class FacetNetwork(nn.Module):
    """Turns token rows into K facet embeddings in one forward pass."""

    def __init__(self, config: FacetModelConfig, words: WordTable) -> None:
        super().__init__()
        self.config = config
        self.encoder = TransformerEncoder(config, words)
        self.decoder = FacetDecoder(config)
        self._run = Traced(self, self._facets, small=_SMALL_TOKENS)

    def use_int8(self) -> None:
        """Multiplies integers in the layers of the decoder, where the CPU can; the facets keep a mean cosine of .9996.

        Queries of attention need more than seven bits, and so do the first and the last layers.
        """
        for layer in list(self.decoder.modules()) if has_int8() else ():
            if isinstance(layer, Block):
                layer.expand, layer.contract = Int8Linear(layer.expand), Int8Linear(layer.contract, least=_LEAST_RELU)
            elif isinstance(layer, Attention):
                layer.key_value, layer.output = Int8Linear(layer.key_value), Int8Linear(layer.output)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Facets ``[B, K, D]`` in the target space, magnitudes kept (Chang 2022, eq. 3.3, 3.4).

        ``rows_BL``: token rows, padded at the end with any valid row. ``lengths_B``: numbers of real tokens.
        """
        facets_BKD: Tensor = self._run(rows_BL, lengths_B, padding_mask(lengths_B, rows_BL.shape[1]))
        return facets_BKD

    def _facets(self, rows_BL: Tensor, lengths_B: Tensor, mask_B11L: Tensor | None) -> Tensor:
        states_BLH = self.encoder(rows_BL, lengths_B)
        eos_BH = states_BLH.gather(1, lengths_B[:, None, None].expand(-1, 1, states_BLH.shape[2])).squeeze(1)
        facets_BKD: Tensor = self.decoder(eos_BH, states_BLH, mask_B11L)
        return facets_BKD
