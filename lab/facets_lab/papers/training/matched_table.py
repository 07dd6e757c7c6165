"""Author and citing-paper tables while the network is trained: coordinate descent on eq. 3.12.

For given facets, the vector of an author that minimises eq. 3.12 points, where papers are spread evenly, along the sum
of the facets that the author's papers offer, each paper its best one. So the sum is kept up to date instead of being
followed by gradients. That also lets the author be scored without the paper at hand: a vector that knows the paper
already is matched without learning anything about papers that are still unseen, and most authors have two or three.

Shape suffixes: P pairs of the corpus or of a batch, J authors or citing papers, U those of a batch, D dimensions,
B papers, K facets.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["MatchedTable"]


class MatchedTable(nn.Module):
    """Sums of the matched facets of every author (citing paper).

    Args:
        columns_P: Author of each pair of the corpus.
        is_used_P: Pairs of training papers; the others count nothing.
        facets_PD: What each pair offers at the start.
        num_columns: J.
    """

    columns: Tensor
    is_used: Tensor
    matched: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(self, columns_P: Tensor, is_used_P: Tensor, facets_PD: Tensor, num_columns: int) -> None:
        super().__init__()
        used = is_used_P.float()
        self.register_buffer("columns", columns_P)
        self.register_buffer("is_used", is_used_P)
        self.register_buffer("matched", (facets_PD * used.unsqueeze(1)).half())
        self.register_buffer("counts", torch.zeros(num_columns).index_add(0, columns_P, used))
        self.register_buffer("sums", self._summed(num_columns))
        # Length of all vectors; learned.
        self.log_scale = nn.Parameter(torch.zeros(()))

    def count_all(self) -> None:
        """From now on every pair counts; those that did not are to be updated before they mean anything."""
        self.is_used.fill_(True)
        self.counts.zero_().index_add_(0, self.columns, torch.ones_like(self.columns, dtype=torch.float32))

    def _summed(self, num_columns: int) -> Tensor:
        sums = torch.zeros(num_columns, self.matched.shape[1], device=self.matched.device)
        return sums.index_add(0, self.columns, self.matched.float())

    def vectors(self, columns_U: Tensor | None = None) -> Tensor:
        """Vectors of authors, all at the same length, ``[U, D]``; zero for one without a training paper."""
        sums = self.sums if columns_U is None else self.sums[columns_U]
        return self.log_scale.exp() * functional.normalize(sums, dim=-1)

    def vectors_without(self, pairs_P: Tensor) -> tuple[Tensor, Tensor]:
        """For pairs of the corpus, the author's vector without the paper ``[P, D]``, and whether any paper is left."""
        columns_P = self.columns[pairs_P]
        rest_PD = self.sums[columns_P] - self.matched[pairs_P].float()
        has_rest_P = self.counts[columns_P] > 1.5
        return self.log_scale.exp() * functional.normalize(rest_PD, dim=-1), has_rest_P

    @torch.no_grad()
    def update(self, pairs_P: Tensor, facets_PKD: Tensor, own_PD: Tensor) -> None:
        """Replaces what pairs offer by the best of their paper's new facets.

        Args:
            pairs_P: Distinct pairs of the corpus, of training papers.
            facets_PKD: Facets with magnitudes of each pair's paper.
            own_PD: The vector that chooses: the author's without the paper.
        """
        best_P = (facets_PKD @ own_PD.unsqueeze(2)).squeeze(2).argmax(dim=1)
        new_PD = facets_PKD[torch.arange(len(best_P), device=best_P.device), best_P].half()
        change_PD = new_PD.float() - self.matched[pairs_P].float()
        self.sums.index_add_(0, self.columns[pairs_P], change_PD)
        self.matched[pairs_P] = new_PD
