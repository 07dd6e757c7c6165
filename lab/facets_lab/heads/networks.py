"""Networks that read a sequence and predict what comes next, with any output layer; their training.

Shape suffixes: N sequences, B sequences of a batch, L positions, V words, H hidden dimensions.
"""

from collections.abc import Iterator
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
        self.words = nn.Embedding(num_words, config.dim, padding_idx=PADDING)
        nn.init.normal_(self.words.weight, std=config.dim**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.is_transformer = config.encoder == "transformer"
        if self.is_transformer:
            self.places = nn.Embedding(config.max_length, config.dim)
            nn.init.normal_(self.places.weight, std=config.dim**-0.5)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.dim)
        self.head = Head(self.words.weight, head_config(config.head), num_layers=config.num_layers)

    def states(self, inputs_BL: Tensor) -> list[Tensor]:
        """``[B, L, H]`` of each layer, the last one last."""
        state_BLH = self.words(inputs_BL)
        causal_LL = None
        if self.is_transformer:
            length = inputs_BL.shape[1]
            state_BLH = state_BLH + self.places.weight[:length]
            causal_LL = nn.Transformer.generate_square_subsequent_mask(length, device=inputs_BL.device)
        state_BLH = self.dropout(state_BLH)
        states = []
        for layer in self.layers:
            if causal_LL is None:
                state_BLH = state_BLH + self.dropout(layer(state_BLH)[0])
            else:
                state_BLH = layer(state_BLH, src_mask=causal_LL, is_causal=True)
            states.append(self.norm(state_BLH))
        return states

    def forward(self, inputs_BL: Tensor) -> Tensor:
        """Log-probabilities of what follows each position, ``[B, L, V]``."""
        log_probabilities_BLV: Tensor = self.head(self.states(inputs_BL), inputs_BL)
        return log_probabilities_BLV


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
        sequences: ``[N, L + 1]`` int64 to learn from, 0 after the end.
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
        """Sequences in an order of their own each round; what does not fill a batch waits for another round."""
        size = min(self.config.batch_size, len(self._sequences))
        a_round = len(self._sequences) // size
        step = start_step
        while True:
            number, within = divmod(step, a_round)
            order = np.random.default_rng((self.config.seed, number)).permutation(len(self._sequences))
            for start in range(within * size, a_round * size, size):
                yield self._sequences[order[start : start + size]]
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
        inputs_BL, targets_BL = tensor_BL[:, :-1], tensor_BL[:, 1:]
        used = max(int((targets_BL != PADDING).any(dim=0).sum()), 1)  # positions beyond the longest cost time alone
        with self.autocast():
            log_probabilities_BLV = self.network(inputs_BL[:, :used])
        targets = targets_BL[:, :used].reshape(-1)
        flat = log_probabilities_BLV.flatten(0, 1).float()
        total = functional.nll_loss(flat, targets, ignore_index=PADDING, reduction="sum")
        return total, int((targets != PADDING).sum())
