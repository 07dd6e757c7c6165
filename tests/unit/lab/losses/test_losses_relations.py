import pytest
import torch
from facets_lab.losses.relations import closest_facet_distance, universal_schema_loss
from torch.nn import functional


def values(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def slow_distance(facets_BKD: torch.Tensor, pairs_BND: torch.Tensor) -> torch.Tensor:
    """Tries lengths of each facet one after the other."""
    best_BN = torch.full(pairs_BND.shape[:2], float("inf"))
    for eta in torch.linspace(0.0, 1.0, 1001).tolist():
        for facet in range(facets_BKD.shape[1]):
            differences_BND = pairs_BND - eta * facets_BKD[:, facet : facet + 1]
            best_BN = torch.minimum(best_BN, differences_BND.square().sum(dim=-1))
    return best_BN


def test_distance_equals_the_reference() -> None:
    facets = values(1, 4, 3, 6) * torch.tensor([0.2, 1.0, 3.0])[None, :, None]
    pairs = functional.normalize(values(2, 4, 5, 6), dim=-1)
    slow = slow_distance(facets, pairs)
    assert torch.allclose(closest_facet_distance(facets, pairs), slow, atol=1e-3)


def test_an_opposite_facet_is_ignored_and_not_pulled() -> None:
    facets = torch.tensor([[[-1.0, 0.0]]], requires_grad=True)
    distance = closest_facet_distance(facets, torch.tensor([[[1.0, 0.0]]]))
    distance.sum().backward()
    assert distance.item() == pytest.approx(1.0)
    assert torch.equal(facets.grad, torch.zeros_like(facets))


def test_masked_pairs_change_nothing() -> None:
    facets, positives, negatives = values(1, 2, 3, 4), values(2, 2, 3, 4), values(3, 2, 3, 4)
    weights = torch.tensor([[1.0, 0.5, 0.0], [0.3, 0.0, 0.0]])
    loss = universal_schema_loss(facets, positives, negatives, positive_weights_BN=weights, negative_weights_BN=weights)
    changed = torch.where(weights.unsqueeze(-1) == 0, torch.full_like(positives, 7.0), positives)
    assert universal_schema_loss(
        facets, changed, negatives, positive_weights_BN=weights, negative_weights_BN=weights
    ).item() == pytest.approx(loss.item())
