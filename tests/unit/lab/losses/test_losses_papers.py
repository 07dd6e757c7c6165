"""The loss of author and citation prediction against a loop over pairs."""

import pytest
import torch
from facets_lab.losses.papers import paper_autoencoder_loss, softmax_loss


def example(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    facets = torch.randn(4, 3, 5, generator=generator, dtype=dtype)
    table = torch.randn(3, 5, generator=generator, dtype=dtype)
    positives = torch.tensor([[0, 0], [1, 0], [2, 1], [0, 2]])
    weights = torch.tensor([0.5, 0.5, 1.0, 2.0], dtype=dtype)
    return facets, table, positives, weights


def test_softmax_loss_equals_a_loop_over_pairs() -> None:
    facets, table, positives, weights = example()
    scores = torch.stack([torch.stack([(paper @ vector).max() for vector in table]) for paper in facets]) / 0.5
    right = {(int(i), int(j)) for i, j in positives}
    total = torch.zeros(())
    for (i, j), weight in zip(positives.tolist(), weights.tolist(), strict=True):
        column = [scores[row, j] for row in range(len(facets)) if (row, j) not in right]
        row = [scores[i, other] for other in range(len(table)) if (i, other) not in right]
        for share, others in ((1.0, column), (0.3, row)):
            total += share * weight * -torch.log_softmax(torch.stack([scores[i, j], *others]), dim=0)[0]
    found = softmax_loss(facets, table, positives, weights, table[positives[:, 1]], temperature=0.5)
    torch.testing.assert_close(found, total / weights.sum())


def test_paper_autoencoder_is_zero_at_its_target() -> None:
    facets = torch.eye(2).unsqueeze(1)
    assert paper_autoencoder_loss(facets, torch.eye(2), torch.tensor([1, 0])).item() == pytest.approx(0.0)
