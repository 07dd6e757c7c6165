"""Number formats: the one that a device multiplies fastest, and products with weights in half precision.

Checkpoints hold weights in half precision, so packing them for FBGEMM's products (float32 on x86 processors) loses
nothing; products and sums stay float32. PyTorch's own float32 products are MKL's, which on an AMD processor take twice
as long, and four times for a single text.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


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


_ENGINES = ("fbgemm", "x86", "onednn")  # PyTorch's names for processors that FBGEMM runs on


class HalfWeightLinear(nn.Linear):
    """An ``nn.Linear``, the same in name and number of its weights; packed where nobody asks for gradients.

    Packed weights are made anew when the weights have changed.
    """

    def __init__(self, linear: nn.Linear) -> None:
        """Takes over the weights of a layer."""
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.train(linear.training)
        self._packed: tuple[tuple[int, int], object] | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """``[..., in_features]`` to ``[..., out_features]``."""
        if inputs.dtype != torch.float32 or inputs.is_cuda or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return functional.linear(inputs, self.weight, self.bias)
        found: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs, self._pack())
        return found

    def _pack(self) -> object:
        state = (self.weight.data_ptr(), 0 if self.weight.is_inference() else self.weight._version)
        packed = self._packed
        if packed is None or packed[0] != state:
            packed = state, torch.ops.quantized.linear_prepack_fp16(self.weight.detach(), self.bias)
            self._packed = packed
        return packed[1]

    def __getstate__(self) -> dict[str, object]:
        """Without the packed weights, which cannot be copied."""
        return {**self.__dict__, "_packed": None}


def use_half_weights(network: nn.Module) -> None:
    """Replaces the linear layers of a network whose weights are numbers of half precision; those of others stay.

    Does nothing where the processor has no such products.
    """
    if torch.backends.quantized.engine not in _ENGINES or "fbgemm" not in torch.backends.quantized.supported_engines:
        return
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Linear and _is_half(child.weight):
                setattr(parent, name, HalfWeightLinear(child))


def _is_half(weight: Tensor) -> bool:
    return weight.dtype == torch.float32 and bool((weight.half().float() == weight).all())
