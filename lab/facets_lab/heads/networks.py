"""A transformer that predicts the next word or item with any output layer, and its training.

Shape suffixes: N sequences, B sequences of a batch, L positions, V words, H hidden dimensions.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.config import AtLeastOne, Probability
from facets.errors import ConfigError
from facets_lab.heads.layers import PADDING, Head, head_config
from facets_lab.training.loop import LOSS, OptimizerConfig, Trainer, TrainingConfig

_MEASURED_AT_ONCE = 32  # sequences; the scores of all words at all positions are in memory
Heads = Annotated[list[str] | None, typer.Option("--head", metavar="NAME", help="Layer; repeatable.")]


class NetworkTrainingConfig(TrainingConfig):
    """A network, its output layer and its run."""

    head: str = "softmax"  # an entry of HEADS
    dim: AtLeastOne = 64
    num_layers: AtLeastOne = 2
    num_attention_heads: AtLeastOne = 2
    dropout: Probability = 0.2
    max_length: AtLeastOne = 50  # positions


def experiment_config(name: str, *, steps: int, threads: int, **values: Any) -> NetworkTrainingConfig:
    """Settings that the experiments share; ``values`` are other fields."""
    return NetworkTrainingConfig(
        name=name,
        num_steps=steps,
        validate_every=steps,
        num_threads=threads,
        optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=100),
        **{"batch_size": 64} | values,
    )


class SequenceNetwork(nn.Module):
    """Predicts the next of ``num_words`` words or items (with padding) at every position: SASRec or a small GPT."""

    def __init__(self, config: NetworkTrainingConfig, num_words: int) -> None:
        super().__init__()
        if config.dim % config.num_attention_heads:
            raise ConfigError(f"dim must be a multiple of num_attention_heads, got {config.dim}")
        self.words = nn.Embedding(num_words, config.dim, padding_idx=PADDING)
        nn.init.normal_(self.words.weight, std=config.dim**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.places = nn.Embedding(config.max_length, config.dim)
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
        log_probabilities_BLV: Tensor = self.head(self.states(inputs_BL), inputs_BL, last=last)
        return log_probabilities_BLV


class SequenceTrainer(Trainer[NetworkTrainingConfig, NDArray[np.int64]]):
    """Minimizes the mean negative log-probability of the next word.

    ``sequences`` are ``[N, L + 1]`` int64: 0 is padding, ``-n`` is word n, read but not predicted; ``held_out`` is the
    same for validation; ``num_words`` is V with padding.
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
