"""The network of patterns: a sentence encoder, K facets over its states, and the order of the arguments.

A facet has two parts. Its content is the pattern's sentence vector, shifted by the facet decoder, so an untrained
network compares patterns as the encoder compares sentences. Its order distinguishes the arguments, which sentence
vectors hardly do.

Shape suffixes: B patterns, T tokens of all patterns, L tokens of the longest, V word pieces, W width of the encoder, K
facets, O dimensions of the order, D = W + O, X a concatenation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.config import FacetModelConfig, PatternNetworkConfig
from facets.model.network import FacetDecoder
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.word_pieces import WordPieces
from facets.relations.patterns import ARG1, ARG2, ENTITY

_FIRST_SCALE = 0.02  # initial scale of the decoder's output, so that facets start near the sentence vector
# Their ids follow those of the word pieces: V, V + 1, V + 2.
PLACEHOLDERS = (ARG1, ARG2, ENTITY)
NUM_PLACEHOLDERS = len(PLACEHOLDERS)


class PatternEmbedding(nn.Module):
    """The encoder's fixed word pieces, followed by learned vectors of the placeholders.

    The pieces are stored only with the passage model they come from.
    """

    pieces: Tensor

    def __init__(self, pieces_VW: Tensor) -> None:
        super().__init__()
        self.register_buffer("pieces", pieces_VW, persistent=False)
        self.placeholders = nn.Parameter(torch.zeros(NUM_PLACEHOLDERS, pieces_VW.shape[1]))

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of ids, ``[..., W]``."""
        num_pieces = len(self.pieces)
        known = functional.embedding(ids.clamp_max(num_pieces - 1), self.pieces)
        special = functional.embedding((ids - num_pieces).clamp_min(0), self.placeholders)
        return torch.where((ids >= num_pieces).unsqueeze(-1), special, known)


@dataclass(frozen=True, slots=True)
class PatternStates:
    """The encoder's output for patterns."""

    padded: Tensor  # states of all tokens, `[B, L, W]`, zero for padding
    mask: Tensor  # True at tokens, `[B, L]`
    arguments: Tensor  # states of the two arguments, `[B, 2, W]`
    mean: Tensor  # mean state, `[B, W]`


class PatternNetwork(nn.Module):
    """Rows of pieces in, K unit facets ``[content, order]`` out; ``pieces_VW``: vectors of word pieces."""

    def __init__(self, config: PatternNetworkConfig, pieces_VW: Tensor) -> None:
        super().__init__()
        self.config = config
        width = config.encoder.width
        self.encoder = SentenceEncoder(config.encoder)
        self.encoder.pieces = PatternEmbedding(pieces_VW)
        self.mix = nn.Linear(3 * width, width)
        self.decoder = FacetDecoder(
            FacetModelConfig(
                num_facets=config.num_facets,
                dim=width,
                hidden_dim=width,
                num_heads=config.num_heads,
                feedforward_dim=config.feedforward_dim,
                num_decoder_layers=config.num_decoder_layers,
            )
        )
        with torch.no_grad():
            self.decoder.output.weight.mul_(_FIRST_SCALE)
            self.decoder.output.bias.zero_()
        self.order_in = nn.Linear(3 * width, width)
        self.order_out = nn.Linear(width, config.num_facets * config.order_dim)

    @property
    def embedding(self) -> PatternEmbedding:
        """The encoder's embedding."""
        assert isinstance(self.encoder.pieces, PatternEmbedding)
        return self.encoder.pieces

    def states(self, rows: Sequence[NDArray[np.int64]]) -> PatternStates:
        """States of patterns; each row holds each argument once."""
        device = self.mix.weight.device
        batch = RaggedBatch.of(rows, device)
        states_TW = self.encoder(batch)
        first = self.config.encoder.vocabulary_size
        arguments = [states_TW[batch.ids == first + number] for number in range(2)]
        padded_BLW = batch.pad(states_TW)
        mean_BW = padded_BLW.sum(dim=1) / batch.lengths[:, None].to(padded_BLW.dtype)
        return PatternStates(padded_BLW, batch.mask, torch.stack(arguments, dim=1), mean_BW)

    def facets(self, states: PatternStates) -> Tensor:
        """Unit facets ``[B, K, D]`` float32; their cosine is a weighted mean of the cosines of content and order."""
        config, normal = self.config, functional.normalize
        joined_BX = torch.cat([states.arguments.flatten(1), states.mean], dim=1)
        moved_BKW = self.decoder(self.mix(joined_BX), states.padded, states.mask[:, None, None])
        content_BKW = normal(normal(states.mean.float(), dim=1)[:, None] + moved_BKW.float(), dim=2)
        first_BW, second_BW = states.arguments.unbind(dim=1)
        order_BX = torch.cat([normal(x, dim=1) for x in (first_BW - second_BW, first_BW, second_BW)], dim=1)
        order_BKO = self.order_out(functional.gelu(self.order_in(order_BX))).unflatten(1, (config.num_facets, -1))
        order_BKO = normal(order_BKO.float(), dim=2)
        weight = config.order_weight
        return torch.cat([content_BKW * (1 - weight) ** 0.5, order_BKO * weight**0.5], dim=2)

    def forward(self, rows: Sequence[NDArray[np.int64]]) -> Tensor:
        """Unit facets of patterns, ``[B, K, D]``."""
        return self.facets(self.states(rows))


class PatternPieces:
    """Turns patterns into ids.

    ``max_tokens``: maximum number of ids, including two special pieces; longer patterns lose their middle.
    """

    def __init__(self, pieces: WordPieces, max_tokens: int) -> None:
        self.pieces = pieces
        self.max_tokens = max_tokens
        self._special = {name: len(pieces) + number for number, name in enumerate(PLACEHOLDERS)}

    def rows(self, patterns: Sequence[Sequence[str]]) -> list[NDArray[np.int64]]:
        """Ids ``[L]`` of each tokenized pattern, L <= ``max_tokens``; both arguments are kept."""
        texts = [_runs(pattern) for pattern in patterns]
        ids = iter(self.pieces.ids([run for runs in texts for run in runs if run not in self._special]))
        return [self._row([[self._special[r]] if r in self._special else next(ids) for r in runs]) for runs in texts]

    def _row(self, parts: Sequence[Sequence[int] | NDArray[np.int32]]) -> NDArray[np.int64]:
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        room = self.max_tokens - 2
        if len(ids) > room:
            ids = self._shortened(ids, room)
        return np.concatenate([[self.pieces.first_id], ids, [self.pieces.last_id]])

    def _shortened(self, ids: NDArray[np.int64], room: int) -> NDArray[np.int64]:
        """Removes the middle, but keeps the arguments."""
        indexes = np.arange(len(ids))
        kept = (indexes < room // 2) | (indexes >= len(ids) - (room - room // 2))
        arguments = (ids == self._special[ARG1]) | (ids == self._special[ARG2])
        lost = int((arguments & ~kept).sum())
        # Each argument in the middle replaces a kept piece before the cut.
        border = np.flatnonzero(kept & ~arguments & (indexes < room // 2))
        kept[border[len(border) - lost :]] = False
        return ids[kept | arguments]


def _runs(pattern: Sequence[str]) -> list[str]:
    """Placeholders and the words between them, in order."""
    runs: list[str] = []
    words: list[str] = []
    for token in pattern:
        if token in PLACEHOLDERS:
            if words:
                runs.append(" ".join(words))
            runs.append(token)
            words = []
        else:
            words.append(token)
    return [*runs, " ".join(words)] if words else runs
