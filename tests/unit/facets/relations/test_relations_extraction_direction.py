"""At most so many relations of two entities, of both directions together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from facets.relations.extraction import best_of_pairs


def test_what_is_not_accepted_never_stays() -> None:
    accepted = np.array([[False, True]])
    probabilities = np.array([[0.9, 0.1]], dtype=np.float32)
    assert best_of_pairs(accepted, probabilities, np.array([0]), max_per_pair=5).tolist() == [[False, True]]
    assert not best_of_pairs(np.zeros((0, 2), dtype=np.bool_), np.zeros((0, 2)), np.zeros(0, int), max_per_pair=1).size


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.25, 0.5, 1.0])), min_size=12, max_size=12), st.integers(1, 4)
)
def test_the_fast_way_is_that_of_sorting_each_pair(cells: list[tuple[bool, float]], most: int) -> None:
    accepted = np.array([cell[0] for cell in cells]).reshape(4, 3)
    probabilities = np.array([cell[1] for cell in cells], dtype=np.float32).reshape(4, 3)
    partners = np.array([1, 0, 3, 2])
    expected = np.zeros_like(accepted)
    for rows in ([0, 1], [2, 3]):
        candidates = [(-probabilities[m, r], m, r) for m in rows for r in range(3) if accepted[m, r]]
        for _, m, r in sorted(candidates)[:most]:
            expected[m, r] = True
    assert best_of_pairs(accepted, probabilities, partners, max_per_pair=most).tolist() == expected.tolist()
