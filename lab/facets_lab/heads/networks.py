"""Networks that read a sequence and predict what comes next, with any output layer; their training.

Shape suffixes: N sequences, B sequences of a batch, L positions, V words, H hidden dimensions.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal

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

EncoderKind = Literal["transformer", "gru", "lstm"]
_MEASURED_AT_ONCE = 32  # sequences: all words at all positions are in memory
Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class NetworkTrainingConfig(TrainingConfig):
    """A network, its output layer and its run."""

    head: str = "softmax"  # a row of HEADS
    encoder: EncoderKind = "transformer"
    dim: AtLeastOne = 64
    num_layers: AtLeastOne = 2
    num_attention_heads: AtLeastOne = 2  # of a transformer
    dropout: Share = 0.2
    max_length: AtLeastOne = 50  # positions


class SequenceNetwork(nn.Module):
    """Reads words or items from left to right and predicts the next one at every position.

    As a transformer it is SASRec (Kang and McAuley 2018) and a small GPT; as a GRU it is GRU4Rec (Hidasi et al. 2016).

    Args:
        config: The settings.
        num_words: V, padding counted.
    """

    def __init__(self, config: NetworkTrainingConfig, num_words: int) -> None:
        super().__init__()
        if config.encoder == "transformer" and config.dim % config.num_attention_heads:
            raise ConfigError(f"dim {config.dim} is no multiple of {config.num_attention_heads} attention heads")
        if config.encoder == "lstm" and head_config(config.head).second_stage:
            raise ConfigError(f"{config.head} reads twice: expected a transformer or a gru, got an lstm")
        self.words = nn.Embedding(num_words, config.dim, padding_idx=PADDING)
        nn.init.normal_(self.words.weight, std=config.dim**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.is_transformer = config.encoder == "transformer"
        if self.is_transformer:
            self.places = nn.Embedding(config.max_length + 2, config.dim)  # two for what is read in a second stage
            nn.init.normal_(self.places.weight, std=config.dim**-0.5)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.dim)
        self.head = Head(self.words.weight, head_config(config.head), num_layers=config.num_layers)

    def states(self, inputs_BL: Tensor) -> list[Tensor]:
        """``[B, L, H]`` of each layer, the last one last."""
        return self.states_of(self.words(inputs_BL))

    def states_of(self, state_BLH: Tensor) -> list[Tensor]:
        """The same of vectors ``[B, L, H]`` in the place of words."""
        causal_LL = None
        if self.is_transformer:
            length = state_BLH.shape[1]
            state_BLH = state_BLH + self.places.weight[:length]
            causal_LL = nn.Transformer.generate_square_subsequent_mask(length, device=state_BLH.device)
        state_BLH = self.dropout(state_BLH)
        states = []
        for layer in self.layers:
            if causal_LL is None:
                state_BLH = state_BLH + self.dropout(layer(state_BLH)[0])
            else:
                state_BLH = layer(state_BLH, src_mask=causal_LL, is_causal=True)
            states.append(self.norm(state_BLH))
        return states

    def forward(self, inputs_BL: Tensor, last: int = 0) -> Tensor:
        """Log-probabilities of what follows each position, or each of the ``last`` ones, ``[B, L, V]``."""
        again = partial(self.read_again, inputs_BL)
        log_probabilities_BLV: Tensor = self.head(self.states(inputs_BL), inputs_BL, again, last=last)
        return log_probabilities_BLV

    def read_again(self, inputs_BL: Tensor, facet_BLH: Tensor, candidates_BLR: Tensor) -> Tensor:
        """States of words that are appended, behind a facet, to what was read at each position, ``[B, L, R, H]``.

        What is appended at one position sees all of it in a transformer; a GRU reads each candidate alone.

        References:
            Chang 2022, section 2.4.1.3 and figure 2.6.
        """
        state_BLH, words_BLRH = self.words(inputs_BL), self.words(candidates_BLR)
        batch, length, num_candidates, dim = words_BLRH.shape
        if not self.is_transformer:
            # What was read up to each position, then the facet, then each candidate: three inputs of every layer.
            inputs = [state_BLH, facet_BLH.reshape(-1, 1, dim), words_BLRH.view(-1, 1, dim)]
            for layer in self.layers:
                read = layer(inputs[0])[0]
                behind = layer(inputs[1], read.reshape(1, -1, dim))[0]
                again = layer(inputs[2], behind.repeat_interleave(num_candidates, 0).transpose(0, 1).contiguous())[0]
                inputs = [x + self.dropout(y) for x, y in zip(inputs, (read, behind, again), strict=True)]
            return self.norm(inputs[2]).view(batch, length, num_candidates, dim)
        places = self.places.weight
        facet_BL1H = (facet_BLH + places[1 : length + 1]).unsqueeze(2)
        groups_BLGH = torch.cat((facet_BL1H, words_BLRH + places[2 : length + 2].unsqueeze(1)), dim=2)
        whole = self.dropout(torch.cat((state_BLH + places[:length], groups_BLGH.flatten(1, 2)), dim=1))
        of_read = torch.arange(length, device=whole.device)
        of_groups = of_read.repeat_interleave(num_candidates + 1)
        position = torch.cat((of_read, of_groups))  # what was read up to there is seen, and one's own group
        is_group = torch.cat((torch.zeros_like(of_read), torch.ones_like(of_groups))).bool()
        seen = (~is_group & (position <= position[:, None])) | (
            is_group[:, None] & is_group & (position == position[:, None])
        )
        for layer in self.layers:
            whole = layer(whole, src_mask=~seen)
        return self.norm(whole[:, length:]).view(batch, length, num_candidates + 1, dim)[:, :, 1:]


def _layer(config: NetworkTrainingConfig) -> nn.Module:
    if config.encoder == "transformer":
        return nn.TransformerEncoderLayer(
            config.dim,
            config.num_attention_heads,
            4 * config.dim,
            config.dropout,
            "gelu",
            batch_first=True,
            norm_first=True,
        )
    kind = nn.GRU if config.encoder == "gru" else nn.LSTM
    return kind(config.dim, config.dim, batch_first=True)


class SequenceTrainer(Trainer[NetworkTrainingConfig, NDArray[np.int64]]):
    """Follows the mean negative log-probability of what comes next.

    Args:
        config: The settings.
        sequences: ``[N, L + 1]`` int64 to learn from, 0 where nothing is; ``-n`` is word n, read but not asked for.
        held_out: The same to validate on.
        num_words: V, padding counted.
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
        """Sequences as long as each other, by chance each round; what does not fill a batch waits for another round."""
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
        """The same of what is held out."""
        return {LOSS: self.mean_loss(self._held_out)}

    def mean_loss(self, sequences: NDArray[np.int64]) -> float:
        """Mean negative log-probability of the words of ``[N, L + 1]`` sequences."""
        sums = [self._total(batch) for batch in np.array_split(sequences, max(1, len(sequences) // _MEASURED_AT_ONCE))]
        return sum(float(total) for total, _ in sums) / max(sum(count for _, count in sums), 1)

    def _total(self, sequences: NDArray[np.int64]) -> tuple[Tensor, int]:
        """Negative log-probability of all words that follow another, and how many they are."""
        tensor_BL = self.tensor(sequences)
        inputs_BL, targets_BL = tensor_BL[:, :-1].abs(), tensor_BL[:, 1:].clamp_min(PADDING)
        asked = (targets_BL != PADDING).any(dim=0).nonzero()
        first, used = int(asked.min()), int(asked.max()) + 1  # positions before and behind cost time alone
        with self.autocast():
            log_probabilities_BLV = self.network(inputs_BL[:, :used], used - first)
        targets = targets_BL[:, first:used].reshape(-1)
        flat = log_probabilities_BLV.flatten(0, 1).float()
        total = functional.nll_loss(flat, targets, ignore_index=PADDING, reduction="sum")
        return total, int((targets != PADDING).sum())
