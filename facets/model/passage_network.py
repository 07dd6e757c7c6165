"""The sentence encoder of our checkpoints: BERT without padding.

The tokens of all texts in a batch are concatenated, so linear layers process no padding; only attention is padded.
Shape suffixes: T tokens of all texts, B texts, L tokens of the longest text, S sentences, W width, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.arrays import Ints
from facets.config import SentenceEncoderConfig
from facets.model.passage_encoding import ReadWindows
from facets.model.precision import Int8Linear, Traced, fastest_precision, wants_int8
from facets.model.word_pieces import Pieces, WordPieces

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

    def pad(self, values_TX: Tensor) -> Tensor:
        """Pads ``[T, X]`` to ``[B, L, X]`` with zeros."""
        num_texts, length = len(self.lengths), self.max_length
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

    def embed(self, ids: Tensor) -> Tensor:
        """The vectors of word pieces, ``[..., W]``."""
        return self.pieces(ids).to(self.positions.weight.dtype)

    def forward(self, batch: RaggedBatch, segments_TW: Tensor | None = None) -> Tensor:
        """Contextual states of all tokens, ``[T, W]``; ``segments_TW``: added to the embeddings of the tokens."""
        num_tokens = len(batch.ids)
        short = -num_tokens % (_FEW_ROWS_STEP if num_tokens <= _FEW_ROWS else _ROWS_STEP)
        pieces_TW = self.embed(functional.pad(batch.ids, (0, short)))
        states_TW = pieces_TW + self.positions(functional.pad(batch.positions, (0, short)))
        if segments_TW is not None:
            states_TW = states_TW + functional.pad(segments_TW, (0, 0, 0, short))
        states_TW = self.norm(states_TW)
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


class CrossEncoder(nn.Module):
    """A few layers of a sentence encoder that read two texts together; subclasses add layers that score."""

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config)
        self.segments = nn.Embedding(2, config.width)  # first text, second text
        nn.init.zeros_(self.segments.weight)


def average_states(states_TW: Tensor, batch: RaggedBatch) -> Tensor:
    """Sentence vector of each text, ``[B, W]`` float32, unit norm: the mean of its states."""
    totals = torch.zeros(len(batch.lengths), states_TW.shape[1], device=states_TW.device)
    return functional.normalize(totals.index_add(0, batch.text_numbers, states_TW.float()), dim=1)


class NetworkEncoder:
    """Encodes windows with the network of a checkpoint; implements ``WindowEncoder``."""

    num_special = 2
    has_states = True
    pads = False

    def __init__(self, network: SentenceEncoder, pieces: WordPieces, *, window_tokens: int, device: str) -> None:
        """``window_tokens``: most tokens read at once, special ones included."""
        target = torch.device(device)
        self.network = network.to(target, fastest_precision(target)).eval().requires_grad_(False)
        if wants_int8(target):
            self.network.use_int8()
        self.pieces = pieces
        self.dim, self.longest = network.config.width, window_tokens - self.num_special

    def split(self, texts: Sequence[str], *, query: bool = False) -> list[Pieces]:
        """Word pieces; those of queries are no different."""
        return self.pieces.encode(texts)

    def knows_script(self, text: str) -> bool:
        """See ``PieceTokenizer``."""
        return self.pieces.knows_script(text)

    @torch.inference_mode()
    def encode(self, windows: Sequence[Pieces], bounds: Sequence[Ints] | None, *, query: bool) -> ReadWindows:
        """Means of the states of windows, special pieces included, and of the sentences in them."""
        before, after = self.pieces.before, self.pieces.after
        device = next(self.network.parameters()).device  # a pipeline may have moved it
        batch = RaggedBatch.of([np.concatenate([before, window.ids, after]) for window in windows], device)
        states_TD = self.network(batch)
        vectors_BD = average_states(states_TD, batch).cpu().numpy()
        if bounds is None:
            return vectors_BD, None
        counts = np.concatenate([[1, *np.diff(own), 1] for own in bounds])
        is_sentence = np.concatenate([[False, *[True] * (len(own) - 1), False] for own in bounds])
        groups_T = torch.from_numpy(np.repeat(np.arange(len(counts)), counts)).to(device)
        sums = torch.zeros(len(counts), self.dim, device=device).index_add_(0, groups_T, states_TD.float())
        return vectors_BD, sums.cpu().numpy()[is_sentence]
