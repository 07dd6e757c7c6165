"""The network of patterns: an encoder that knows English, K facets over its states, and the order of the arguments.

A facet has two parts. Its content is the pattern's sentence vector moved by the facet decoder, so that an untrained
network already compares patterns as the encoder compares sentences. Its order tells which argument is which; sentence
vectors hardly do.

Shape suffixes: B patterns, T tokens of all of them, L tokens of the longest, W width of the encoder, K facets, O
dimensions of the order, D = W + O.
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

_FIRST_SCALE = 0.02  # of the decoder's output, so that facets start at the sentence vector
# Their ids follow those of the word pieces: V, V + 1, V + 2.
PLACEHOLDERS = (ARG1, ARG2, ENTITY)
NUM_PLACEHOLDERS = len(PLACEHOLDERS)


class PatternEmbedding(nn.Module):
    """The encoder's word pieces, which stay as they are, and learned vectors of the placeholders behind them.

    The pieces are those of another model's encoder; they are stored once, there.
    """

    pieces: Tensor

    def __init__(self, pieces_VW: Tensor) -> None:
        super().__init__()
        self.register_buffer("pieces", pieces_VW, persistent=False)
        self.placeholders = nn.Parameter(torch.zeros(NUM_PLACEHOLDERS, pieces_VW.shape[1]))

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of ids, the last axis added."""
        num_pieces = len(self.pieces)
        known = functional.embedding(ids.clamp_max(num_pieces - 1), self.pieces)
        special = functional.embedding((ids - num_pieces).clamp_min(0), self.placeholders)
        return torch.where((ids >= num_pieces).unsqueeze(-1), special, known)


@dataclass(frozen=True, slots=True)
class PatternStates:
    """What the encoder gives for patterns."""

    padded: Tensor  # states of all tokens, `[B, L, W]`, zero behind the end
    mask: Tensor  # true where there is a token, `[B, L]`
    arguments: Tensor  # states of the two arguments, `[B, 2, W]`
    mean: Tensor  # mean state, `[B, W]`


class PatternNetwork(nn.Module):
    """Rows of pieces in, K unit facets ``[content, order]`` out.

    ``pieces_VW``: vectors of the word pieces, ``[V, W]``.
    """

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
        """What the encoder reads."""
        assert isinstance(self.encoder.pieces, PatternEmbedding)
        return self.encoder.pieces

    def states(self, rows: Sequence[NDArray[np.int64]]) -> PatternStates:
        """States of patterns; each row holds both arguments once."""
        device = self.mix.weight.device
        batch = RaggedBatch.of(rows, device)
        states_TW = self.encoder(batch)
        first = self.config.encoder.vocabulary_size
        # One of each a pattern, in the order of the patterns.
        arguments = [states_TW[batch.ids == first + place] for place in range(2)]
        padded_BLW = batch.pad(states_TW)
        mean_BW = padded_BLW.sum(dim=1) / batch.lengths[:, None].to(padded_BLW.dtype)
        return PatternStates(padded_BLW, batch.mask, torch.stack(arguments, dim=1), mean_BW)

    def facets(self, states: PatternStates) -> Tensor:
        """Facets ``[B, K, D]`` float32, unit length: the cosine of two is that of their contents and orders, mixed."""
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
        """Facets of patterns, ``[B, K, D]``, unit length."""
        return self.facets(self.states(rows))


class PatternPieces:
    """Ids of patterns.

    ``max_tokens``: ids of a pattern at most, the two special pieces included; a longer one loses its middle.
    """

    def __init__(self, pieces: WordPieces, max_tokens: int) -> None:
        self.pieces = pieces
        self.max_tokens = max_tokens
        self._special = {name: len(pieces) + place for place, name in enumerate(PLACEHOLDERS)}

    def rows(self, patterns: Sequence[Sequence[str]]) -> list[NDArray[np.int64]]:
        """Ids ``[L]`` of each tokenized pattern, L <= ``max_tokens``; each holds both arguments."""
        texts = [_runs(pattern) for pattern in patterns]
        found = iter(self.pieces.ids([run for runs in texts for run in runs if run not in self._special]))
        return [self._row([[self._special[r]] if r in self._special else next(found) for r in runs]) for runs in texts]

    def _row(self, parts: Sequence[Sequence[int] | NDArray[np.int32]]) -> NDArray[np.int64]:
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        room = self.max_tokens - 2
        if len(ids) > room:
            ids = self._shortened(ids, room)
        return np.concatenate([[self.pieces.first_id], ids, [self.pieces.last_id]])

    def _shortened(self, ids: NDArray[np.int64], room: int) -> NDArray[np.int64]:
        """Without the middle; the arguments stay wherever they stand."""
        places = np.arange(len(ids))
        kept = (places < room // 2) | (places >= len(ids) - (room - room // 2))
        arguments = (ids == self._special[ARG1]) | (ids == self._special[ARG2])
        lost = int((arguments & ~kept).sum())
        # Each argument that was cut out takes the place of a kept piece next to the cut.
        border = np.flatnonzero(kept & ~arguments & (places < room // 2))
        kept[border[len(border) - lost :]] = False
        return ids[kept | arguments]


def _runs(pattern: Sequence[str]) -> list[str]:
    """Placeholders and the texts between them, in order."""
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
