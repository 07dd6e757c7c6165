"""Many facets to few: groups become centres, what is like nothing else stays.

Runs of pieces that facets attend to, against a search through all runs.
"""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from facets.model.facet_reduction import ALIKE, merged_facets, reduce_facets
from facets.model.passage_encoding import attended_runs, cut_runs, sentence_bounds, widen_to_words


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def facets_of_groups(num_groups: int, size: int) -> NDArray[np.float32]:
    """Groups of alike facets, one after another."""
    random = np.random.default_rng(3)
    centres = unit(random.standard_normal((num_groups, 64)))
    return unit(np.repeat(centres, size, axis=0) + 0.02 * random.standard_normal((num_groups * size, 64)))


def test_every_group_keeps_a_facet_and_its_weight() -> None:
    facets = facets_of_groups(6, 20)
    few = reduce_facets(facets, np.full(120, 2.0, np.float32), 8)
    assert len(few.facets) <= 8
    assert (facets @ few.facets.T).max(axis=1).min() > 0.95
    assert few.weights.sum() == 240.0
    np.testing.assert_allclose(np.linalg.norm(few.facets, axis=1), 1.0, atol=1e-5)
    assert (np.diff(few.closest) > 0).all()
    assert (facets[few.closest] * few.facets).sum(axis=1).min() > 0.9


def test_one_facet_about_something_else_is_kept_among_many() -> None:
    random = np.random.default_rng(0)
    topic = unit(random.standard_normal(64))
    facets = unit(topic + 0.1 * random.standard_normal((480, 64)))
    strange = unit(random.standard_normal(64))
    for place in (0, 200, 480):
        few = reduce_facets(np.insert(facets, place, strange, axis=0), np.ones(481, np.float32), 16)
        assert (few.facets @ strange).max() > 0.999
        assert few.closest[(few.facets @ strange).argmax()] == place


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


def test_runs_are_widened_to_whole_words() -> None:
    continues = torch.tensor([[False, True, False, False, True], [False, False, False, False, False]])
    firsts, lasts = widen_to_words(torch.tensor([[1, 2], [1, 2]]), torch.tensor([[2, 3], [1, 4]]), continues)
    assert firsts.tolist() == [[0, 2], [1, 2]]
    assert lasts.tolist() == [[2, 4], [1, 4]]


@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.0, 1.5))
def test_merged_facets_are_means_of_which_no_two_are_alike(seed: int, num_facets: int, spread: float) -> None:
    random = np.random.default_rng(seed)
    facets = unit(random.standard_normal(8) + spread * random.standard_normal((2, num_facets, 8)))
    weights = (random.random((2, num_facets)) > 0.2).astype(np.float32) * random.integers(1, 4, (2, num_facets))
    merged = merged_facets(facets, weights.astype(np.float32))
    for text in range(2):
        groups = merged.members[text].any(axis=1)
        assert (merged.members[text].sum(axis=0) == (weights[text] > 0)).all(), (
            "each is in one group, or weighs nothing"
        )
        found = merged.facets[text, groups]
        for group, facet, closest in zip(
            merged.members[text][groups], found, merged.closest[text][groups], strict=True
        ):
            mean = (facets[text] * weights[text][:, None])[group].sum(axis=0)
            np.testing.assert_allclose(facet, mean / np.linalg.norm(mean), atol=1e-5)
            assert group[closest]
        assert (found @ found.T - 2 * np.eye(len(found))).max(initial=-1) <= ALIKE + 1e-4
        assert (np.diff(merged.closest[text][groups]) > 0).all()


def test_short_sentences_are_one_with_their_neighbours_and_long_ones_are_read_in_parts() -> None:
    says = np.ones(60, dtype=np.bool_)
    says[[1, 5]] = False
    bounds = sentence_bounds(np.array([0, 2, 6, 59]), says, longest=30)
    assert bounds.tolist() == [0, 6, 33, 60], "the first says one word, and so does the last"
    assert sentence_bounds(np.array([0]), says[:1], longest=30).tolist() == [0, 1]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 8))
def test_runs_make_up_a_text_within_their_bounds(lengths: list[int], most: int) -> None:
    bounds = np.cumsum([0, *lengths])
    runs = cut_runs(3, bounds, longest=40, most=most)
    assert np.concatenate([[0], *(run.bounds[1:] for run in runs)]).tolist() == bounds.tolist()
    assert all(before.bounds[-1] == after.bounds[0] for before, after in pairwise(runs))
    assert all(len(run) <= 40 and 1 <= len(run.sentences) <= most and run.text == 3 for run in runs)
