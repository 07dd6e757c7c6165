"""What training runs share: interrupts, device, precision."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch

from facets.errors import ConfigError

__all__ = ["interrupts", "training_device", "use_bfloat16"]


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


def training_device(name: str) -> torch.device:
    """The device of a setting: ``auto`` is CUDA where there is one.

    Raises:
        ConfigError: No such device, or torch sees none.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device must be auto, cpu or cuda, got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} asked for, but this torch sees no CUDA device")
    return device


def use_bfloat16(precision: str, device: torch.device) -> bool:
    """True for bfloat16; ``auto`` takes it where the hardware multiplies it, elsewhere it is slower."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported())
