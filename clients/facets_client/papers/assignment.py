"""Assigns reviewers to papers under loads and conflicts: the exact optimum, as a linear program.

Shape letters: N papers, R reviewers, P pairs of paper and reviewer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets_client.core.extras import require_extra
from facets_client.generated.types import Author, NewAuthor, Paper

_FIRST_PAIRS = 20  # best reviewers of a paper that are tried first
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Assignment:
    """One reviewer of one paper."""

    paper: str  # id of the paper
    reviewer: str  # id of the reviewer
    score: float  # of the pair, as given


def assign(
    papers: Sequence[str],
    reviewers: Sequence[str],
    scores_NR: NDArray[np.float64],
    *,
    reviewers_per_paper: int,
    max_papers: int,
    min_papers: int = 0,
) -> list[Assignment]:
    """The assignment with the greatest sum of scores, by paper in the order given, best reviewers first.

    ``scores_NR``: score of each pair, ``-inf`` for a conflict. Each paper gets exactly ``reviewers_per_paper``
    reviewers, each reviewer ``min_papers`` to ``max_papers`` papers. 1,000 papers and 500 reviewers take seconds.

    Raises:
        ValueError: No assignment has these loads; the message says why.
        ImportError: scipy is missing, the extra "assign".

    Example:
        >>> scores = np.array([[0.9, 0.8], [0.7, 0.1]])
        >>> [(pair.paper, pair.reviewer) for pair in assign(["p", "q"], ["A", "B"], scores,
        ...                                                 reviewers_per_paper=1, max_papers=1)]
        [('p', 'B'), ('q', 'A')]
    """
    if scores_NR.shape != (len(papers), len(reviewers)):
        raise ValueError(f"expected scores of shape {len(papers), len(reviewers)}, got {scores_NR.shape}")
    allowed_NR = np.isfinite(scores_NR)
    loads = reviewers_per_paper, min_papers, max_papers
    check_loads(*scores_NR.shape, *loads)
    is_chosen_NR, unfilled_N, missing_R = _solved(scores_NR, allowed_NR, *loads)
    for names, lacks, what in ((papers, unfilled_N, "reviewers"), (reviewers, missing_R, "papers")):
        if lacks.any():
            some = ", ".join(repr(names[place]) for place in np.flatnonzero(lacks)[:3])
            raise ValueError(
                f"conflicts and loads leave {lacks.sum():,} of the places without {what}, among them {some}"
            )
    return [
        Assignment(papers[n], reviewers[r], float(scores_NR[n, r]))
        for n in range(len(papers))
        for r in np.argsort(-scores_NR[n], kind="stable").tolist()
        if is_chosen_NR[n, r]
    ]


def conflicts_of(paper: Paper, reviewers: Iterable[NewAuthor]) -> list[str]:
    """Ids (else names) of the reviewers who wrote the paper, or another paper with one of its authors."""
    authors = _labels(paper.authors)
    return [
        reviewer.author.id or reviewer.author.name
        for reviewer in reviewers
        if authors & _labels([reviewer.author, *(author for own in reviewer.papers for author in own.authors)])
    ]


def _labels(authors: Iterable[Author]) -> set[str]:
    """Ids, and names without regard to case."""
    return {label for author in authors for label in (author.id, author.name.casefold()) if label}


def check_loads(num_papers: int, num_reviewers: int, per_paper: int, least: int, most: int) -> None:
    """Raises ValueError when counting places alone shows that no assignment exists."""
    if per_paper < 1 or not 0 <= least <= most:
        raise ValueError(
            "expected at least 1 reviewer per paper and 0 <= min_papers <= max_papers, "
            f"got {per_paper} reviewers per paper, min_papers {least}, max_papers {most}"
        )
    num_places = num_papers * per_paper
    needed = f"{num_papers:,} papers x {per_paper} reviewers = {num_places:,} places"
    if per_paper > num_reviewers:
        raise ValueError(f"{per_paper} reviewers per paper are wanted, but there are only {num_reviewers:,} reviewers")
    if num_places > num_reviewers * most:
        raise ValueError(f"{needed}, but {num_reviewers:,} reviewers x at most {most} = {num_reviewers * most:,}")
    if num_places < num_reviewers * least:
        raise ValueError(f"{needed}, but {num_reviewers:,} reviewers x at least {least} = {num_reviewers * least:,}")


def _solved(
    scores_NR: NDArray[np.float64], allowed_NR: NDArray[np.bool_], per_paper: int, least: int, most: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """The chosen pairs ``[N, R]``, and how many reviewers each paper, and papers each reviewer, lacks.

    A linear program over pairs, whose corners are whole numbers. It starts with the best few pairs and adds those
    whose dual prices say that they could improve the sum, until there are none: exact, and much faster than all pairs.
    """
    require_extra("assign", "scipy")
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, eye_array, hstack, vstack

    num_papers, num_reviewers = scores_NR.shape
    spread = float(np.ptp(scores_NR[allowed_NR])) if allowed_NR.any() else 0.0
    lack_cost = (1 + spread) * (num_papers + num_reviewers)  # more than any other change of the pairs can gain
    # One variable a pair, then one a paper and one a reviewer for what they lack.
    lacks_N, lacks_R = eye_array(num_papers), eye_array(num_reviewers)
    nothing, num_lacks = csr_matrix((num_reviewers, num_papers)), num_papers + num_reviewers
    num_tried = min(per_paper + _FIRST_PAIRS, num_reviewers)
    tried_NR = allowed_NR & (scores_NR >= -np.partition(-scores_NR, num_tried - 1, axis=1)[:, [num_tried - 1]])
    while True:
        papers_P, reviewers_P = np.nonzero(tried_NR)
        pairs_P, ones_P = np.arange(len(papers_P)), np.ones(len(papers_P))
        by_paper = csr_matrix((ones_P, (papers_P, pairs_P)), shape=(num_papers, len(pairs_P)))
        by_reviewer = csr_matrix((ones_P, (reviewers_P, pairs_P)), shape=(num_reviewers, len(pairs_P)))
        solved = linprog(
            np.r_[-scores_NR[tried_NR], np.full(num_lacks, lack_cost)],
            A_eq=hstack([by_paper, lacks_N, nothing.T]),
            b_eq=np.full(num_papers, per_paper),
            A_ub=vstack([hstack([by_reviewer, nothing, 0 * lacks_R]), hstack([-by_reviewer, nothing, -lacks_R])]),
            b_ub=np.repeat([most, -least], num_reviewers),
            bounds=np.repeat([[0, 1], [0, None]], [len(pairs_P), num_lacks], axis=0),
            method="highs-ds",  # ends in a corner
        )
        high_R, low_R = solved.ineqlin.marginals.reshape(2, -1)
        gains_NR = scores_NR + solved.eqlin.marginals[:, None] + high_R - low_R
        better_NR = allowed_NR & ~tried_NR & (gains_NR > _TOLERANCE)
        if not better_NR.any():
            break
        tried_NR |= better_NR
    pairs_P, unfilled_N, missing_R = np.split(np.rint(solved.x).astype(np.int64), [len(pairs_P), -num_reviewers])
    tried_NR[tried_NR] = pairs_P > 0
    return tried_NR, unfilled_N, missing_R
