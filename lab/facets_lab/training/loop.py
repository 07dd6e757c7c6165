"""The training loop of every model: steps, validation, checkpoints and the curve of the losses."""

import json
import logging
import pickle
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, Positive, Settings
from facets.devices import compute_device
from facets.errors import CheckpointError, ConfigError
from facets.model.precision import fastest_precision
from facets.storage.files import write_atomically

logger = logging.getLogger(__name__)

CHECKPOINT, CURVE = "checkpoint.pt", "curve.jsonl"
LOSS = "loss"  # the loss that is minimized; other named losses are its parts, for the curve
_HARDWARE_SETTINGS = ("device", "num_threads")  # may change when a run is resumed

BatchSize = Annotated[int, Field(ge=2)]  # negatives come from the same batch


class OptimizerConfig(Settings):
    """AdamW with linear warm-up and linear decay to zero."""

    learning_rate: Positive = 1e-3
    warmup_steps: NonNegativeInt = 500
    weight_decay: NonNegative = 0.01
    max_gradient_norm: Positive = 1.0


class TrainingConfig(Settings):
    """Settings of the loop; each kind of training adds its data and its loss."""

    name: str  # of the model
    num_steps: NonNegativeInt
    batch_size: BatchSize
    validate_every: AtLeastOne = 500  # steps
    checkpoint_every: AtLeastOne = 500  # steps
    seed: int = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where it is fastest
    device: str = "auto"  # cpu, cuda, cuda:1 ..., or auto: cuda where available
    num_threads: NonNegativeInt = 0  # 0: torch's default
    optimizer: OptimizerConfig = OptimizerConfig()


ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
BatchT = TypeVar("BatchT")


RunOut = Annotated[Path, typer.Option(help="Folder of the run: checkpoint, curve and model.")]
ConfigFile = Annotated[Path, typer.Option(help="TOML file with the settings; see lab/configs/.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")]
WordsOf = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Model whose word vectors are shared instead of stored again.")
]


