"""Products by packed weights of half precision against those of PyTorch."""

import copy

import pytest
import torch
from torch import nn

from facets.model.precision import HalfWeightLinear, use_half_weights

pytestmark = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="the processor has no such products"
)


def _linear(inputs: int = 24, outputs: int = 40, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(1)
    linear = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        linear.weight.copy_(linear.weight.half())
    return linear.requires_grad_(False)


@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (3, 5, 24), (0, 24), (2, 1, 4, 24)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_a_plain_layer(shape: tuple[int, ...], bias: bool) -> None:
    linear, inputs = _linear(bias=bias), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(HalfWeightLinear(linear)(inputs), linear(inputs), atol=1e-5, rtol=1e-5)


def test_inputs_may_lie_anywhere_in_memory() -> None:
    linear, inputs = _linear(), torch.randn(24, 9).T
    with torch.inference_mode():
        torch.testing.assert_close(HalfWeightLinear(linear)(inputs), linear(inputs), atol=1e-5, rtol=1e-5)


def test_changed_weights_are_seen() -> None:
    linear, inputs = _linear(), torch.randn(3, 24)
    packed = HalfWeightLinear(linear)
    with torch.no_grad():
        packed(inputs)
        packed.load_state_dict({"weight": torch.ones(40, 24), "bias": torch.zeros(40)})
        torch.testing.assert_close(packed(inputs), inputs.sum(dim=1, keepdim=True).expand(3, 40), atol=1e-5, rtol=1e-5)


def test_gradients_flow_as_before() -> None:
    packed = HalfWeightLinear(_linear()).requires_grad_(True)
    packed(torch.ones(2, 24)).sum().backward()
    assert packed.weight.grad is not None
    torch.testing.assert_close(packed.weight.grad, torch.full((40, 24), 2.0))


def test_other_number_types_and_copies_work() -> None:
    packed, inputs = HalfWeightLinear(_linear()), torch.randn(3, 24)
    with torch.inference_mode():
        expected = packed(inputs)
        torch.testing.assert_close(copy.deepcopy(packed)(inputs), expected)
        found = packed.to(torch.bfloat16)(inputs.bfloat16())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


def test_only_weights_that_lose_nothing_are_packed() -> None:
    network = nn.Sequential(_linear(), nn.Sequential(_linear(40, 8), nn.Linear(8, 8)))
    names = list(network.state_dict())
    use_half_weights(network)
    assert [type(layer) for layer in network.modules() if isinstance(layer, nn.Linear)] == [
        HalfWeightLinear,
        HalfWeightLinear,
        nn.Linear,
    ]
    assert list(network.state_dict()) == names
