"""The pair reader: says how probably two texts mean the same, one entails the other, or they contradict each other.

It is a small cross-encoder. It reads English; see ``models/facets-pairs-en/README.md``.
Shape suffixes: T tokens of all rows, B rows, P pairs, W width, C relations between two texts.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from facets.arrays import Floats, Ints32
from facets.config import SentenceEncoderConfig
from facets.language.interruption import check_interrupted
from facets.model.passage_checkpoint import EncoderConfig, TextReader
from facets.model.passage_encoding import length_batches
from facets.model.passage_network import CrossEncoder, RaggedBatch
from facets.model.shipped import DEFAULT_PAIR_READER
from facets.model.word_pieces import WordPieces

# What the first text of a pair is to the second; "entailed": only the second entails the first.
RELATIONS = ("equivalent", "entails", "entailed", "neutral", "contradicts")
_REVERSED = [0, 2, 1, 3, 4]
_MOST_PIECES = 120  # of a text; the rest is not read
_BATCH_TOKENS = 192  # of pairs that are read at once, in one order


class PairReaderConfig(EncoderConfig):
    """``config.json`` of a pair reader."""

    task: Literal["pairs"] = "pairs"


class PairNetwork(CrossEncoder):
    """A few layers of a sentence encoder over ``[CLS] first [SEP] second [SEP]``, and log-odds of the relations."""

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__(config)
        self.relation = nn.Linear(4 * config.width, len(RELATIONS))

    def forward(self, first: Sequence[Ints32], second: Sequence[Ints32], pieces: WordPieces) -> Tensor:
        """Log-odds ``[B, C]`` float32, given the piece ids of the two texts of each row."""
        first, second = ([ids[:_MOST_PIECES] for ids in side] for side in (first, second))
        start, end = np.array([pieces.first_id]), np.array([pieces.last_id])
        device = self.relation.weight.device
        batch = RaggedBatch.of(
            [np.concatenate([start, one, end, other, end]) for one, other in zip(first, second, strict=True)], device
        )
        num_first_B = torch.tensor([len(ids) + 2 for ids in first], device=device)
        side_T = (batch.positions >= num_first_B[batch.text_numbers]).long()
        states_TW = self.encoder(batch, self.segments(side_T)).float()
        sums_XW = states_TW.new_zeros(2 * len(first), states_TW.shape[1])
        means_XW = sums_XW.index_add(0, 2 * batch.text_numbers + side_T, states_TW)
        counts_X = torch.stack([num_first_B, batch.lengths - num_first_B], dim=1).flatten()
        first_BW, second_BW = (means_XW / counts_X[:, None]).unflatten(0, (-1, 2)).unbind(1)
        starts_BW = states_TW[batch.positions == 0]
        return self.relation(torch.cat([starts_BW, first_BW, second_BW, (first_BW - second_BW).abs()], dim=1)).float()


class PairReader(TextReader[PairNetwork, PairReaderConfig]):
    """Reads pairs of texts; thread-safe.

    Example:
        >>> probabilities = PairReader.shared().read([("The shop is open.", "The shop is closed.")])[0]
        >>> RELATIONS[int(probabilities.argmax())]
        'contradicts'
    """

    network_class, config_class, shipped = PairNetwork, PairReaderConfig, DEFAULT_PAIR_READER

    @torch.inference_mode()
    def read(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Probability of each relation, ``[P, C]``; the mean of both orders of the texts."""
        ids = self.pieces.ids([text for pair in pairs for text in pair])
        read_PC = np.empty((len(pairs), len(RELATIONS)), dtype=np.float32)
        lengths = [len(one) + len(other) for one, other in zip(ids[::2], ids[1::2], strict=True)]
        for batch in length_batches(lengths, max_tokens=_BATCH_TOKENS):
            check_interrupted()
            first, second = ([ids[2 * number + side] for number in batch.tolist()] for side in (0, 1))
            log_odds_BC, reversed_BC = self.network([*first, *second], [*second, *first], self.pieces).chunk(2)
            read_PC[batch] = torch.softmax(both_orders(log_odds_BC, reversed_BC), dim=1).cpu().numpy()
        return read_PC


def both_orders(log_odds_BC: Tensor, reversed_BC: Tensor) -> Tensor:
    """The mean of the log-odds of pairs and of the same pairs with their texts swapped, ``[B, C]``."""
    return (log_odds_BC + reversed_BC[:, _REVERSED]) / 2
