"""What is told of vectors: duplicates, hubs, rank; and of queries: whether facets pay."""

import numpy as np
import pytest

from facets.diagnose import describe
from facets.errors import InvalidInputError


def units(generator, *shape):
    rows = generator.normal(size=shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def neighbours_one_by_one(rows, num=10):
    """Lists of the nearest others and who finds itself: slow and obvious."""
    scores = rows @ rows.T
    lists, found = np.zeros(len(rows), dtype=int), 0
    for place, line in enumerate(scores):
        found += line[place] >= np.delete(line, place).max()
        others = [other for other in np.argsort(-line, kind="stable") if other != place][:num]
        lists[others] += 1
    return found / len(rows), (lists == 0).mean(), lists.max()


def test_neighbours_agree_with_counting_one_by_one():
    generator = np.random.default_rng(1)
    rows = units(generator, 120, 8) * generator.uniform(0.2, 3.0, size=(120, 1)).astype(np.float32)
    report = describe(rows)
    found, unreached, hub = neighbours_one_by_one(rows)
    assert (report.dot.self_first, report.dot.unreached) == pytest.approx((found, unreached))
    assert report.dot.largest_hub == hub
    assert report.cosine.self_first == 1.0
    assert any("cosine" in sentence for sentence in report.findings)


def test_duplicates_are_counted_between_owners_and_zeros_left_out():
    rows = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 0.0], [0.5, 0.5], [1.0, 0.0]], dtype=np.float32)
    report = describe(rows)
    assert (report.num_zero, report.num_duplicates, report.largest_duplicate) == (1, 2, 3)
    together = describe(rows, owners_N=np.array([0, 0, 1, 2, 3]))
    assert (together.num_owners, together.num_duplicates, together.largest_duplicate) == (4, 1, 2)


def test_rank_is_that_of_the_directions_in_use():
    generator = np.random.default_rng(2)
    flat = generator.normal(size=(400, 3)) @ generator.normal(size=(3, 12))
    report = describe(flat)
    assert report.epsilon_rank == 3
    assert 2.0 < report.effective_rank <= 3.0


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.zeros((0, 2)), np.array([[1.0, np.inf]])])
def test_what_nothing_can_be_told_of_is_refused(rows):
    with pytest.raises(InvalidInputError, match="rows"):
        describe(rows)


def test_one_row_is_described():
    report = describe(np.ones((1, 4)))
    assert (report.dot.self_first, report.dot.largest_hub) == (1.0, 0)
