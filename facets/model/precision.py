"""Makes networks fast on a CPU: number formats, products with packed weights, and recorded functions.

Passage networks run in bfloat16 where the CPU supports it; on other CPUs their encoder multiplies integers in little
more than half the time of float32. The half-precision weights of other checkpoints are packed for FBGEMM without loss;
PyTorch's own float32 products take two to four times as long.
Shape suffixes: T rows, X inputs, Y outputs.
"""

import threading
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Small calls that a `Traced` function answers before it is recorded, which takes as long as ten of them.
UNRECORDED_CALLS = 3
_INT8_PRODUCT = "linear_with_input_q_dq_qweight_dq_output_fp32"  # packs inputs, multiplies, gives float32


def fastest_precision(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it natively, else float32.

    CPUs with AMX or AVX-512 BF16 multiply bfloat16 two to eight times as fast as float32; others emulate it at a
    hundredth of the speed. oneDNN is queried too, because it can be restricted (``ONEDNN_MAX_CPU_ISA=AVX2``).
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    # PyTorch has only private names for this; a version without them runs in float32.
    checks = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    is_native = device.type == "cpu" and any(check is not None and check() for check in checks)
    return torch.bfloat16 if is_native and torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


def wants_int8(device: torch.device) -> bool:
    """Whether integer products are fastest on the device: a CPU with AVX2 but without bfloat16."""
    return device.type == "cpu" and fastest_precision(device) == torch.float32 and has_int8()


def has_int8() -> bool:
    """Whether ``Int8Linear`` runs on the CPU."""
    return _has_packed_products() and hasattr(torch.ops.quantized, _INT8_PRODUCT)


def _has_packed_products() -> bool:
    """Whether FBGEMM is available: on x86 CPUs with AVX2 or more."""
    engines = torch.backends.quantized
    return engines.engine in ("fbgemm", "x86", "onednn") and "fbgemm" in engines.supported_engines


class PackedLinear(nn.Linear):
    """An ``nn.Linear`` that multiplies by packed copies of frozen weights."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.train(linear.training)
        self._packed: Any = None

    def forward(self, inputs: Tensor) -> Tensor:
        """``[..., X]`` to ``[..., Y]``."""
        may_change = self.weight.requires_grad or torch.is_grad_enabled() or torch.compiler.is_compiling()
        if inputs.dtype != torch.float32 or inputs.is_cuda or may_change:
            return functional.linear(inputs, self.weight, self.bias)
        if self._packed is None:
            self._packed = self._pack(self.weight)
        return self._product(inputs, self._packed)

    @abstractmethod
    def _pack(self, weight_YX: Tensor) -> object: ...

    @abstractmethod
    def _product(self, inputs: Tensor, packed: object) -> Tensor: ...

    def __getstate__(self) -> dict[str, object]:
        """The state without packed weights, which cannot be copied."""
        return {**self.__dict__, "_packed": None}


class HalfWeightLinear(PackedLinear):
    """Products of float32 inputs and half-precision weights, with sums in float32."""

    def _pack(self, weight_YX: Tensor) -> object:
        return torch.ops.quantized.linear_prepack_fp16(weight_YX, self.bias)

    def _product(self, inputs: Tensor, packed: object) -> Tensor:
        outputs: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs, packed)
        return outputs


class Int8Linear(PackedLinear):
    """Integer products: 127 levels for each row of inputs, 255 for each row of weights, exact sums.

    Each row has its own scale, so a text gives the same result alone and in a batch. Inputs have seven bits because
    AVX2 adds products in 16 bits, which 8-bit inputs would overflow.
    """

    def __init__(self, linear: nn.Linear, *, least: float | None = None) -> None:
        """``least``: lower bound of the inputs, below 0, as after GELU; None: inputs are symmetric around 0."""
        super().__init__(linear)
        self._zero = 64 if least is None else 12
        self._least = least

    def _pack(self, weight_YX: Tensor) -> object:
        steps_Y = (weight_YX.abs().amax(dim=1) / 127).clamp_min(1e-12).double()
        zeros_Y = torch.zeros(len(steps_Y), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about the future API for quantized tensors
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
    """Replaces the linear layers of a network whose weights are exact in half precision, where the CPU supports it."""
    if not _has_packed_products():
        return
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Linear and bool((child.weight.half().float() == child.weight).all()):
                setattr(parent, name, HalfWeightLinear(child))


class Traced:
    """A function of tensors and frozen weights, recorded after a few small calls and then run without Python.

    Results are bit-identical, a single text takes a third of the time, and other threads can run Python. On a GPU, in
    mixed precision, and while weights may change, the function itself is called. Its control flow may depend on which
    arguments are None, but not on values or sizes.
    """

    def __init__(self, network: nn.Module, function: Callable[..., Any], *, small: int) -> None:
        """``small``: most elements of the first argument in a call that is recorded, which keeps all results in memory.

        ``network``: holds the weights. ``function``: takes tensors, some of which may be None.
        """
        self._network = network
        self._function = function
        self._small = small
        self._lock = threading.Lock()
        self._recorded: dict[tuple[bool, ...], Callable[..., Any]] = {}
        self._small_calls: Counter[tuple[bool, ...]] = Counter()

    def __call__(self, *inputs: Tensor | None) -> Any:
        """The result of the function."""
        tensors = tuple(value for value in inputs if value is not None)
        is_tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        is_inside = is_tracing or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
        may_change = torch.is_grad_enabled() or any(weight.requires_grad for weight in self._network.parameters())
        if is_inside or may_change or any(tensor.device.type != "cpu" for tensor in tensors):
            return self._function(*inputs)
        given = tuple(value is not None for value in inputs)
        recorded = self._recorded.get(given)
        if recorded is None:
            is_small = tensors[0].numel() <= self._small
            self._small_calls[given] += is_small
            if not is_small or self._small_calls[given] <= UNRECORDED_CALLS:
                return self._function(*inputs)
            with self._lock:
                recorded = self._record(tensors, given)
        return recorded(*tensors)

    def _record(self, tensors: tuple[Tensor, ...], given: tuple[bool, ...]) -> Callable[..., Any]:
        if given not in self._recorded:
            module = _Recorded(self._network, self._function, given)
            module(*tensors)  # packs weights
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about control flow (see the class) and deprecations
                whole = torch.jit.trace(module, tensors, check_trace=False)  # type: ignore[no-untyped-call]
                self._recorded[given] = torch.jit.freeze(whole)
        return self._recorded[given]

    def __getstate__(self) -> dict[str, object]:
        """The state without recordings, which cannot be copied."""
        return {"network": self._network, "function": self._function, "small": self._small}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a copy, without recordings."""
        self.__init__(**state)  # type: ignore[misc]


class _Recorded(nn.Module):
    """The function as a module, as ``torch.jit.trace`` needs it; arguments that are None are left out."""

    def __init__(self, network: nn.Module, function: Callable[..., Any], given: tuple[bool, ...]) -> None:
        super().__init__()
        self.network = network
        self._function = function
        self._given = given
        self.eval()

    def forward(self, *values: Tensor) -> Any:
        left = iter(values)
        return self._function(*(next(left) if is_given else None for is_given in self._given))
