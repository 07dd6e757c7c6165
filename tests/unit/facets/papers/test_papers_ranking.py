"""The best of many scores."""

import numpy as np

from facets.papers.ranking import best_columns


def test_ties_fall_by_rank() -> None:
    scores = np.array([[1.0, 2.0, 2.0, 2.0, 0.0]], dtype=np.float32)
    columns, best = best_columns(scores, np.array([0, 4, 2, 3, 1]), 2)
    assert columns.tolist() == [[2, 3]]
    assert best.tolist() == [[2.0, 2.0]]