class Trainer(ABC, Generic[ConfigT, BatchT]):
    """A network, its data and its loss; randomness is from seed and step, or torch's generator: runs can be resumed."""

    network: nn.Module

    def __init__(self, config: ConfigT) -> None:
        self.config = config
        self.device = torch.device(compute_device(config.device))
        is_fastest = fastest_precision(self.device) == torch.bfloat16
        self._use_bfloat16 = config.precision == "bfloat16" or (config.precision == "auto" and is_fastest)
        if config.num_threads:
            torch.set_num_threads(config.num_threads)

    @abstractmethod
    def batches(self, start_step: int) -> Iterator[BatchT]:
        """Endless batches starting at a step, identical in every run with this seed."""

    @abstractmethod
    def step(self, batch: BatchT, number: int) -> dict[str, Tensor]:
        """``LOSS`` of a batch, ready for ``backward``, and its parts, after ``number`` completed steps."""

    def after_step(self, learning_rate_factor: float) -> None:
        """Updates parts that the optimizer does not, with the given factor of the learning rate."""

    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out data, without gradients; empty when nothing is held out."""
        return {}

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameter groups for AdamW."""
        return [{"params": [weights for weights in self.network.parameters() if weights.requires_grad]}]

    def state(self) -> dict[str, Any]:
        """What training has changed, for a checkpoint."""
        return {"network": self.network.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores ``state``."""
        self.network.load_state_dict(state["network"])

    def autocast(self) -> torch.autocast:
        """Half precision for the forward pass, where settings and hardware allow it."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._use_bfloat16)

    def tensor(self, array: NDArray[np.generic]) -> Tensor:
        """An array on the device."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)


TrainerT = TypeVar("TrainerT", bound=Trainer)  # type: ignore[type-arg]  # any settings and batches


class TrainingResult(NamedTuple):
    """Progress of a run, including the parts before it was resumed."""

    step: int  # steps done
    seconds: float  # seconds of training
    validation_loss: float | None  # the last one; None when nothing is held out


class TrainingLoop(Generic[ConfigT, BatchT]):
    """Trains with AdamW, linear warm-up and linear decay.

    Writes ``checkpoint.pt`` and, every ``validate_every`` steps, a line of ``curve.jsonl``: ``training_...`` are means
    since the previous line, ``validation_...`` means over the held-out data.
    """

    def __init__(self, trainer: Trainer[ConfigT, BatchT], out_dir: Path) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._out_dir = out_dir
        optimizer = trainer.config.optimizer
        self._optimizer = AdamW(
            trainer.parameter_groups(), lr=optimizer.learning_rate, weight_decay=optimizer.weight_decay, fused=True
        )
        self._schedule = LambdaLR(self._optimizer, self._rate_factor)
        self._step, self._seconds = 0, 0.0
        self._validation_loss: float | None = None

    def resume(self) -> None:
        """Loads the last checkpoint; on the same machine, the run then ends exactly as if it had never stopped."""
        path, device = self._out_dir / CHECKPOINT, self._trainer.device
        state = _load_checkpoint(path, self._config.to_dict(), device=device)
        try:
            self._trainer.load_state(state["trainer"])
            self._optimizer.load_state_dict(state["optimizer"])
            self._schedule.load_state_dict(state["schedule"])
            self._step, self._seconds = state["step"], state["seconds"]
            self._validation_loss = state["validation_loss"]
            torch.set_rng_state(state["generators"]["torch"].cpu())
            if device.type == "cuda" and state["generators"]["cuda"] is not None:
                torch.cuda.set_rng_state(state["generators"]["cuda"].cpu(), device)
        except (RuntimeError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path} was made with other data or by another version: {error}") from error

    def run(self) -> TrainingResult:
        """Runs to the last step, or to an interrupt (SIGINT, SIGTERM), which saves a checkpoint first."""
        config = self._config
        self._out_dir.mkdir(parents=True, exist_ok=True)
        losses: list[dict[str, float]] = []
        with (
            _collect_interrupts() as interrupts,
            tqdm(total=config.num_steps, initial=self._step, disable=None, unit="step") as bar,
        ):
            for batch in self._trainer.batches(self._step):
                if self._step >= config.num_steps or interrupts:
                    break
                started = time.monotonic()
                losses.append(self.train_step(batch))
                self._seconds += time.monotonic() - started
                self._step += 1
                bar.update()
                is_last = self._step == config.num_steps
                if self._step % config.validate_every == 0 or is_last:
                    self._log_curve(losses, self.validate())
                    losses.clear()
                if self._step % config.checkpoint_every == 0 or is_last:
                    self._save_checkpoint()
        if self._step < config.num_steps:
            self._save_checkpoint()
        return TrainingResult(self._step, self._seconds, self._validation_loss)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The trainer's mean losses of the held-out data."""
        self._trainer.network.eval()
        losses = self._trainer.validate()
        self._validation_loss = losses.get(LOSS)
        return losses

    def train_step(self, batch: BatchT) -> dict[str, float]:
        """One optimizer step; returns the losses."""
        network = self._trainer.network.train()
        losses = self._trainer.step(batch, self._step)
        self._optimizer.zero_grad(set_to_none=True)
        losses[LOSS].backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), self._config.optimizer.max_gradient_norm)
        self._optimizer.step()
        self._schedule.step()
        self._trainer.after_step(self._rate_factor(self._step))
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        if values[LOSS] != values[LOSS]:
            raise CheckpointError(f"the training loss became NaN at step {self._step}; the last checkpoint is kept")
        return values

    def _rate_factor(self, step: int) -> float:
        """Linear warm-up to 1, then linear decay to 0 at the last step."""
        num_steps, warmup_steps = self._config.num_steps, self._config.optimizer.warmup_steps
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return max(0.0, (num_steps - step) / max(1, num_steps - warmup_steps))

    def _log_curve(self, training: Sequence[Mapping[str, float]], validation: Mapping[str, float]) -> None:
        """Adds a line to the curve; replaces lines of this step and later ones, which a resumed run repeats."""
        presentations = self._step * self._config.batch_size
        line = {
            "step": self._step,
            "presentations": presentations,
            **{f"training_{name}": round(float(np.mean([loss[name] for loss in training])), 5) for name in training[0]},
            **{f"validation_{name}": round(loss, 5) for name, loss in validation.items()},
            "learning_rate": self._schedule.get_last_lr()[0],
            "seconds": round(self._seconds, 1),
            "presentations_per_second": round(presentations / max(self._seconds, 1e-9), 1),
        }
        path = self._out_dir / CURVE
        earlier = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [text for text in earlier if json.loads(text)["step"] < self._step]
        with write_atomically(path, durable=False) as part:
            part.write_text("".join(text + "\n" for text in [*kept, json.dumps(line)]), encoding="utf-8")
        logger.info("%s", ", ".join(f"{name} {value}" for name, value in line.items()))

    def _save_checkpoint(self) -> None:
        device = self._trainer.device
        cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        state = {
            "config": self._config.to_dict(),
            "trainer": self._trainer.state(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "generators": {"torch": torch.get_rng_state(), "cuda": cuda},
            "step": self._step,
            "seconds": self._seconds,
            "validation_loss": self._validation_loss,
        }
        with write_atomically(self._out_dir / CHECKPOINT, durable=True) as part, part.open("wb") as file:
            torch.save(state, file)


def _load_checkpoint(path: Path, settings: Mapping[str, Any], *, device: torch.device) -> dict[str, Any]:
    """A checkpoint of a run; the given settings must equal those of the run, except those of the hardware."""
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"nothing to resume: {path} does not exist") from error
    except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    changed = [k for k, v in settings.items() if state["config"].get(k) != v and k not in _HARDWARE_SETTINGS]
    if changed:
        raise CheckpointError(f"{path} was made with other settings: {', '.join(changed)} changed")
    return state


@contextmanager
def _collect_interrupts() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM instead of stopping in the middle of a step."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def train(
    make_trainer: Callable[[], TrainerT], out_dir: Path, *, resume: bool = False
) -> tuple[TrainerT, TrainingResult]:
    """Trains to the last step; ``make_trainer``, which reads the data, is called after the checks."""
    if not resume and (out_dir / CHECKPOINT).exists():
        raise ConfigError(f"{out_dir} already holds a run: use --resume, or another --out")
    trainer = make_trainer()
    loop = TrainingLoop(trainer, out_dir)
    if resume:
        loop.resume()
    result = loop.run()
    if result.step < trainer.config.num_steps:
        raise ConfigError(f"interrupted at step {result.step} of {trainer.config.num_steps}; continue with --resume")
    return trainer, result
