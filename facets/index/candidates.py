"""Candidate documents: what a search finds, cut to what may belong to the best, and scored exactly.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions, C candidates,
T facets of all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Rounding a unit vector to float16 changes each component by at most 2**-11 of itself, hence its norm too;
# the rest is room for float32 sums.
HALF_PRECISION_ERROR = 5.0e-4
_SHARPNESS = 4  # of what diversity takes for an answer to a facet of the query
_PASS_FACETS = 1024  # facets of queries compared at a time: bounds the memory of an exhaustive search


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Documents found for every query, best first."""

    # `[Q, C]` int64 row numbers, C >= top_k; -1 where fewer documents were found (always at the end of a line).
    rows: NDArray[np.int64]
    # `[Q, C]` float32, `-inf` where `rows` is -1; each differs from the true score by at most `score_error` of the
    # index.
    scores: NDArray[np.float32]
    # True when every allowed document was compared: then every document that may belong to the top_k is among the
    # candidates, ties at the cut included, given `score_error`.
    exhaustive: bool


def select_candidates(
    rows_QC: NDArray[np.int64], scores_QC: NDArray[np.float32], top_k: int, *, margin: float, exhaustive: bool
) -> Candidates:
    """Keeps, for every query, the documents that may belong to the best top_k.

    Args:
        rows_QC: ``[Q, C]`` int64, -1 for none; the rows of one query differ.
        scores_QC: ``[Q, C]`` float32, ``-inf`` for none.
        top_k: Documents wanted, >= 1.
        margin: Everything within this distance of the top_k-th score stays: twice the error of the scores.
        exhaustive: Passed on.

    Returns:
        Candidates, best first.
    """
    num_queries, width = scores_QC.shape
    if width > top_k:
        kth = np.partition(scores_QC, width - top_k, axis=1)[:, width - top_k]
        kept = (scores_QC >= (kth - np.float32(margin))[:, None]) & np.isfinite(scores_QC)
    else:
        kept = np.isfinite(scores_QC)
    counts = kept.sum(axis=1)
    rows = np.full((num_queries, int(counts.max(initial=0))), -1, dtype=np.int64)
    scores = np.full(rows.shape, -np.inf, dtype=np.float32)
    filled = np.arange(rows.shape[1]) < counts[:, None]
    rows[filled] = rows_QC[kept]
    scores[filled] = scores_QC[kept]
    order = np.argsort(-scores, axis=1, kind="stable")
    return Candidates(
        rows=np.take_along_axis(rows, order, axis=1),
        scores=np.take_along_axis(scores, order, axis=1),
        exhaustive=exhaustive,
    )


