"""Assigning reviewers: the exact optimum, loads, conflicts, and why there is no assignment."""

from itertools import product

import numpy as np
import pytest
from facets_client import Author, NewAuthor, Paper
from facets_client.papers.assignment import assign, conflicts_of
from hypothesis import given, settings
from hypothesis import strategies as st

optimize = pytest.importorskip("scipy.optimize", reason="the extra assign brings it")

PAPERS, REVIEWERS = ["p", "q", "r"], ["A", "B", "C"]


def best_sum(scores, per_paper, least, most):
    """The greatest sum of all assignments, by trying each; None if there is none."""
    sums = []
    for bits in product([0, 1], repeat=scores.size):
        chosen = np.array(bits, dtype=bool).reshape(scores.shape)
        loads = chosen.sum(axis=0)
        if (chosen.sum(axis=1) == per_paper).all() and (loads >= least).all() and (loads <= most).all():
            sums.append(scores[chosen].sum())
    return max((total for total in sums if np.isfinite(total)), default=None)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, -np.inf]), min_size=9, max_size=9),
    st.integers(1, 2),
    st.integers(0, 1),
    st.integers(1, 3),
)
def test_the_sum_is_the_best_of_all_assignments(values, per_paper, least, most):
    scores = np.array(values).reshape(3, 3)
    expected = best_sum(scores, per_paper, least, most)
    loads = {"reviewers_per_paper": per_paper, "min_papers": least, "max_papers": most}
    if expected is None:
        with pytest.raises(ValueError, match="places"):
            assign(PAPERS, REVIEWERS, scores, **loads)
        return
    pairs = assign(PAPERS, REVIEWERS, scores, **loads)
    assert sum(pair.score for pair in pairs) == pytest.approx(expected)
    assert [pair.paper for pair in pairs] == [paper for paper in PAPERS for _ in range(per_paper)]
    counts = [sum(pair.reviewer == reviewer for pair in pairs) for reviewer in REVIEWERS]
    assert min(counts) >= least and max(counts) <= most


def test_papers_that_want_the_same_reviewers_share_all_of_them():
    scores = np.random.default_rng(0).random((40, 60)) / 10 + np.linspace(0, 1, 60)
    pairs = assign([*map(str, range(40))], [*map(str, range(60))], scores, reviewers_per_paper=1, max_papers=1)
    assert sum(pair.score for pair in pairs) == pytest.approx(scores[optimize.linear_sum_assignment(-scores)].sum())


@pytest.mark.parametrize(
    ("scores", "loads", "message"),
    [
        (np.ones((40, 30)), (3, 3, 0), r"40 papers x 3 reviewers = 120 places, but 30 reviewers x at most 3 = 90"),
        (np.ones((2, 3)), (1, 3, 1), r"2 papers x 1 reviewers = 2 places, but 3 reviewers x at least 1 = 3"),
        (np.ones((2, 2)), (3, 9, 0), "only 2 reviewers"),
        (np.ones((2, 2)), (1, 1, 2), "min_papers <= max_papers"),
        (np.array([[1, -np.inf], [1, -np.inf]]), (1, 1, 0), "leave 1 of the places without reviewers, among them '"),
    ],
)
def test_loads_that_cannot_be_met_are_explained(scores, loads, message):
    papers, reviewers = ([f"{kind}{i}" for i in range(n)] for kind, n in zip("pr", scores.shape, strict=True))
    per_paper, most, least = loads
    with pytest.raises(ValueError, match=message):
        assign(papers, reviewers, scores, reviewers_per_paper=per_paper, max_papers=most, min_papers=least)


def test_authors_and_coauthors_are_conflicts():
    paper = Paper("t", authors=(Author("Ann Lee"), Author("Bo", "0000-1")))
    reviewers = [
        NewAuthor(Author("ann lee", "r1"), [Paper("x")]),
        NewAuthor(Author("Cy", "r2"), [Paper("x", authors=(Author("Bo B.", "0000-1"), Author("Cy")))]),
        NewAuthor(Author("Di"), [Paper("x", authors=(Author("Di"), Author("Ed")))]),
    ]
    assert conflicts_of(paper, reviewers) == ["r1", "r2"]
