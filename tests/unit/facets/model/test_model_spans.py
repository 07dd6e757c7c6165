"""Runs of pieces that facets attend to, against a search through all runs."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from facets.model.spans import attended_runs, widen_to_words


def _shortest(weights: list[float], share: float) -> int:
    """Length of the shortest run that holds the peak and the share, found by trying all."""
    peak = max(range(len(weights)), key=weights.__getitem__)
    wanted = share * sum(weights) * (1 - 1e-6)
    return min(
        last - first
        for first in range(peak + 1)
        for last in range(peak, len(weights))
        if sum(weights[first : last + 1]) >= wanted
    )


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(any), st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_a_run_is_the_shortest_that_holds_peak_and_share(counts: list[int], share: float) -> None:
    weights = torch.tensor(counts, dtype=torch.float32)
    firsts, lasts = attended_runs(weights[None, None], share=share)
    first, last = int(firsts), int(lasts)
    assert 0 <= first <= int(weights.argmax()) <= last < len(counts)
    assert float(weights[first : last + 1].sum()) >= share * float(weights.sum()) * (1 - 1e-6)
    assert last - first == _shortest([float(count) for count in counts], share)


def test_facets_and_texts_do_not_meet() -> None:
    torch.manual_seed(0)
    weights = torch.rand(3, 4, 9).softmax(dim=2)
    together = torch.stack(attended_runs(weights))
    alone = torch.cat([torch.stack(attended_runs(weights[i : i + 1])) for i in range(3)], dim=1)
    assert torch.equal(together, alone)


def test_a_facet_without_weight_has_the_first_piece() -> None:
    firsts, lasts = attended_runs(torch.zeros(1, 2, 5))
    assert (firsts <= lasts).all() and (lasts < 5).all()


def test_runs_are_widened_to_whole_words() -> None:
    continues = torch.tensor([[False, True, False, False, True], [False, False, False, False, False]])
    firsts, lasts = widen_to_words(torch.tensor([[1, 2], [1, 2]]), torch.tensor([[2, 3], [1, 4]]), continues)
    assert firsts.tolist() == [[0, 2], [1, 2]]
    assert lasts.tolist() == [[2, 4], [1, 4]]
