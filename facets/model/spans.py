"""Where in a text a facet attends: the shortest run of pieces around its peak that holds most of its weight.

Shape suffixes: B texts, K facets, L pieces.
"""

import torch
from torch import Tensor

__all__ = ["attended_runs", "widen_to_words"]


def attended_runs(weights_BKL: Tensor, *, share: float = 0.8) -> tuple[Tensor, Tensor]:
    """The shortest run of pieces that contains a facet's heaviest piece and this share of all its weight.

    Args:
        weights_BKL: What each facet takes of each piece, not negative; 0 where there is no piece that may be shown.
        share: In (0, 1].

    Returns:
        First and last piece of each run, int64 ``[B, K]`` each, first <= last; of equally short runs the first. A facet
        without any weight has the run (0, 0).

    Example:
        >>> weights = torch.tensor([[[0.1, 0.0, 0.5, 0.4, 0.0]]])
        >>> [place.tolist() for place in attended_runs(weights)]
        [[[2]], [[3]]]
    """
    num_pieces = weights_BKL.shape[2]
    weights_BKL = weights_BKL.double()
    places_L = torch.arange(num_pieces, device=weights_BKL.device)
    peaks_BK1 = weights_BKL.argmax(dim=2, keepdim=True)
    ends_BKL = weights_BKL.cumsum(dim=2)
    wanted_BK1 = share * ends_BKL[:, :, -1:] * (1 - 1e-9)
    # A run from i ends at the first j with sum(0..j) >= sum(0..i-1) + wanted, and not before the peak.
    lasts_BKL = torch.searchsorted(ends_BKL, ends_BKL - weights_BKL + wanted_BK1)
    is_whole_BKL = (places_L <= peaks_BK1) & (lasts_BKL < num_pieces)
    lasts_BKL = torch.maximum(lasts_BKL, peaks_BK1)
    lengths_BKL = torch.where(is_whole_BKL, lasts_BKL - places_L, num_pieces)
    firsts_BK1 = lengths_BKL.argmin(dim=2, keepdim=True)
    lasts_BK1 = lasts_BKL.gather(2, firsts_BK1).clamp_max(num_pieces - 1)
    return firsts_BK1[:, :, 0], lasts_BK1[:, :, 0]


def widen_to_words(firsts_BK: Tensor, lasts_BK: Tensor, continues_BL: Tensor) -> tuple[Tensor, Tensor]:
    """The same runs, with the rest of the words that they begin and end in.

    Args:
        firsts_BK: First pieces, int64.
        lasts_BK: Last pieces, int64.
        continues_BL: Whether a piece continues the word of the one before it.

    Example:
        >>> goatherds = torch.tensor([[False, False, True, True, False]])
        >>> [place.tolist() for place in widen_to_words(torch.tensor([[2]]), torch.tensor([[2]]), goatherds)]
        [[[1]], [[3]]]
    """
    num_pieces = continues_BL.shape[1]
    places_L = torch.arange(num_pieces, device=continues_BL.device)
    starts_BL = torch.where(continues_BL, 0, places_L).cummax(dim=1).values
    is_last_BL = torch.nn.functional.pad(~continues_BL[:, 1:], (0, 1), value=True)
    ends_BL = torch.where(is_last_BL, places_L, num_pieces).flip(1).cummin(dim=1).values.flip(1)
    return starts_BL.gather(1, firsts_BK), ends_BL.gather(1, lasts_BK)