def search_in_passes(query_QJD: NDArray[np.float32], search: Callable[[NDArray[np.float32]], Candidates]) -> Candidates:
    """Runs an exhaustive ``search`` on some queries at a time and puts the answers together."""
    per_pass = max(1, _PASS_FACETS // query_QJD.shape[1])
    return join_candidates(
        [search(query_QJD[start : start + per_pass]) for start in range(0, len(query_QJD), per_pass)]
    )


def join_candidates(parts: Sequence[Candidates]) -> Candidates:
    """The answers of exhaustive searches for some queries each, one below another."""
    width = max((part.rows.shape[1] for part in parts), default=0)
    num_queries = sum(len(part.rows) for part in parts)
    rows = np.full((num_queries, width), -1, dtype=np.int64)
    scores = np.full((num_queries, width), -np.inf, dtype=np.float32)
    start = 0
    for part in parts:
        lines = slice(start, start + len(part.rows))
        rows[lines, : part.rows.shape[1]] = part.rows
        scores[lines, : part.rows.shape[1]] = part.scores
        start += len(part.rows)
    return Candidates(rows=rows, scores=scores, exhaustive=True)


@dataclass(frozen=True, slots=True)
class Meetings:
    """How documents answer one query."""

    scores: NDArray[np.float32]  # `[C]` float32 in [-1, 1]: the sum over the query's facets of `shares`, or the largest
    shares: NDArray[np.float32]  # `[C, J]` float32, what each facet of the query adds: its weight times its best cosine
    document_facets: NDArray[np.int64]  # `[C, J]` int64, the facet of the document that it met; of equal ones the first


def meet(
    query_JD: NDArray[np.float32],
    facets_TD: NDArray[np.floating | np.integer],
    starts_C1: NDArray[np.int64],
    *,
    any_suffices: bool = False,
) -> Meetings:
    """Scores documents exactly: ``sum_j w_j max_k cos(q_j, F_k)``, or ``max_j`` of the same.

    Which facets meet is decided in float32; their cosines are computed in float64 and rounded, so equal documents get
    equal scores wherever they stand. A zero facet is none: it is met only where a document has no other, with cosine 0.

    Args:
        query_JD: Weighted facets of one query, ``[J, D]``: the norm of facet j is its weight, and weights add up to 1,
            or the largest is 1 where any facet suffices. A facet of weight 0 is none.
        facets_TD: Facets of the documents as stored, one document after another; norms do not matter.
        starts_C1: Where the facets of each document begin, and T; each has at least one.
        any_suffices: Take the best facet of the query for each document in place of the sum.

    Example:
        >>> query = np.array([[0.75, 0.0], [0.0, 0.25]], dtype=np.float32)
        >>> met = meet(query, np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0, 2]))
        >>> met.scores.tolist(), met.shares.tolist(), met.document_facets.tolist()
        ([0.75], [[0.75, 0.0]], [[0, 0]])
    """
    num_facets = len(query_JD)
    if len(starts_C1) == 1:
        none = np.empty((0, num_facets))
        return Meetings(np.empty(0, dtype=np.float32), none.astype(np.float32), none.astype(np.int64))
    documents = facets_TD.astype(np.float32)
    norms_T = np.sqrt(np.einsum("td,td->t", documents, documents))
    shares_TJ = (documents @ query_JD.astype(np.float32).T) / np.where(norms_T == 0, 1.0, norms_T)[:, None]
    shares_TJ[norms_T == 0] = -np.inf
    counts_C = np.diff(starts_C1)
    is_best_TJ = shares_TJ == np.repeat(np.maximum.reduceat(shares_TJ, starts_C1[:-1], axis=0), counts_C, axis=0)
    places_TJ = np.where(is_best_TJ, np.arange(len(documents))[:, None], len(documents))
    best_CJ = np.minimum.reduceat(places_TJ, starts_C1[:-1], axis=0)
    met_CJD = facets_TD[best_CJ].astype(np.float64)
    norms_CJ = np.sqrt(np.einsum("cjd,cjd->cj", met_CJD, met_CJD))
    shares_CJ = np.einsum("cjd,jd->cj", met_CJD, query_JD.astype(np.float64)) / np.where(norms_CJ == 0, 1.0, norms_CJ)
    met_CJ = best_CJ - starts_C1[:-1, None]
    if any_suffices:
        scores_C = shares_CJ[:, query_JD.any(axis=1)].max(axis=1)
    else:
        scores_C = np.sort(shares_CJ, axis=1).sum(axis=1)  # sorted: the order of facets is no matter
    scores_C = np.clip(scores_C, -1.0, 1.0)
    return Meetings(scores_C.astype(np.float32), shares_CJ.astype(np.float32), met_CJ)


def select_diverse(
    scores_C: NDArray[np.floating],
    shares_CJ: NDArray[np.floating],
    similarities_CC: NDArray[np.floating],
    *,
    diversify: float,
    top_k: int,
) -> NDArray[np.int64]:
    """Chooses documents one by one: the next has the largest ``(1 - diversify) score + diversify novelty``.

    Scores are scaled to [0, 1] over the candidates. What novelty is, in [0, 1], depends on the query:

    - one facet or none: ``1 - max similarity with those chosen``: maximal marginal relevance;
    - several facets: the mean of that and of ``sum_j w_j r_j prod (1 - r_j of those chosen)``, so that results cover
      the facets of the query. ``r_j`` says how well a document answers facet j, scaled to [0, 1] over the candidates
      and raised to the 4th power (cosines of what does not answer are not small), and the weights ``w_j`` are the
      facets' largest shares.

    Args:
        scores_C: What the candidates are ranked by without diversity.
        shares_CJ: What each facet of the query adds to the score of its facets; a facet that adds nothing anywhere
            does not count.
        similarities_CC: Of the candidates with each other, in [0, 1].
        diversify: 0 keeps the order of scores, 1 looks at novelty alone; the first document is the best one anyway.
        top_k: How many.

    Returns:
        Places of the documents, in order; of equal ones the first comes first.

    Example:
        >>> alike = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> select_diverse(np.array([0.9, 0.8, 0.5]), np.ones((3, 1)), alike, diversify=0.5, top_k=2).tolist()
        [0, 2]

    References:
        Carbonell and Goldstein 1998 (maximal marginal relevance); Santos et al. 2010 (coverage of aspects, xQuAD).
    """
    relevance_C = _scaled(scores_C)
    used_J = np.flatnonzero(shares_CJ.max(axis=0, initial=0.0) > 0) if len(shares_CJ) else np.empty(0, dtype=np.int64)
    answers_CJ = _scaled(shares_CJ[:, used_J]) ** _SHARPNESS
    weights_J = shares_CJ[:, used_J].max(axis=0, initial=0.0)
    weights_J = weights_J / (weights_J.sum() or 1.0)
    left_J, nearest_C = np.ones(len(used_J)), np.zeros(len(relevance_C))
    chosen: list[int] = []
    gains_C = relevance_C.astype(np.float64)
    while len(chosen) < min(top_k, len(relevance_C)):
        gains_C[chosen] = -np.inf
        best = int(gains_C.argmax())
        chosen.append(best)
        left_J = left_J * (1 - answers_CJ[best])
        nearest_C = np.maximum(nearest_C, similarities_CC[best])
        novelty_C = 1 - nearest_C
        if len(used_J) > 1:
            novelty_C = (novelty_C + answers_CJ @ (weights_J * left_J)) / 2
        gains_C = (1 - diversify) * relevance_C + diversify * novelty_C
    return np.array(chosen, dtype=np.int64)


def _scaled(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each column to [0, 1]: from the least to the largest; all 1 where these are equal."""
    if not len(values):
        return values.astype(np.float64)
    least, most = values.min(axis=0), values.max(axis=0)
    scaled: NDArray[np.float64] = np.where(
        most > least, (values - least) / np.where(most > least, most - least, 1.0), 1.0
    )
    return scaled
