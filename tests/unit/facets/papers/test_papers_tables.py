"""Arrays, lists and mappings that grow while snapshots stay as they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.papers.tables import GrowingArray, GrowingList, LayeredMap


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=20))
def test_arrays_and_lists_grow_and_snapshots_stay(parts: list[list[int]]) -> None:
    array, items = GrowingArray(np.array([7])), GrowingList([7])
    expected = [7]
    snapshots = []
    for part in parts:
        rows, prefix = array.extended(len(expected), np.array(part, dtype=int)), items.extended(len(expected), part)
        expected = expected + part
        snapshots.append((expected, rows, prefix))
    for wanted, rows, prefix in snapshots:
        assert rows.tolist() == list(prefix) == prefix[:] == wanted
        assert (len(prefix), prefix[-1], prefix[0]) == (len(wanted), wanted[-1], 7)
        with pytest.raises(IndexError):
            prefix[len(wanted)]


def test_rows_of_a_change_that_failed_are_written_over() -> None:
    array, items = GrowingArray(np.array([1])), GrowingList("a")
    array.extended(1, np.array([2]))
    items.extended(1, "b")
    assert array.extended(1, np.array([3])).tolist() == [1, 3]
    assert list(items.extended(1, "c")) == ["a", "c"]


@given(st.lists(st.dictionaries(st.integers(0, 999), st.integers(), max_size=300), max_size=6))
def test_a_layered_map_is_the_dictionary_it_stands_for(changes: list[dict[int, int]]) -> None:
    layered, expected = LayeredMap({1: 1, 2: 2}), {1: 1, 2: 2}
    snapshots = []
    for change in changes:
        layered, expected = layered.updated(change), {**expected, **change}
        snapshots.append((layered, expected))
    for mapping, wanted in snapshots:
        assert dict(mapping) == wanted
        assert len(mapping) == len(wanted)
        assert 1000 not in mapping
        assert mapping.get(1000) is None
