"""The device that computes: CPU or GPU."""

import re
import sys

from facets.errors import ConfigError, DeviceError, OverloadedError


def compute_device(name: str) -> str:
    """The torch device of a setting; ``auto`` is ``cuda`` if there is one, else ``cpu``. Raises ConfigError."""
    if name == "cpu":
        return name  # without loading torch
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", name):
        raise DeviceError(f"must be auto, cpu or cuda, got {name!r}", path="device")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {name!r} asked for, but torch sees {torch.cuda.device_count()} CUDA devices")
    return str(device)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error is torch's error for a device without free memory."""
    torch = sys.modules.get("torch")  # without torch there is no such error
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def no_memory_for(what: str) -> OverloadedError:
    """The error for a device without memory for even the smallest part of the work."""
    return OverloadedError(f"the device has no memory left for {what}: try again later, or ask for less")
