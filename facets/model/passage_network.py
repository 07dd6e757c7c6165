"""The passage network: an encoder without padding, and facets as soft spans of its states.

The tokens of all texts in a batch are concatenated, so linear layers process no padding; only attention is padded.
Facets are the predicted centres of a passage's contexts, the sentences it holds and the questions it answers (Chang
2022, section 3.2.1, with another target space).

Shape suffixes: T tokens of all texts, B texts, L tokens of the longest text, K facets, S sentences, W width, H heads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.arrays import Ints
from facets.config import PassageNetworkConfig, SentenceEncoderConfig
from facets.model.precision import Int8Linear, Traced

_LAYER_NORM_EPSILON = 1e-12  # BERT's
_LEAST_GELU = -0.17  # minimum of GELU, at -0.75
# Half-precision products cache a 3 MB kernel for every shape they have seen. So the number of rows is rounded up to a
# multiple of 16 for a single query and of 64 for a batch, which makes 70 shapes in all.
_ROWS_STEP = 64
_FEW_ROWS = 128
_FEW_ROWS_STEP = 16
_SMALL_TOKENS = 256  # tokens of the largest batch that is recorded, see `Traced`
_ATTENTION_STEP = 16  # tokens; attention over 31 tokens takes twice as long as over 32, and over 17 as long as over 32


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """Concatenated texts."""

    ids: Tensor  # piece ids of all texts, special pieces included, `[T]` int64
    lengths: Tensor  # tokens of each text, at least 1, `[B]` int64
    text_numbers: Tensor  # index of the text of each token, `[T]` int64
    positions: Tensor  # position of each token in its text, from 0, `[T]` int64
    max_length: int  # L

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.integer]], device: torch.device | str = "cpu") -> "RaggedBatch":
        """A batch of texts given as piece ids: at least one text, with at least one piece each."""
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
        """Pads ``[T, X]`` to ``[B, L, X]`` with zeros; ``shape``: a larger ``(B, L)``."""
        num_texts, length = shape or (len(self.lengths), self.max_length)
        padded = values_TX.new_zeros(num_texts * length, values_TX.shape[1])
        padded = padded.index_copy(0, self.text_numbers * length + self.positions, values_TX)
        return padded.view(num_texts, length, -1)


class SentenceEncoder(nn.Module):
    """Word pieces, positions and transformer layers (post-norm, exact GELU), as in BERT and MiniLM."""

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.pieces: nn.Module = nn.Embedding(config.vocabulary_size, config.width)
        self.positions = nn.Embedding(config.max_tokens, config.width)
        self.norm = nn.LayerNorm(config.width, eps=_LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_layers))
        self._run_layers = Traced(self, self._through_layers, small=_SMALL_TOKENS * self.config.width)

    def use_int8(self) -> None:
        """Makes the layers multiply integers where no gradients are needed; the weights stay unchanged."""
        for layer in self.modules():
            if isinstance(layer, _Layer):
                for name in ("attention_in", "attention_out", "feedforward_in"):
                    setattr(layer, name, Int8Linear(getattr(layer, name)))
                layer.feedforward_out = Int8Linear(layer.feedforward_out, least=_LEAST_GELU)
        self._run_layers = Traced(self, self._through_layers, small=_SMALL_TOKENS * self.config.width)

    def forward(self, batch: RaggedBatch) -> Tensor:
        """Contextual states of all tokens, ``[T, W]``."""
        num_tokens = len(batch.ids)
        short = -num_tokens % (_FEW_ROWS_STEP if num_tokens <= _FEW_ROWS else _ROWS_STEP)
        pieces_TW = self.pieces(functional.pad(batch.ids, (0, short)))
        states_TW = self.norm(pieces_TW + self.positions(functional.pad(batch.positions, (0, short))))
        states_TW = self._run_layers(states_TW, *_padded_places(batch, num_tokens + short, states_TW.dtype))
        return states_TW[:num_tokens]

    def _through_layers(self, states_TW: Tensor, *places: Tensor | None) -> Tensor:
        for layer in self.layers:
            states_TW = layer(states_TW, *places)
        return states_TW


def _padded_places(batch: RaggedBatch, num_rows: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor | None]:
    """Indexes that pad ``num_rows`` rows, those without a token last, for attention and undo it for linear layers.

    Returns the row of each position, ``[B, L]``, where padding repeats the first row of its text; the position of each
    row in the padded batch, ``[T]``, 0 for rows without a token; and the attention bias, ``[B, 1, 1, L]``: the lowest
    number at padding, 0 elsewhere, or None without padding.
    """
    length = -(-batch.max_length // _ATTENTION_STEP) * _ATTENTION_STEP
    unseen_BL = functional.pad(~batch.mask, (0, length - batch.max_length), value=True)
    places_T = batch.text_numbers * length + batch.positions
    rows_P = torch.zeros(unseen_BL.numel(), dtype=torch.long, device=places_T.device)
    rows_P = rows_P.index_copy(0, places_T, torch.arange(len(places_T), device=places_T.device))
    rows_BL = rows_P.view(unseen_BL.shape)
    rows_BL = torch.where(unseen_BL, rows_BL[:, :1], rows_BL)
    bias_B11L = None
    if bool(unseen_BL.any()):
        bias_BL = torch.zeros(unseen_BL.shape, dtype=dtype, device=unseen_BL.device)
        bias_B11L = bias_BL.masked_fill_(unseen_BL, torch.finfo(dtype).min)[:, None, None]
    return rows_BL, functional.pad(places_T, (0, num_rows - len(places_T))), bias_B11L


class _Layer(nn.Module):
    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        width = config.width
        self._num_heads = config.num_heads
        self.attention_in: nn.Linear = nn.Linear(width, 3 * width)
        self.attention_out: nn.Linear = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=_LAYER_NORM_EPSILON)
        self.feedforward_in: nn.Linear = nn.Linear(width, config.feedforward_dim)
        self.feedforward_out: nn.Linear = nn.Linear(config.feedforward_dim, width)
        self.feedforward_norm = nn.LayerNorm(width, eps=_LAYER_NORM_EPSILON)

    def forward(self, states_TW: Tensor, rows_BL: Tensor, places_T: Tensor, bias: Tensor | None) -> Tensor:
        """One layer; the other arguments come from ``_padded_places``."""
        joined_PX = self.attention_in(states_TW).index_select(0, rows_BL.flatten())
        joined_BLX = joined_PX.view(*rows_BL.shape, joined_PX.shape[1])
        heads = joined_BLX.unflatten(2, (3, self._num_heads, -1)).permute(2, 0, 3, 1, 4)
        bias = None if bias is None else bias.to(heads.dtype)
        queries, keys, values = heads.unbind(0)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        mixed_TW = mixed.transpose(1, 2).reshape(-1, states_TW.shape[1]).index_select(0, places_T)
        states_TW = self.attention_norm(states_TW + self.attention_out(mixed_TW))
        inner = self.feedforward_out(functional.gelu(self.feedforward_in(states_TW)))
        return self.feedforward_norm(states_TW + inner)


def average_states(states_TW: Tensor, batch: RaggedBatch) -> Tensor:
    """Sentence vector of each text, ``[B, W]`` float32, unit norm: the mean of its states."""
    totals = torch.zeros(len(batch.lengths), states_TW.shape[1], device=states_TW.device)
    return functional.normalize(totals.index_add(0, batch.text_numbers, states_TW.float()), dim=1)


_NUM_WAVES = 16  # sines and cosines that encode the position of a facet
_SHIFT_SCALE = 0.3  # shift of a facet per unit of the shift layer's output, as a fraction of the text's length
_LENGTH_STEP = 32  # keeps the number of different shapes low, see `_ROWS_STEP`


class Slots(NamedTuple):
    """Where the facets of texts start looking; unused facets come last."""

    centres: Tensor  # middle of the segment that a facet starts from, in (0, 1) of its text, `[B, K]` float32
    counts: Tensor  # number of segments of the same length that fit the text, `[B, K]` float32
    firsts: Tensor  # first token that a facet may look at, `[B, K]` int64
    lasts: Tensor  # one past the last token, `[B, K]` int64
    used: Tensor  # whether the text has this facet, `[B, K]`; always True for the first

    def padded(self, num_texts: int, num_facets: int) -> "Slots":
        """Adds unused texts and facets."""
        more = (0, num_facets - self.used.shape[1], 0, num_texts - len(self.used))
        fills = (0.5, 1, 0, 1, False)
        slots = Slots(*(functional.pad(old, more, value=fill) for old, fill in zip(self, fills, strict=True)))
        slots.used[len(self.used) :, 0] = True
        return slots


def sentence_slots(
    sentences_BS: Ints, config: PassageNetworkConfig, *, device: torch.device | str = "cpu"
) -> tuple[Slots, Ints]:
    """Equal segments of sentences: at least one per sentence, and one for each ``tokens_per_facet`` of a text.

    Each further segment goes to the sentence with the longest segments. ``sentences_BS``: tokens of each sentence, at
    most K sentences per text, 0 after the last one. Returns slots that look only at their own sentence, and the index
    of each slot's sentence, ``[B, K]``.
    """
    totals_B = sentences_BS.sum(axis=1)
    parts_BS = (sentences_BS > 0).astype(np.int64)
    wanted_B = np.minimum(np.ceil(totals_B / config.tokens_per_facet).astype(np.int64), config.num_facets)
    while len(short_B := np.flatnonzero(parts_BS.sum(axis=1) < wanted_B)):
        longest_B = (sentences_BS[short_B] / np.maximum(parts_BS[short_B], 1)).argmax(axis=1)
        parts_BS[short_B, longest_B] += 1
    ends_BS = parts_BS.cumsum(axis=1)
    facets_K = np.arange(ends_BS[:, -1].max())
    used_BK = facets_K < ends_BS[:, -1:]
    sentence_BK = np.minimum((facets_K >= ends_BS[:, :, None]).sum(axis=1), sentences_BS.shape[1] - 1)

    def of_sentence(values_BS: Ints) -> Ints:
        return np.take_along_axis(values_BS, sentence_BK, axis=1)

    lengths_BK, parts_BK = np.maximum(of_sentence(sentences_BS), 1), np.maximum(of_sentence(parts_BS), 1)
    firsts_BK = of_sentence(sentences_BS.cumsum(axis=1) - sentences_BS)
    place_BK = facets_K - of_sentence(ends_BS - parts_BS) + 0.5
    centres_BK = (firsts_BK + lengths_BK * place_BK / parts_BK) / totals_B[:, None]
    counts_BK = totals_B[:, None] * parts_BK / lengths_BK
    arrays = centres_BK.astype(np.float32), counts_BK.astype(np.float32), firsts_BK, firsts_BK + lengths_BK, used_BK
    return Slots(*(torch.from_numpy(array).to(device) for array in arrays)), sentence_BK


class FacetPooling(nn.Module):
    """Pools token states into facets.

    A text of n tokens has ``ceil(n / tokens_per_facet)`` facets, at most K, which start as equal segments of the text
    or of its sentences. The query of a facet combines its position and the text's vector and passes through a decoder
    layer over the text. A softmax of a content score and a Gaussian over positions then weights the tokens.
    """

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        width = config.encoder.width
        self.config = config
        self.from_vector = nn.Linear(width, width)
        self.from_place = nn.Linear(2 * _NUM_WAVES, width)
        # With the batch first, PyTorch's attention would copy its weights for every token.
        self.decoder = nn.TransformerDecoderLayer(
            width, config.num_heads, config.feedforward_dim, dropout=0.0, batch_first=False, norm_first=True
        )
        self.asks = nn.Linear(width, width)
        self.answers = nn.Linear(width, width)
        self.shift = _zero_linear(width, 1)
        self.log_width = _zero_linear(width, 1)
        self.correction = _zero_linear(width, width)
        self._run_facets = Traced(self, self._facets, small=_SMALL_TOKENS * width)

    def forward(
        self, states_TW: Tensor, vectors_BW: Tensor, batch: RaggedBatch, *, slots: Slots | None = None
    ) -> tuple[Tensor, Tensor]:
        """Facets of unit norm ``[B, K, W]``, zero rows where a text has fewer, and their weights ``[B, K, L]``.

        The weights of a facet sum to 1 over the tokens of the text. ``vectors_BW``: unit vectors of the texts.
        ``slots``: where facets start looking; None: equal segments of the texts.
        """
        if slots is None:
            device = batch.lengths.device
            slots, _ = sentence_slots(batch.lengths[:, None].cpu().numpy(), self.config, device=device)
        size, length = _round_up(len(vectors_BW)), -(-batch.max_length // _LENGTH_STEP) * _LENGTH_STEP
        more = size - len(vectors_BW)
        facets_BKW, weights_BKL = self._run_facets(
            batch.pad(states_TW, shape=(size, length)),
            functional.pad(vectors_BW, (0, 0, 0, more)),
            functional.pad(batch.lengths, (0, more), value=1),
            *slots.padded(size, min(_round_up(slots.used.shape[1]), self.config.num_facets)),
        )
        short = self.config.num_facets - facets_BKW.shape[1]
        facets_BKW = functional.pad(facets_BKW[: len(vectors_BW)], (0, 0, 0, short))
        return facets_BKW, functional.pad(weights_BKL[: len(vectors_BW), :, : batch.max_length], (0, 0, 0, short))

    def _facets(
        self, states_BLW: Tensor, vectors_BW: Tensor, lengths_B: Tensor, *parts_of_slots: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``forward`` for padded states."""
        slots = Slots(*parts_of_slots)
        places_L = torch.arange(states_BLW.shape[1], device=states_BLW.device)
        unseen_BL = places_L >= lengths_B[:, None]
        queries_BKW = self.from_place(_waves(slots.centres).to(states_BLW.dtype))
        queries_BKW = queries_BKW + self.from_vector(vectors_BW.to(states_BLW.dtype))[:, None]
        queries_KBW, states_LBW = (values.transpose(0, 1).contiguous() for values in (queries_BKW, states_BLW))
        queries_KBW = self.decoder(
            queries_KBW, states_LBW, tgt_key_padding_mask=~slots.used, memory_key_padding_mask=unseen_BL
        )
        # A non-contiguous tensor would cause a copy of the weights for every text.
        queries_BKW = queries_KBW.transpose(0, 1).contiguous()
        # Mapping the few facets is cheaper than mapping the many tokens; the bias is the same for all tokens.
        asked_BKW = self.asks(queries_BKW) @ self.answers.weight
        content_BKL = asked_BKW @ states_BLW.mT / math.sqrt(states_BLW.shape[2])
        positions_BL = (places_L + 0.5) / lengths_B[:, None]
        near_BKL = self._nearness(queries_BKW, slots, positions_BL)
        elsewhere_BKL = (places_L < slots.firsts[:, :, None]) | (places_L >= slots.lasts[:, :, None])
        weights_BKL = (content_BKL.float() + near_BKL).masked_fill(elsewhere_BKL, -torch.inf).softmax(dim=2)
        seen_BKW = weights_BKL.to(states_BLW.dtype) @ states_BLW
        pooled_BKW = functional.normalize((seen_BKW + self.correction(seen_BKW)).float(), dim=2)
        # Add a share of the text's own vector, as if it counted in every score.
        shared_B1W = self.config.own_vector_weight * vectors_BW.float()[:, None]
        facets_BKW = functional.normalize(pooled_BKW + shared_B1W, dim=2)
        return facets_BKW * slots.used[:, :, None], weights_BKL * slots.used[:, :, None]

    def _nearness(self, queries_BKW: Tensor, slots: Slots, positions_BL: Tensor) -> Tensor:
        """Log of each facet's Gaussian at each token, up to a constant, ``[B, K, L]``."""
        moved_BK = slots.centres + _SHIFT_SCALE * self.shift(queries_BKW).squeeze(2).float()
        widths_BK = torch.exp(self.log_width(queries_BKW).squeeze(2).float()) * 0.5 / slots.counts
        return -0.5 * ((positions_BL[:, None] - moved_BK[:, :, None]) / widths_BK[:, :, None]).square()


class PassageNetwork(nn.Module):
    """The encoder of passages and the pooling of its states."""

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = SentenceEncoder(config.encoder)
        self.pooling = FacetPooling(config)


def _round_up(size: int) -> int:
    """The next power of two."""
    return 1 << max(0, size - 1).bit_length()


def _zero_linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _waves(places: Tensor) -> Tensor:
    """Sines and cosines of positions in (0, 1), at multiples of half a turn, ``[..., 2 * _NUM_WAVES]``."""
    turns = torch.arange(1, _NUM_WAVES + 1, device=places.device) / 2
    angles = 2 * math.pi * places[..., None] * turns
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
