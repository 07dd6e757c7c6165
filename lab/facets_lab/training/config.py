"""What every training run is set by."""

from typing import Annotated, Literal

from pydantic import Field

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, Positive, Settings

__all__ = ["BatchSize", "OptimizerConfig", "TrainingConfig"]

BatchSize = Annotated[int, Field(ge=2)]  # negatives come from the same batch


class OptimizerConfig(Settings):
    """AdamW with linear warm-up and linear decay to zero."""

    learning_rate: Positive = 1e-3
    warmup_steps: NonNegativeInt = 500
    weight_decay: NonNegative = 0.01
    max_gradient_norm: Positive = 1.0


class TrainingConfig(Settings):
    """What the loop reads; each kind of training adds its data and its loss."""

    name: str  # of the model
    num_steps: NonNegativeInt
    batch_size: BatchSize
    validate_every: AtLeastOne = 500  # steps; a line of the curve each
    checkpoint_every: AtLeastOne = 500  # steps
    seed: int = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where the hardware multiplies it
    device: str = "auto"  # cpu, cuda, cuda:1 ..., or auto: cuda where there is one
    num_threads: NonNegativeInt = 0  # 0: torch's default
    optimizer: OptimizerConfig = OptimizerConfig()
