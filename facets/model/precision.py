"""Number formats: the one that a device multiplies fastest, and products with packed weights of fewer bits.

Where the processor multiplies bfloat16, networks of passages run in it. Where it does not (AVX2, or AVX-512 without
BF16), their encoder multiplies whole numbers of 7 and 8 bits (:class:`Int8Linear`), which takes little more than half
the time of float32. Other checkpoints that hold weights in half precision lose nothing when these are packed for
FBGEMM's products (:class:`HalfWeightLinear`); products and sums stay float32. PyTorch's own float32 products are MKL's,
which on an AMD processor take twice as long, and four times for a single text.

Shape suffixes: T rows, X inputs, Y outputs.
"""

import warnings
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

_INT8_PRODUCT = "linear_with_input_q_dq_qweight_dq_output_fp32"  # packs inputs, multiplies, gives float32


def fastest_precision(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it natively, else float32.

    Processors with AMX or AVX-512 BF16 multiply bfloat16 two to eight times as fast as float32; others emulate it, at
    a hundredth of the speed. oneDNN is asked too, because it can be held to less (``ONEDNN_MAX_CPU_ISA=AVX2``).
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    # PyTorch tells it by private names only; a version without them runs in float32.
    checks = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    is_native = device.type == "cpu" and any(check is not None and check() for check in checks)
    return torch.bfloat16 if is_native and torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


def wants_int8(device: torch.device) -> bool:
    """Whether whole numbers are what the device multiplies fastest: a processor with AVX2 and without bfloat16."""
    is_plain = device.type == "cpu" and fastest_precision(device) == torch.float32
    return is_plain and _has_packed_products() and hasattr(torch.ops.quantized, _INT8_PRODUCT)


def _has_packed_products() -> bool:
    """Whether FBGEMM multiplies here: on x86 processors with AVX2 or more."""
    engines = torch.backends.quantized
    return engines.engine in ("fbgemm", "x86", "onednn") and "fbgemm" in engines.supported_engines


class PackedLinear(nn.Linear):
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
        """``[..., X]`` to ``[..., Y]``."""
        if inputs.dtype != torch.float32 or inputs.is_cuda or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return functional.linear(inputs, self.weight, self.bias)
        state = (self.weight.data_ptr(), 0 if self.weight.is_inference() else self.weight._version)
        packed = self._packed
        if packed is None or packed[0] != state:
            packed = self._packed = state, self._pack(self.weight.detach())
        return self._product(inputs, packed[1])

    @abstractmethod
    def _pack(self, weight_YX: Tensor) -> object: ...

    @abstractmethod
    def _product(self, inputs: Tensor, packed: object) -> Tensor: ...

    def __getstate__(self) -> dict[str, object]:
        """Without the packed weights, which cannot be copied."""
        return {**self.__dict__, "_packed": None}


class HalfWeightLinear(PackedLinear):
    """Products of float32 and weights of half precision, with sums in float32."""

    def _pack(self, weight_YX: Tensor) -> object:
        return torch.ops.quantized.linear_prepack_fp16(weight_YX, self.bias)

    def _product(self, inputs: Tensor, packed: object) -> Tensor:
        found: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs, packed)
        return found


class Int8Linear(PackedLinear):
    """Products of whole numbers: 127 steps for each row of inputs, 255 for each row of weights, exact sums.

    A row's steps are its own, so a text gives the same alone and among others. Inputs have seven bits, because products
    of eight overflow the 16 bits that AVX2 adds them in; so every processor gives the same sums.
    """

    def __init__(self, linear: nn.Linear, *, least: float | None = None) -> None:
        """Takes over the weights of a layer.

        Args:
            linear: The layer.
            least: What no input is less than, below 0, as after GELU; None: inputs have either sign alike.
        """
        super().__init__(linear)
        self._zero = 64 if least is None else 12
        self._least = least

    def _pack(self, weight_YX: Tensor) -> object:
        steps_Y = (weight_YX.abs().amax(dim=1) / 127).clamp_min(1e-12).double()
        zeros_Y = torch.zeros(len(steps_Y), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # that tensors of whole numbers will be made otherwise some day
            whole_YX = torch.quantize_per_channel(weight_YX, steps_Y, zeros_Y, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(whole_YX, None)

    def _product(self, inputs: Tensor, packed: object) -> Tensor:
        inputs_TX = inputs.reshape(-1, self.in_features)
        peaks_T1 = inputs_TX.amax(dim=1, keepdim=True)
        if self._least is None:
            peaks_T1 = torch.maximum(peaks_T1, inputs_TX.amin(dim=1, keepdim=True).neg_()).clamp_min_(1e-12)
        else:
            peaks_T1 = peaks_T1.clamp_min_(-self._least * (127 - self._zero) / self._zero)
        steps_T1 = peaks_T1.div_(127 - self._zero)
        multiply = getattr(torch.ops.quantized, _INT8_PRODUCT)
        sums_TY: Tensor = multiply(inputs_TX / steps_T1, 1.0, self._zero, packed)
        if self.bias is None:
            sums_TY.mul_(steps_T1)
        else:
            torch.addcmul(self.bias, sums_TY, steps_T1, out=sums_TY)
        return sums_TY.view(*inputs.shape[:-1], self.out_features)


def use_half_weights(network: nn.Module) -> None:
    """Replaces the linear layers of a network whose weights are numbers of half precision; those of others stay.

    Does nothing where the processor has no such products.
    """
    if not _has_packed_products():
        return
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Linear and _is_half(child.weight):
                setattr(parent, name, HalfWeightLinear(child))


def _is_half(weight: Tensor) -> bool:
    return weight.dtype == torch.float32 and bool((weight.half().float() == weight).all())
