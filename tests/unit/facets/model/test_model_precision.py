"""Products by packed weights of half precision and of whole numbers against those of PyTorch."""

import numpy as np
import pytest
import torch
from torch import nn

from facets.config import SentenceEncoderConfig
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.precision import HalfWeightLinear, Int8Linear, fastest_precision, use_half_weights, wants_int8

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


def _by_hand(linear: nn.Linear, inputs: torch.Tensor, *, least: float | None) -> torch.Tensor:
    """What ``Int8Linear`` is to give, in double precision and without a packed weight."""
    zero = 64 if least is None else 12
    peaks = inputs.abs().amax(dim=1, keepdim=True) if least is None else inputs.amax(dim=1, keepdim=True)
    if least is not None:
        peaks = peaks.clamp_min(-least * (127 - zero) / zero)
    steps = peaks.clamp_min(1e-12) / (127 - zero)
    whole = torch.round(inputs / steps).clamp(-zero, 127 - zero).double()
    weight_steps = (linear.weight.abs().amax(dim=1, keepdim=True) / 127).double()
    sums = whole @ torch.round(linear.weight / weight_steps.float()).double().T
    bias = 0.0 if linear.bias is None else linear.bias.double()
    return (sums * steps.double() * weight_steps.T + bias).float()


@pytest.mark.parametrize("least", [None, -0.17])
@pytest.mark.parametrize("bias", [True, False])
def test_whole_numbers_give_what_rounding_by_hand_gives(least: float | None, bias: bool) -> None:
    linear, inputs = _linear(96, 40, bias=bias), torch.randn(33, 96) * torch.logspace(-3, 3, 33)[:, None]
    if least is not None:
        inputs = nn.functional.gelu(inputs)
    with torch.inference_mode():
        found = Int8Linear(linear, least=least)(inputs.view(3, 11, 96)).view(33, 40)
    expected = _by_hand(linear, inputs, least=least)
    # A number in the middle of two steps may be rounded either way: by one step of its row.
    steps = inputs.abs().amax(dim=1, keepdim=True).clamp_min(1.7) / 63
    assert ((found - expected).abs() <= 1e-5 + steps * linear.weight.abs().max()).all()
    assert ((found - expected).abs() > 1e-4 + 1e-4 * expected.abs()).float().mean() < 0.1
    exact = linear(inputs)
    assert nn.functional.cosine_similarity(found, exact, dim=1)[15:].min() > 0.995


def test_a_row_of_whole_numbers_is_the_same_alone_and_among_others() -> None:
    layer, inputs = Int8Linear(_linear()), torch.randn(50, 24)
    with torch.inference_mode():
        together = layer(inputs)
        assert all(torch.equal(layer(inputs[row : row + 1])[0], together[row]) for row in range(50))


def test_an_encoder_of_whole_numbers_is_close_to_that_of_floats() -> None:
    torch.manual_seed(3)
    config = SentenceEncoderConfig(
        num_layers=2, width=64, num_heads=4, feedforward_dim=96, vocabulary_size=50, max_tokens=64
    )
    encoder = SentenceEncoder(config).eval().requires_grad_(False)
    batch = RaggedBatch.of([np.arange(1, 30), np.arange(4, 11), np.arange(7, 9)])
    with torch.inference_mode():
        exact = encoder(batch)
        names = list(encoder.state_dict())
        encoder.use_int8()
        found = encoder(batch)
        assert nn.functional.cosine_similarity(found, exact, dim=1).min() > 0.995
        assert not torch.equal(found, exact)
        assert list(encoder.state_dict()) == names


def test_the_format_is_that_of_what_the_processor_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert wants_int8(cpu) == (fastest_precision(cpu) == torch.float32)
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    assert (fastest_precision(cpu), wants_int8(cpu)) == (torch.float32, True)
