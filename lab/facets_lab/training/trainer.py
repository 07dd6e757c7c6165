"""What a kind of training adds to the loop: its data and its loss."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from facets.devices import compute_device
from facets_lab.training.config import TrainingConfig
from facets_lab.training.runs import use_bfloat16

__all__ = ["LOSS", "BatchT", "ConfigT", "Trainer"]

LOSS = "loss"  # the name of the loss that is followed; others by name are parts of it, for the curve

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
BatchT = TypeVar("BatchT")


class Trainer(ABC, Generic[ConfigT, BatchT]):
    """A network with its data and its loss; ``TrainingLoop`` runs it.

    Everything random comes from the seed and the step, or from torch's generator, so that a run can be resumed.

    Attributes:
        config: The settings.
        device: Where it computes.
        network: What is trained; the loop switches it between training and evaluation.

    Raises:
        ConfigError: No such device.
    """

    network: nn.Module

    def __init__(self, config: ConfigT) -> None:
        self.config = config
        self.device = torch.device(compute_device(config.device))
        self._use_bfloat16 = use_bfloat16(config.precision, self.device)
        if config.num_threads:
            torch.set_num_threads(config.num_threads)

    @abstractmethod
    def batches(self, start_step: int) -> Iterator[BatchT]:
        """Endless batches from a step on, the same ones in every run with this seed."""

    @abstractmethod
    def step(self, batch: BatchT, number: int) -> dict[str, Tensor]:
        """The losses of a batch, by name, ready for ``backward``.

        Args:
            batch: One of ``batches``.
            number: Steps done before this one.

        Returns:
            ``LOSS``, which is followed, and its parts.
        """

    def after_step(self, learning_rate_factor: float) -> None:
        """Moves what the optimizer does not, by a learning rate with this factor of the schedule."""

    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out data, by name, without gradients; nothing when nothing is held out."""
        return {}

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What AdamW moves, with settings of its own where they differ."""
        return [{"params": [weights for weights in self.network.parameters() if weights.requires_grad]}]

    def state(self) -> dict[str, Any]:
        """What training has changed, for a checkpoint; the loop keeps the optimizer and the generators."""
        return {"network": self.network.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` gave."""
        self.network.load_state_dict(state["network"])

    def autocast(self) -> torch.autocast:
        """Half precision for the forward pass, where the settings and the hardware allow it."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._use_bfloat16)

    def tensor(self, array: NDArray[np.generic]) -> Tensor:
        """An array on the device."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)
