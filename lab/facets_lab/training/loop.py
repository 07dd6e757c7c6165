"""The training loop: steps, validation, checkpoints, curve; the same for every kind of training."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets_lab.training.runs import (
    generator_states,
    interrupts,
    learning_rate_factor,
    load_checkpoint,
    log_curve,
    restore_generators,
    save_checkpoint,
)
from facets_lab.training.trainer import LOSS, BatchT, ConfigT, Trainer

__all__ = ["CHECKPOINT", "CURVE", "TrainingLoop", "TrainingResult", "train"]

logger = logging.getLogger(__name__)

CHECKPOINT, CURVE = "checkpoint.pt", "curve.jsonl"
# Settings that say where a run computes, not what: they may change between its parts.
_HARDWARE = ("device", "num_threads")
_TrainerT = TypeVar("_TrainerT", bound=Trainer)  # type: ignore[type-arg]  # of any settings and batches


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """How far a run has come.

    Attributes:
        finished: False when it was interrupted; it goes on from its checkpoint.
        step: Steps done, of all its parts together.
        seconds: Of training, of all its parts together.
        validation_loss: The last one; None before the first, or when nothing is held out.
    """

    finished: bool
    step: int
    seconds: float
    validation_loss: float | None


class TrainingLoop(Generic[ConfigT, BatchT]):
    """Trains in a folder of its own, with AdamW, linear warm-up and linear decay.

    The folder holds ``checkpoint.pt`` (trainer, optimizer, step, random generators) and ``curve.jsonl``, a line each
    ``validate_every`` steps: ``training_...`` are means since the line before, ``validation_...`` those of the
    held-out data.
    """

    def __init__(self, trainer: Trainer[ConfigT, BatchT], out_dir: Path) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._out_dir = out_dir
        optimizer = trainer.config.optimizer
        self._optimizer = AdamW(
            trainer.parameter_groups(), lr=optimizer.learning_rate, weight_decay=optimizer.weight_decay, fused=True
        )
        self._schedule = LambdaLR(self._optimizer, self._learning_rate_factor)
        self._step, self._seconds = 0, 0.0
        self._validation_loss: float | None = None

    @property
    def result(self) -> TrainingResult:
        """How far it has come."""
        finished = self._step >= self._config.num_steps
        return TrainingResult(finished, self._step, self._seconds, self._validation_loss)

    def resume(self) -> None:
        """Goes back to the last checkpoint; the run then ends exactly as if it had never stopped.

        On other hardware, or with another number of threads, it ends the same up to rounding.

        Raises:
            CheckpointError: There is none, it is damaged, or it belongs to other settings or data.
        """
        path, device = self._out_dir / CHECKPOINT, self._trainer.device
        state = load_checkpoint(path, self._config.to_dict(), device=device, may_change=_HARDWARE)
        try:
            self._trainer.load_state(state["trainer"])
            self._optimizer.load_state_dict(state["optimizer"])
            self._schedule.load_state_dict(state["schedule"])
            self._step, self._seconds = state["step"], state["seconds"]
            self._validation_loss = state["validation_loss"]
            restore_generators(state["generators"], device)
        except (RuntimeError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path} was made with other data or by another version: {error}") from error

    def run(self, *, progress: bool = True) -> TrainingResult:
        """Runs to the last step, or to an interrupt (SIGINT, SIGTERM), which saves a checkpoint first.

        Raises:
            CheckpointError: The loss became NaN.
        """
        config = self._config
        self._out_dir.mkdir(parents=True, exist_ok=True)
        losses: list[dict[str, float]] = []
        with (
            interrupts() as interrupted,
            tqdm(total=config.num_steps, initial=self._step, disable=not progress, unit="step") as bar,
        ):
            for batch in self._trainer.batches(self._step):
                if self._step >= config.num_steps or interrupted:
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
        if not self.result.finished:
            self._save_checkpoint()
        return self.result

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The trainer's mean losses of the held-out data, by name."""
        self._trainer.network.eval()
        losses = self._trainer.validate()
        self._validation_loss = losses.get(LOSS)
        return losses

    def train_step(self, batch: BatchT) -> dict[str, float]:
        """Follows the loss of one batch; the losses by name.

        Raises:
            CheckpointError: The loss became NaN.
        """
        network = self._trainer.network.train()
        losses = self._trainer.step(batch, self._step)
        self._optimizer.zero_grad(set_to_none=True)
        losses[LOSS].backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), self._config.optimizer.max_gradient_norm)
        self._optimizer.step()
        self._schedule.step()
        self._trainer.after_step(self._learning_rate_factor(self._step))
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        if values[LOSS] != values[LOSS]:
            raise CheckpointError(f"the training loss became NaN at step {self._step}; the last checkpoint is kept")
        return values

    def _learning_rate_factor(self, step: int) -> float:
        warmup_steps = self._config.optimizer.warmup_steps
        return learning_rate_factor(step, warmup_steps=warmup_steps, num_steps=self._config.num_steps)

    def _log_curve(self, training: Sequence[Mapping[str, float]], validation: Mapping[str, float]) -> None:
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
        log_curve(self._out_dir / CURVE, line)
        logger.info("%s", ", ".join(f"{name} {value}" for name, value in line.items()))

    def _save_checkpoint(self) -> None:
        state = {
            "config": self._config.to_dict(),
            "trainer": self._trainer.state(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "generators": generator_states(self._trainer.device),
            "step": self._step,
            "seconds": self._seconds,
            "validation_loss": self._validation_loss,
        }
        save_checkpoint(self._out_dir / CHECKPOINT, state)


def train(
    make_trainer: Callable[[], _TrainerT], out_dir: Path, *, resume: bool = False, progress: bool = True
) -> tuple[_TrainerT, TrainingResult]:
    """Trains to the last step.

    Args:
        make_trainer: Reads the data; called when nothing speaks against the run.
        out_dir: Folder of the run.
        resume: Go on from its checkpoint.
        progress: Show a bar.

    Raises:
        ConfigError: The folder holds a run already, or this one was interrupted; the message says how to go on.
        CheckpointError: ``resume`` without a checkpoint of these settings.
    """
    if not resume and (out_dir / CHECKPOINT).exists():
        raise ConfigError(f"{out_dir} holds a run already: give --resume, or another --out")
    trainer = make_trainer()
    loop = TrainingLoop(trainer, out_dir)
    if resume:
        loop.resume()
    result = loop.run(progress=progress)
    if not result.finished:
        raise ConfigError(f"interrupted at step {result.step} of {trainer.config.num_steps}; go on with --resume")
    return trainer, result
