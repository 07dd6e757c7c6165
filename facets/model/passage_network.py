"""The network of passages: an encoder without padding, and facets as soft spans of its states.

The encoder is a transformer of MiniLM's form. Tokens of all texts of a batch stand one after another, so that the
linear layers, which are nearly all of the work, see real tokens only; attention alone is padded.

What co-occurs with a passage are the sentences it holds and the questions it answers, as vectors of a sentence encoder;
facets are the predicted centres of these (Chang 2022, section 3.2.1, with another target space). A sentence vector is
itself a mean of token states, so a facet starts as the mean of a segment and learns which tokens belong together.

Shape suffixes: T tokens of all texts, B texts, L tokens of the longest text, K facets, W width, H heads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.config import PassageNetworkConfig, SentenceEncoderConfig

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


_NUM_WAVES = 16  # sine and cosine each, of the place of a facet
_LARGEST_SHIFT = 0.3  # what one unit of the output of the shift layer moves a facet, in lengths of the text
_LENGTH_STEP = 32  # few different shapes: half precision keeps a kernel for each it has met


class FacetPooling(nn.Module):
    """Token states to facets: where each facet looks, and what it sees there.

    A text of n tokens has ``ceil(n / tokens_per_facet)`` facets, K at most, that begin as equal segments of it. A facet
    asks with its place and the vector of the text, reads the text once (a decoder layer), and then weights tokens by
    a softmax of a content score and a Gaussian over positions.
    """

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        width = config.encoder.width
        self.config = config
        self.from_vector = nn.Linear(width, width)
        self.from_place = nn.Linear(2 * _NUM_WAVES, width)
        # Texts second: with texts first the attention of PyTorch multiplies every token by a copy of its weights.
        self.decoder = nn.TransformerDecoderLayer(
            width, config.num_heads, config.feedforward_dim, dropout=0.0, batch_first=False, norm_first=True
        )
        self.asks = nn.Linear(width, width)
        self.answers = nn.Linear(width, width)
        self.shift = _zero_linear(width, 1)
        self.log_width = _zero_linear(width, 1)
        self.correction = _zero_linear(width, width)

    def forward(self, states_TW: Tensor, vectors_BW: Tensor, batch: RaggedBatch) -> tuple[Tensor, Tensor]:
        """Facets and where they look.

        Args:
            states_TW: Contextual states of all tokens.
            vectors_BW: Unit vectors of the texts.
            batch: What the states belong to.

        Returns:
            Facets of unit norm ``[B, K, W]``, zero rows where a text has fewer, and their weights over tokens
            ``[B, K, L]``, which add up to 1 over the tokens of the text.
        """
        num_facets_B = self.num_facets(batch.lengths)
        size, length = _round_up(len(vectors_BW)), -(-batch.max_length // _LENGTH_STEP) * _LENGTH_STEP
        more = size - len(vectors_BW)
        facets_BKW, weights_BKL = self._facets(
            batch.pad(states_TW, shape=(size, length)),
            functional.pad(vectors_BW, (0, 0, 0, more)),
            functional.pad(batch.lengths, (0, more), value=1),
            functional.pad(num_facets_B, (0, more), value=1),
        )
        short = self.config.num_facets - facets_BKW.shape[1]
        facets_BKW = functional.pad(facets_BKW[: len(vectors_BW)], (0, 0, 0, short))
        return facets_BKW, functional.pad(weights_BKL[: len(vectors_BW), :, : batch.max_length], (0, 0, 0, short))

    def _facets(
        self, states_BLW: Tensor, vectors_BW: Tensor, lengths_B: Tensor, num_facets_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As :meth:`forward`, of padded states; every text has a token."""
        places_L = torch.arange(states_BLW.shape[1], device=states_BLW.device)
        unseen_BL = places_L >= lengths_B[:, None]
        most = min(_round_up(int(num_facets_B.max())), self.config.num_facets)
        facets_K = torch.arange(most, device=states_BLW.device)
        used_BK = facets_K < num_facets_B[:, None]
        centres_BK = (facets_K + 0.5) / num_facets_B[:, None]
        queries_BKW = self.from_place(_waves(centres_BK).to(states_BLW.dtype))
        queries_BKW = queries_BKW + self.from_vector(vectors_BW.to(states_BLW.dtype))[:, None]
        queries_KBW, states_LBW = (values.transpose(0, 1).contiguous() for values in (queries_BKW, states_BLW))
        queries_KBW = self.decoder(
            queries_KBW, states_LBW, tgt_key_padding_mask=~used_BK, memory_key_padding_mask=unseen_BL
        )
        # Of a tensor that is not contiguous, every text would be multiplied by a copy of the weights.
        queries_BKW = queries_KBW.transpose(0, 1).contiguous()
        # Few facets are taken to the space of many tokens; what the bias adds is the same for all tokens.
        asked_BKW = self.asks(queries_BKW) @ self.answers.weight
        content_BKL = asked_BKW @ states_BLW.mT / math.sqrt(states_BLW.shape[2])
        positions_BL = (places_L + 0.5) / lengths_B[:, None]
        near_BKL = self._nearness(queries_BKW, centres_BK, num_facets_B, positions_BL)
        weights_BKL = (content_BKL.float() + near_BKL).masked_fill(unseen_BL[:, None], -torch.inf).softmax(dim=2)
        seen_BKW = weights_BKL.to(states_BLW.dtype) @ states_BLW
        pooled_BKW = functional.normalize((seen_BKW + self.correction(seen_BKW)).float(), dim=2)
        facets_BKW = functional.normalize(pooled_BKW + self._shared(vectors_BW), dim=2)
        return facets_BKW * used_BK[:, :, None], weights_BKL * used_BK[:, :, None]

    def num_facets(self, lengths_B: Tensor) -> Tensor:
        """Facets of texts of so many tokens."""
        wanted_B = torch.ceil(lengths_B / self.config.tokens_per_facet).long()
        return wanted_B.clamp(1, self.config.num_facets)

    def _shared(self, vectors_BW: Tensor) -> Tensor:
        """What all facets of a text have in common: as if its own vector counted in every score."""
        return self.config.own_vector_weight * vectors_BW.float()[:, None]

    def _nearness(self, queries_BKW: Tensor, centres_BK: Tensor, num_facets_B: Tensor, positions_BL: Tensor) -> Tensor:
        """Logarithm of the Gaussian of each facet at each token, up to a constant, ``[B, K, L]``."""
        moved_BK = centres_BK + _LARGEST_SHIFT * self.shift(queries_BKW).squeeze(2).float()
        widths_BK = torch.exp(self.log_width(queries_BKW).squeeze(2).float()) * 0.5 / num_facets_B[:, None]
        return -0.5 * ((positions_BL[:, None] - moved_BK[:, :, None]) / widths_BK[:, :, None]).square()


class PassageNetwork(nn.Module):
    """Encoder and facets of passages."""

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = SentenceEncoder(config.encoder)
        self.pooling = FacetPooling(config)

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Facets ``[B, K, W]``, their weights over tokens ``[B, K, L]``, and vectors of the texts ``[B, W]``."""
        states_TW = self.encoder(batch)
        vectors_BW = average_states(states_TW, batch)
        facets_BKW, weights_BKL = self.pooling(states_TW, vectors_BW, batch)
        return facets_BKW, weights_BKL, vectors_BW


def _round_up(size: int) -> int:
    """The next power of two."""
    return 1 << max(0, size - 1).bit_length()


def _zero_linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _waves(places: Tensor) -> Tensor:
    """Sines and cosines of half, one, one and a half ... turns, ``[..., 2 * _NUM_WAVES]``."""
    turns = torch.arange(1, _NUM_WAVES + 1, device=places.device) / 2
    angles = 2 * math.pi * places[..., None] * turns
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
