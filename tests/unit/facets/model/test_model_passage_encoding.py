"""Many facets to few: groups become centres, what is like nothing else stays. Sentences and windows of long texts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.language.vectors import unit_rows
from facets.model.facet_reduction import ALIKE, merge_alike, reduce_facets
from facets.model.passage_encoding import Cut, cut_long, cut_windows, length_batches, sentence_bounds


def test_one_facet_about_something_else_is_kept_among_many() -> None:
    random = np.random.default_rng(0)
    topic = unit_rows(random.standard_normal(64))
    facets = unit_rows(topic + 0.1 * random.standard_normal((480, 64)))
    strange = unit_rows(random.standard_normal(64))
    for place in (0, 200, 480):
        few = reduce_facets(np.insert(facets, place, strange, axis=0), np.ones(481, np.float32), 16)
        assert (few.facets @ strange).max() > 0.999
        assert few.closest[(few.facets @ strange).argmax()] == place


@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.0, 1.5))
def test_merged_facets_are_means_of_which_no_two_are_alike(seed: int, num_facets: int, spread: float) -> None:
    random = np.random.default_rng(seed)
    facets = unit_rows(random.standard_normal(8) + spread * random.standard_normal((num_facets, 8)))
    weights = random.integers(1, 4, num_facets).astype(np.float32)
    merged = merge_alike(facets, weights)
    found = merged.facets
    assert merged.weights.sum() == weights.sum() and (np.diff(merged.closest) > 0).all()
    assert (found @ found.T - 2 * np.eye(len(found))).max(initial=-1) <= ALIKE + 1e-4
    if len(found) == 1:
        np.testing.assert_allclose(found[0], unit_rows(weights @ facets), atol=1e-5)


def test_short_sentences_are_read_with_their_neighbours() -> None:
    says = np.ones(60, dtype=np.bool_)
    says[[1, 5]] = False
    bounds = sentence_bounds(np.array([0, 2, 6, 59]), says)
    assert bounds.tolist() == [0, 6, 60], "the first says one word, and so does the last"
    assert sentence_bounds(np.array([0]), says[:1]).tolist() == [0, 1]


def test_long_parts_are_cut_evenly_and_between_words() -> None:
    bounds, gaps = np.array([0, 6, 60]), np.ones(60, dtype=np.bool_)
    assert cut_long(bounds, gaps, longest=30).tolist() == [0, 6, 33, 60]
    gaps[31:34] = False  # inside a long word
    assert cut_long(bounds, gaps, longest=30).tolist() == [0, 6, 30, 60]


@given(st.integers(1, 300), st.integers(2, 40), st.integers(0, 10_000))
def test_parts_make_a_text_up_and_fit(size: int, longest: int, seed: int) -> None:
    gaps = np.random.default_rng(seed).random(size) < 0.3
    bounds = cut_long(np.array([0, size]), gaps, longest=longest)
    assert bounds[0] == 0 and bounds[-1] == size
    assert 1 <= np.diff(bounds).min() and np.diff(bounds).max() <= longest


@pytest.mark.parametrize("pads", [False, True])
def test_batches_hold_all_texts_within_their_tokens(pads: bool) -> None:
    lengths = np.array([500, *[12] * 200, 90, 7])
    batches = list(length_batches(lengths, max_tokens=600, pads=pads))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        tokens = lengths[batch].max() * len(batch) if pads else lengths[batch].sum()
        assert tokens <= 600 or len(batch) == 1


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_windows_make_up_a_text_within_their_bounds(lengths: list[int]) -> None:
    bounds = np.cumsum([0, *lengths])
    spans = np.unique(np.concatenate([bounds, bounds[:-1] + np.array(lengths) // 2]))
    windows = cut_windows(3, Cut(bounds, spans), longest=40)
    assert np.concatenate([[0], *(window.bounds[1:] for window in windows)]).tolist() == spans.tolist()
    assert all(before.bounds[-1] == after.bounds[0] for before, after in pairwise(windows))
    assert all(1 <= len(window) <= 40 and window.text == 3 for window in windows)
    assert {int(window.bounds[0]) for window in windows} <= set(bounds.tolist())
