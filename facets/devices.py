"""Where numbers are computed: the processor, or a GPU."""

from facets.errors import ConfigError

__all__ = ["compute_device"]


def compute_device(name: str) -> str:
    """The device of a setting, by torch's name: ``auto`` is ``cuda`` where there is one, else ``cpu``.

    Raises:
        ConfigError: No such device, or torch sees none.

    Example:
        >>> compute_device("cpu")
        'cpu'
    """
    if name == "cpu":
        return name  # without loading torch
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device must be auto, cpu or cuda, got {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device must be auto, cpu or cuda, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {name!r} asked for, but torch sees {torch.cuda.device_count()} CUDA devices")
    return str(device)
