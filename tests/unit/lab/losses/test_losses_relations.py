import pytest
import torch
from facets_lab.losses.autoencoder import paper_autoencoder_loss, pattern_autoencoder_loss, weighted_word_sum
from facets_lab.losses.relations import (
    bpr_loss,
    closest_facet_distance,
    reference_closest_facet_distance,
    universal_schema_loss,
)
from torch.autograd import gradcheck
from torch.nn import functional


def values(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_distance_equals_the_reference() -> None:
    facets = values(1, 4, 3, 6) * torch.tensor([0.2, 1.0, 3.0])[None, :, None]
    pairs = functional.normalize(values(2, 4, 5, 6), dim=-1)
    slow = reference_closest_facet_distance(facets, pairs)
    assert torch.allclose(closest_facet_distance(facets, pairs), slow, atol=1e-3)


def test_an_opposite_facet_is_ignored_and_not_pulled() -> None:
    facets = torch.tensor([[[-1.0, 0.0]]], requires_grad=True)
    distance = closest_facet_distance(facets, torch.tensor([[[1.0, 0.0]]]))
    distance.sum().backward()
    assert distance.item() == pytest.approx(1.0)
    assert torch.equal(facets.grad, torch.zeros_like(facets))


def test_a_zero_facet_gives_a_finite_loss() -> None:
    facets = torch.zeros(1, 2, 4, requires_grad=True)
    distance = closest_facet_distance(facets, functional.normalize(values(1, 1, 3, 4), dim=-1))
    distance.sum().backward()
    assert torch.isfinite(distance).all()
    assert torch.isfinite(facets.grad).all()


def test_gradient_of_the_loss() -> None:
    facets = values(1, 2, 2, 4, dtype=torch.float64)
    positives = values(2, 2, 3, 4, dtype=torch.float64)

    def loss(own: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        units = functional.normalize(near, dim=-1)
        return closest_facet_distance(own, units).sum()

    assert gradcheck(loss, (facets.requires_grad_(), positives.requires_grad_()), atol=1e-4)


def test_masked_pairs_change_nothing() -> None:
    facets, positives, negatives = values(1, 2, 3, 4), values(2, 2, 3, 4), values(3, 2, 3, 4)
    weights = torch.tensor([[1.0, 0.5, 0.0], [0.3, 0.0, 0.0]])
    loss = universal_schema_loss(facets, positives, negatives, positive_weights_BN=weights, negative_weights_BN=weights)
    changed = torch.where(weights.unsqueeze(-1) == 0, torch.full_like(positives, 7.0), positives)
    assert universal_schema_loss(
        facets, changed, negatives, positive_weights_BN=weights, negative_weights_BN=weights
    ).item() == pytest.approx(loss.item())


def test_facets_at_their_pairs_reach_the_best_loss() -> None:
    positives = torch.eye(4)[:2].unsqueeze(0)
    loss = universal_schema_loss(
        positives, positives, -positives, positive_weights_BN=torch.ones(1, 2), negative_weights_BN=torch.ones(1, 2)
    )
    assert loss.item() == pytest.approx(-1.0)


def test_bpr_prefers_the_pair_that_was_seen() -> None:
    row = torch.tensor([[1.0, 0.0]])
    right, wrong = torch.tensor([[2.0, 0.0]]), torch.tensor([[-2.0, 0.0]])
    assert bpr_loss(row, right, wrong) < bpr_loss(row, wrong, right)


def test_pattern_autoencoder_is_bounded_whatever_the_lengths() -> None:
    facets, words = values(1, 5, 3, 8), values(2, 5, 8)
    negatives = torch.arange(5).roll(1)
    loss = pattern_autoencoder_loss(facets, words, negatives)
    assert -4.0 <= loss.item() <= 4.0
    assert pattern_autoencoder_loss(facets * 1000, words * 0.01, negatives).item() == pytest.approx(
        loss.item(), abs=1e-4
    )


def test_patterns_without_a_known_word_add_nothing() -> None:
    facets = values(1, 2, 3, 8)
    assert pattern_autoencoder_loss(facets, torch.zeros(2, 8), torch.tensor([1, 0])).item() == 0.0


def test_rare_words_weigh_more() -> None:
    words = torch.eye(2).unsqueeze(0)
    summed = weighted_word_sum(words, torch.tensor([[0.1, 0.0]]))
    assert summed[0, 1] == 1.0
    assert summed[0, 0] < 0.01


def test_paper_autoencoder_is_zero_at_its_target() -> None:
    facets = torch.eye(2).unsqueeze(1)
    assert paper_autoencoder_loss(facets, torch.eye(2), torch.tensor([1, 0])).item() == pytest.approx(0.0)
