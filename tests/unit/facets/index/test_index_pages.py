"""Places of an index: nothing of a document is lost or mixed with another's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from facets.index.exact import ExactIndex
from facets.index.pages import first_places, paged


@given(st.lists(st.integers(1, 13), max_size=8), st.integers(1, 5))
def test_places_hold_the_facets_in_order(counts: list[int], num_facets: int) -> None:
    starts = np.cumsum([0, *counts])
    facets = np.arange(1.0, starts[-1] + 1)[:, None]
    rows = np.arange(len(counts)) * 10
    rows_S, places = paged(rows, facets, starts, num_facets=num_facets)
    for row, own in zip(rows.tolist(), np.split(facets[:, 0], starts[1:-1]), strict=False):
        held = places[rows_S == row].ravel()
        assert held[held > 0].tolist() == own.tolist()
        assert len(held) - len(own) < num_facets
    assert np.array_equal(rows_S[first_places(rows_S)], rows_S)


def test_whole_documents_are_read_from_the_exact_index() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 30, 50)
    starts = np.cumsum([0, *counts])
    rows, places = paged(np.arange(50), rng.standard_normal((starts[-1], 8)), starts, num_facets=4)
    index = ExactIndex(num_facets=4, dim=8)
    for start in range(0, 50, 7):
        own = (rows >= start) & (rows < start + 7)
        index.add(rows[own], places[own])
    assert len(index) == 50
    seen: list[int] = []
    while len(index):
        found, facets = index.read(5)
        assert len(found) == len(facets) >= min(5, len(index))
        assert len(found) == np.isin(rows, found).sum(), "all places of each document"
        assert index.remove(found) == len(np.unique(found))
        seen += np.unique(found).tolist()
    assert seen == list(range(50))
