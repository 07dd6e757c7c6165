"""Statistics of vectors: duplicates, hubs, rank."""

import numpy as np
import pytest

from facets.diagnose import describe
from facets.errors import InvalidInputError


def neighbours_one_by_one(rows, num=10):
    """Share that finds itself, share in no list of the nearest others, and the longest list: slow and obvious."""
    scores = rows @ rows.T
    lists, found = np.zeros(len(rows), dtype=int), 0
    for place, line in enumerate(scores):
        found += line[place] >= np.delete(line, place).max()
        others = [other for other in np.argsort(-line, kind="stable") if other != place][:num]
        lists[others] += 1
    return found / len(rows), (lists == 0).mean(), lists.max()


def test_neighbours_agree_with_counting_one_by_one():
    rows = np.random.default_rng(1).normal(size=(120, 8)).astype(np.float32)
    report = describe(rows, owners_N=np.arange(120))
    found, unreached, hub = neighbours_one_by_one(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert (report.cosine.self_first, report.cosine.unreached) == pytest.approx((found, unreached))
    assert report.cosine.largest_hub == hub
    assert report.findings == ("no problems found",)


def test_duplicates_are_counted_between_owners_and_zeros_left_out():
    rows = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 0.0], [0.6, 0.8], [1.0, 0.0]], dtype=np.float32)
    report = describe(rows, owners_N=np.arange(5))
    assert report.num_duplicates == 2
    assert "duplicates" in report.findings[0]
    together = describe(rows, owners_N=np.array([0, 0, 1, 2, 3]))
    assert together.num_duplicates == 1


def test_rank_is_that_of_the_directions_in_use():
    generator = np.random.default_rng(2)
    report = describe(generator.normal(size=(400, 3)) @ generator.normal(size=(3, 12)), owners_N=np.arange(400))
    assert 2.0 < report.effective_rank <= 3.0


def test_zeros_only_are_rejected():
    with pytest.raises(InvalidInputError, match="rows"):
        describe(np.zeros((3, 2)), owners_N=np.arange(3))


def test_one_row_is_described():
    report = describe(np.ones((1, 4)), owners_N=np.arange(1))
    assert (report.cosine.self_first, report.cosine.largest_hub) == (1.0, 0)
