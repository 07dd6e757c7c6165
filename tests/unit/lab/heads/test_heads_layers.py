"""Output layers: values and gradients, causality, rank."""

import pytest
import torch
from facets_lab.heads.layers import HEADS, Head, HeadConfig, head_config
from torch import Tensor, nn

from facets.errors import ConfigError

_NUM_WORDS, _DIM, _LAYERS = 13, 6, 3


def small(config: HeadConfig) -> HeadConfig:
    """The same layer for a vocabulary of a dozen words."""
    values = {name: getattr(config, name) for name in HeadConfig.__slots__}
    return HeadConfig(**values | {"rerankers": (2, 5) if config.rerankers else ()})


def made(config: HeadConfig) -> tuple[Head, list[Tensor], Tensor]:
    torch.manual_seed(3)
    words_VH = nn.Parameter(torch.randn(_NUM_WORDS, _DIM, dtype=torch.float64))
    head = Head(words_VH, small(config), num_layers=_LAYERS).double()
    for weights in head.parameters():  # at the start several facets are equal
        if weights is not words_VH:
            nn.init.normal_(weights, std=0.4)
    states = [torch.randn(2, 7, _DIM, dtype=torch.float64, requires_grad=True) for _ in range(_LAYERS)]
    inputs_BL = torch.tensor([[3, 5, 3, 12, 5, 3, 1], [4, 4, 2, 9, 0, 0, 0]])
    return head, states, inputs_BL


# Weighted sum of the log-probabilities and norm of its gradient; a word-by-word version of the equations gave the same.
VALUES = {
    "softmax": (-24.855113, 66.514178),
    "multi-input": (-3.11219, 147.099549),
    "sigsoftmax": (-27.992684, 101.718464),
    "moc": (-35.346213, 54.005389),
    "mos": (-19.080822, 49.479543),
    "mfs": (-12.826108, 140.131872),
    "mfs-one-input": (1.40893, 48.674917),
    "mfs-one-partition": (-62.010617, 209.98309),
    "c": (-18.078666, 56.078742),
    "cl": (13.42882, 62.989751),
    "r": (-13.022387, 55.743105),
    "clr": (36.429923, 76.285993),
    "clr-multi-input": (-38.44588, 341.071116),
}


@pytest.mark.parametrize("name", HEADS)
def test_values_and_gradients(name: str) -> None:
    head, states, inputs_BL = made(HEADS[name])
    weights = torch.arange(2 * 7 * (_NUM_WORDS - 1), dtype=torch.float64).view(2, 7, -1).sin()
    total = (head(states, inputs_BL)[..., 1:] * weights).sum()
    total.backward()
    gradients = [leaf.grad for leaf in (*states, *head.parameters()) if leaf.grad is not None]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert (total.item(), norm.item()) == pytest.approx(VALUES[name], rel=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_probabilities_sum_to_one_without_padding_and_later_positions(name: str) -> None:
    head, states, inputs_BL = made(HEADS[name])
    before = head(states, inputs_BL)
    assert float(before[..., 0].detach().exp().max()) == 0.0
    torch.testing.assert_close(before.exp().sum(dim=-1), torch.ones(2, 7, dtype=torch.float64))
    later = inputs_BL.clone()
    later[:, 4:] = 11
    changed = [torch.cat((state[:, :4], state[:, 4:] + 1.0), dim=1) for state in states]
    torch.testing.assert_close(head(changed, later)[:, :4], before[:, :4])
    torch.testing.assert_close(head(states, inputs_BL, last=2), before[:, -2:])


@pytest.mark.parametrize("name", [name for name, c in HEADS.items() if c.num_softmaxes == 1 and not c.has_curve])
def test_a_layer_with_one_softmax_starts_near_it(name: str) -> None:
    config = small(HEADS[name])
    words_VH = nn.Parameter(torch.randn(_NUM_WORDS, _DIM))
    _, states, inputs_BL = made(config)
    states = [state.detach().float() for state in states]
    begun = Head(words_VH, config, num_layers=_LAYERS)(states, inputs_BL)
    plain = Head(words_VH, HEADS["softmax"], num_layers=_LAYERS)(states, inputs_BL)
    torch.testing.assert_close(begun, plain, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: head_config("softmaxx"), "unknown layer 'softmaxx'"),
        (lambda: HeadConfig(rerankers=(100, 20)), "ascending"),
        (lambda: HeadConfig(num_softmaxes=0), ">= 1"),
        (lambda: Head(nn.Parameter(torch.zeros(2, 4)), HEADS["clr"], num_layers=1), "need a larger vocabulary"),
    ],
)
def test_wrong_settings(make: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        make()  # type: ignore[operator]
