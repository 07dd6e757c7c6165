"""What is recorded gives the numbers of what it was recorded from."""

import copy

import pytest
import torch
from torch import Tensor, nn

from facets.model.precision import UNRECORDED_CALLS, Traced


class _Counted(nn.Module):
    """Counts how often its function is called by Python."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.num_calls = 0
        self.run = Traced(self, self.function, small=100)
        self.eval().requires_grad_(False)

    def function(self, values_BX: Tensor, bias_X: Tensor | None) -> Tensor:
        self.num_calls += 1
        found: Tensor = self.linear(values_BX)
        return found if bias_X is None else found + bias_X


@pytest.fixture
def module() -> _Counted:
    torch.manual_seed(1)
    return _Counted()


def _recorded(module: _Counted, values_BX: Tensor) -> Tensor:
    for _ in range(UNRECORDED_CALLS):
        module.run(values_BX, None)
    found: Tensor = module.run(values_BX, None)
    return found


@torch.inference_mode()
def test_other_sizes_and_missing_arguments_give_what_the_function_gives(module: _Counted) -> None:
    for num_rows in (2, 1, 7, 3, 5, 3000):
        for bias in (None, torch.ones(4)):
            values = torch.randn(num_rows, 4)
            assert torch.equal(module.run(values, bias), module.function(values, bias))
    before = module.num_calls
    module.run(torch.randn(500, 4), None)
    assert module.num_calls == before, "Python should not be asked again"


def test_mixed_precision_between_steps_of_training_is_not_recorded(module: _Counted) -> None:
    """Autocast keeps what it has cast for gradients, which no recording may hold."""
    module.requires_grad_()
    values = torch.randn(2, 4)
    with torch.autocast("cpu", torch.bfloat16):
        module.run(values, None).sum().backward()
        with torch.no_grad():
            assert module.run(values, None).dtype == torch.bfloat16
    with torch.no_grad():
        assert module.run(values, None).dtype == torch.float32


@torch.inference_mode()
def test_a_copy_has_weights_of_its_own(module: _Counted) -> None:
    values = torch.randn(2, 4)
    first = _recorded(module, values)
    other = copy.deepcopy(module)
    other.linear.weight.data = torch.zeros(4, 4)
    assert torch.equal(other.run(values, None), other.linear.bias.expand(2, 4))
    assert torch.equal(module.run(values, None), first)
