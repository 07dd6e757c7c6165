"""A transformer that predicts the next word or item with any output layer, and its training.

Shape suffixes: N sequences, B sequences of a batch, L positions, V words, H hidden dimensions.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from facets.config import AtLeastOne
from facets.errors import ConfigError
from facets_lab.heads.layers import PADDING, Head, head_config
from facets_lab.training.loop import LOSS, Trainer, TrainingConfig

_MEASURED_AT_ONCE = 32  # sequences; the scores of all words at all positions are in memory
Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class NetworkTrainingConfig(TrainingConfig):
    """A network, its output layer and its run."""

    head: str = "softmax"  # an entry of HEADS
    dim: AtLeastOne = 64
    num_layers: AtLeastOne = 2
    num_attention_heads: AtLeastOne = 2
    dropout: Share = 0.2
    max_length: AtLeastOne = 50  # positions


class SequenceNetwork(nn.Module):
    """Predicts the next of ``num_words`` words or items (with padding) at every position: SASRec or a small GPT."""

    def __init__(self, config: NetworkTrainingConfig, num_words: int) -> None:
        super().__init__()
        if config.dim % config.num_attention_heads:
            raise ConfigError(f"dim must be a multiple of num_attention_heads, got {config.dim}")
        self.words = nn.Embedding(num_words, config.dim, padding_idx=PADDING)
        nn.init.normal_(self.words.weight, std=config.dim**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.places = nn.Embedding(config.max_length + 2, config.dim)  # two more for the second stage
        nn.init.normal_(self.places.weight, std=config.dim**-0.5)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.dim,
                config.num_attention_heads,
                4 * config.dim,
                config.dropout,
                "gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(config.dim)
        self.head = Head(self.words.weight, head_config(config.head), num_layers=config.num_layers)

    def states(self, inputs_BL: Tensor) -> list[Tensor]:
        """``[B, L, H]`` of each layer, the last one last."""
        length = inputs_BL.shape[1]
        causal_LL = nn.Transformer.generate_square_subsequent_mask(length, device=inputs_BL.device)
        state_BLH = self.dropout(self.words(inputs_BL) + self.places.weight[:length])
        states = []
        for layer in self.layers:
            state_BLH = layer(state_BLH, src_mask=causal_LL, is_causal=True)
            states.append(self.norm(state_BLH))
        return states

    def forward(self, inputs_BL: Tensor, last: int = 0) -> Tensor:
        """Log-probabilities of the next word at the ``last`` positions (0: all), ``[B, L, V]``."""
        again = partial(self.read_again, inputs_BL)
        log_probabilities_BLV: Tensor = self.head(self.states(inputs_BL), inputs_BL, again, last=last)
        return log_probabilities_BLV

    def read_again(self, inputs_BL: Tensor, facet_BLH: Tensor, candidates_BLR: Tensor) -> Tensor:
        """States ``[B, L, R, H]`` of candidates appended, after a facet, to the words up to each position.

        The words appended at one position see each other.

        References:
            Chang 2022, section 2.4.1.3 and figure 2.6.
        """
        state_BLH, words_BLRH = self.words(inputs_BL), self.words(candidates_BLR)
        batch, length, num_candidates, dim = words_BLRH.shape
        places = self.places.weight
        facet_BL1H = (facet_BLH + places[1 : length + 1]).unsqueeze(2)
        groups_BLGH = torch.cat((facet_BL1H, words_BLRH + places[2 : length + 2].unsqueeze(1)), dim=2)
        whole = self.dropout(torch.cat((state_BLH + places[:length], groups_BLGH.flatten(1, 2)), dim=1))
        of_read = torch.arange(length, device=whole.device)
        of_groups = of_read.repeat_interleave(num_candidates + 1)
        position = torch.cat((of_read, of_groups))  # sees the words up to there and its own group
        is_group = torch.cat((torch.zeros_like(of_read), torch.ones_like(of_groups))).bool()
        seen = (~is_group & (position <= position[:, None])) | (
            is_group[:, None] & is_group & (position == position[:, None])
        )
        for layer in self.layers:
            whole = layer(whole, src_mask=~seen)
        return self.norm(whole[:, length:]).view(batch, length, num_candidates + 1, dim)[:, :, 1:]


class SequenceTrainer(Trainer[NetworkTrainingConfig, NDArray[np.int64]]):
    """Minimizes the mean negative log-probability of the next word.

    Args:
        config: The settings.
        sequences: ``[N, L + 1]`` int64; 0 is padding, ``-n`` is word n, read but not predicted.
        held_out: The same for validation.
        num_words: V with padding.
    """

    def __init__(
        self,
        config: NetworkTrainingConfig,
        sequences: NDArray[np.int64],
        held_out: NDArray[np.int64],
        *,
        num_words: int,
    ) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        self.network: SequenceNetwork = SequenceNetwork(config, num_words).to(self.device)
        self._sequences, self._held_out = sequences, held_out

    def batches(self, start_step: int) -> Iterator[NDArray[np.int64]]:
        """Sequences of similar length, shuffled in each epoch; an incomplete batch is left out."""
        lengths = (self._sequences != PADDING).sum(axis=1)
        size = min(self.config.batch_size, len(self._sequences))
        a_round = len(self._sequences) // size
        step = start_step
        while True:
            number, within = divmod(step, a_round)
            random = np.random.default_rng((self.config.seed, number))
            order = random.permutation(len(self._sequences))[: a_round * size]
            order = order[np.argsort(lengths[order], kind="stable")].reshape(a_round, size)
            for rows in random.permutation(order)[within:]:
                yield self._sequences[rows]
                step += 1

    def step(self, batch: NDArray[np.int64], number: int) -> dict[str, Tensor]:
        """The mean negative log-probability of a batch."""
        total, count = self._total(batch)
        return {LOSS: total / count}

    def validate(self) -> dict[str, float]:
        """The same for the held-out sequences."""
        return {LOSS: self.mean_loss(self._held_out)}

    def mean_loss(self, sequences: NDArray[np.int64]) -> float:
        """Mean negative log-probability of the words of ``[N, L + 1]`` sequences."""
        sums = [self._total(batch) for batch in np.array_split(sequences, max(1, len(sequences) // _MEASURED_AT_ONCE))]
        return sum(float(total) for total, _ in sums) / max(sum(count for _, count in sums), 1)

    def _total(self, sequences: NDArray[np.int64]) -> tuple[Tensor, int]:
        """Negative log-probability of all predicted words, and their number."""
        tensor_BL = self.tensor(sequences)
        inputs_BL, targets_BL = tensor_BL[:, :-1].abs(), tensor_BL[:, 1:].clamp_min(PADDING)
        asked = (targets_BL != PADDING).any(dim=0).nonzero()
        first, used = int(asked.min()), int(asked.max()) + 1  # the positions with targets
        with self.autocast():
            log_probabilities_BLV = self.network(inputs_BL[:, :used], used - first)
        targets = targets_BL[:, first:used].reshape(-1)
        flat = log_probabilities_BLV.flatten(0, 1).float()
        total = functional.nll_loss(flat, targets, ignore_index=PADDING, reduction="sum")
        return total, int((targets != PADDING).sum())
