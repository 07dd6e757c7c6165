"""The number format that a device multiplies fastest without losing what matters to a cosine."""

import torch

__all__ = ["fastest_precision"]


def fastest_precision(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it natively, else float32.

    Processors with AMX or AVX-512 BF16 multiply bfloat16 two to four times as fast as float32; others would emulate it.
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    # PyTorch tells it by private names only; a version without them runs in float32.
    checks = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    is_native = device.type == "cpu" and any(check is not None and check() for check in checks)
    return torch.bfloat16 if is_native else torch.float32
