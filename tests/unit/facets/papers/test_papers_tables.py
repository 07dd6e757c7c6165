"""Arrays, lists and mappings that grow while snapshots stay as they are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from facets.papers.tables import GrowingArrays, LayeredMap, objects


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=20))
def test_arrays_grow_and_snapshots_stay(parts: list[list[int]]) -> None:
    arrays = GrowingArrays(numbers=np.array([7]), texts=objects(["7"]))
    expected = [7]
    snapshots = []
    for part in parts:
        rows = arrays.extended(len(expected), numbers=np.array(part, dtype=int), texts=objects(list(map(str, part))))
        expected = expected + part
        snapshots.append((expected, rows))
    for wanted, rows in snapshots:
        assert rows["numbers"].tolist() == wanted
        assert rows["texts"].tolist() == list(map(str, wanted))


def test_rows_of_a_change_that_failed_are_written_over() -> None:
    arrays = GrowingArrays(numbers=np.array([1]))
    arrays.extended(1, numbers=np.array([2]))
    assert arrays.extended(1, numbers=np.array([3]))["numbers"].tolist() == [1, 3]


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
