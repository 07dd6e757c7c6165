"""What training runs share: interrupts, device, precision, learning rate, checkpoint and curve files."""

import json
import pickle
import random
import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from facets.errors import CheckpointError
from facets.storage import write_atomically

__all__ = [
    "generator_states",
    "interrupts",
    "learning_rate_factor",
    "load_checkpoint",
    "log_curve",
    "restore_generators",
    "save_checkpoint",
    "use_bfloat16",
]


@contextmanager
def interrupts() -> Iterator[list[int]]:
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


def use_bfloat16(precision: str, device: torch.device) -> bool:
    """True for bfloat16; ``auto`` takes it where the hardware multiplies it, elsewhere it is slower."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported())


def learning_rate_factor(step: int, *, warmup_steps: int, num_steps: int) -> float:
    """Linear warm-up to 1, then linear decay to 0 at the last step."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return max(0.0, (num_steps - step) / max(1, num_steps - warmup_steps))


def generator_states(device: torch.device) -> dict[str, Any]:
    """State of every random generator a step may draw from: torch's, the device's, NumPy's and Python's own."""
    numpy_state = np.random.get_state(legacy=False)
    key = torch.from_numpy(numpy_state["state"]["key"].astype(np.int64))  # torch.load takes tensors, not arrays
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        "numpy": {**numpy_state, "state": {**numpy_state["state"], "key": key}},
        "python": random.getstate(),
    }


def restore_generators(states: Mapping[str, Any], device: torch.device) -> None:
    """Goes back to what ``generator_states`` gave; a run that moves to another kind of device starts that one anew."""
    torch.set_rng_state(states["torch"].cpu())
    if device.type == "cuda" and states["cuda"] is not None:
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
    inner = states["numpy"]["state"]
    key = inner["key"].cpu().numpy().astype(np.uint32)
    np.random.set_state({**states["numpy"], "state": {**inner, "key": key}})
    random.setstate(states["python"])


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint so that a crash leaves the old or the new one, never half of one."""
    with write_atomically(path, durable=True) as part, part.open("wb") as file:
        torch.save(dict(state), file)


def load_checkpoint(
    path: Path, settings: Mapping[str, Any], *, device: torch.device, may_change: Collection[str]
) -> dict[str, Any]:
    """A checkpoint of a run with these settings.

    Args:
        path: The file.
        settings: Settings of the run that goes on; those under ``config`` of the checkpoint must be the same.
        device: Where its tensors go.
        may_change: Settings that say where a run computes, not what.

    Raises:
        CheckpointError: There is none, it is damaged, or it belongs to other settings.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"nothing to resume: {path} does not exist") from error
    except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    changed = [k for k, v in settings.items() if state["config"].get(k) != v and k not in may_change]
    if changed:
        raise CheckpointError(f"{path} was made with other settings: {', '.join(changed)} changed")
    return state


def log_curve(path: Path, line: Mapping[str, Any]) -> None:
    """Adds a line to a curve; lines of this step and later ones, which a resumed run does again, go."""
    earlier = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [text for text in earlier if json.loads(text)["step"] < line["step"]]
    with write_atomically(path, durable=False) as part:  # else a crash would leave half a curve, and no way on
        part.write_text("".join(text + "\n" for text in [*kept, json.dumps(dict(line))]), encoding="utf-8")
