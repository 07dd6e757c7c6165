"""Candidate documents: selection of those that may belong to the best, exact scores, and diverse results.

Shape letters: N documents, Q queries, J facets of a query, K facets of a document, D dimensions, C candidates,
T facets of all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Doubles, Floats, Ints, Vectors, products

# Rounding a unit vector to float16 changes each component by at most 2**-11 of itself; the rest covers float32 sums.
HALF_PRECISION_ERROR = 5.0e-4
_ANSWER_EXPONENT = 4  # even a document that does not answer a facet has a cosine well above 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Candidate documents for every query, best first."""

    rows: Ints  # `[Q, C]`; -1 at the end if a query has fewer candidates
    scores: Floats  # `[Q, C]`, exact up to the `score_error` of the index; `-inf` where `rows` is -1
    exhaustive: bool  # whether every allowed document was compared, so that none of the best is missing


def select_candidates(
    rows_QC: Ints, scores_QC: Floats, num_candidates: int, *, margin: float, exhaustive: bool
) -> Candidates:
    """Keeps, for every query, the documents that may belong to the best ``num_candidates`` (>= 1).

    ``rows_QC``: different rows for one query; -1: none. ``scores_QC``: ``-inf``: none. ``margin``: documents within
    this distance of the num_candidates-th score stay: twice the error of the scores.
    """
    order = np.argsort(-scores_QC, axis=1, kind="stable")
    rows_QC, scores_QC = np.take_along_axis(rows_QC, order, axis=1), np.take_along_axis(scores_QC, order, axis=1)
    is_kept_QC = np.isfinite(scores_QC)
    if scores_QC.shape[1] > num_candidates:
        is_kept_QC &= scores_QC >= scores_QC[:, num_candidates - 1, None] - np.float32(margin)
    width = int(is_kept_QC.sum(axis=1).max(initial=0))
    rows_QC = np.where(is_kept_QC, rows_QC, -1)[:, :width]
    scores_QC = np.where(is_kept_QC, scores_QC, np.float32(-np.inf))[:, :width]
    return Candidates(rows=rows_QC, scores=scores_QC, exhaustive=exhaustive)


def padded(found: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Rows and scores of each query as arrays ``[Q, C]``, filled with -1 and ``-inf``."""
    rows_QC = np.full((len(found), max((len(rows) for rows, _ in found), default=0)), -1, dtype=np.int64)
    scores_QC = np.full(rows_QC.shape, -np.inf, dtype=np.float32)
    for query, (rows, scores) in enumerate(found):
        rows_QC[query, : len(rows)], scores_QC[query, : len(rows)] = rows, scores
    return rows_QC, scores_QC


class Meetings(NamedTuple):
    """Scores of documents for the facets of one query."""

    scores: Floats  # `[C]` in [-1, 1]: the sum of `shares`, or their maximum
    shares: Floats  # `[C, J]`, weight of each query facet times its best cosine
    document_facets: Ints  # `[C, J]`, the document facet with that cosine; in a tie, the first one
    whole: Floats  # `[C]` in [-1, 1]: scores of documents that had only the mean of their facets


def meet(
    query_JD: Floats, facets_TD: NDArray[np.floating | np.integer], starts_C1: Ints, *, any_suffices: bool = False
) -> Meetings:
    """Scores documents exactly: ``sum_j w_j max_k cos(q_j, F_k)``, or ``max_j`` instead of the sum.

    The best facets are chosen in float32; their cosines are computed in float64 and rounded, so that equal documents
    get equal scores. A zero facet counts only if a document has no other one, with cosine 0.

    A document as a whole is the mean of its facets: late chunking gives each of them a share of the whole text, so the
    mean ranks as the vector of the whole text does.

    ``query_JD``: facets of one query with their weights as norms, which add up to 1; with ``any_suffices``, which takes
    the maximum instead of the sum, the largest is 1. ``facets_TD``: facets of the documents, one document after
    another; norms are ignored. ``starts_C1``: offset of each document's facets; each has at least one.
    """
    num_facets = len(query_JD)
    if len(starts_C1) == 1 or not num_facets:
        none = np.zeros((len(starts_C1) - 1, num_facets))
        zeros = np.zeros(len(none), dtype=np.float32)
        return Meetings(zeros, none.astype(np.float32), none.astype(np.int64), zeros)
    documents = facets_TD.astype(np.float32)
    norms_T = np.sqrt(np.einsum("td,td->t", documents, documents))
    documents /= np.where(norms_T == 0, 1.0, norms_T)[:, None]
    shares_TJ = products(documents, query_JD.astype(np.float32))
    shares_TJ[norms_T == 0] = -np.inf
    counts_C = np.diff(starts_C1)
    is_best_TJ = shares_TJ == np.repeat(np.maximum.reduceat(shares_TJ, starts_C1[:-1], axis=0), counts_C, axis=0)
    places_TJ = np.where(is_best_TJ, np.arange(len(documents))[:, None], len(documents))
    best_CJ = np.minimum.reduceat(places_TJ, starts_C1[:-1], axis=0)
    shares_CJ = _shares(facets_TD[best_CJ], query_JD)
    whole_CD = np.add.reduceat(documents, starts_C1[:-1], axis=0)
    whole_CJ = _shares(whole_CD[:, None], query_JD)
    if any_suffices and query_JD.any():
        used_J = np.flatnonzero(query_JD.any(axis=1))
        scores_C, whole_C = (shares[:, used_J].max(axis=1) for shares in (shares_CJ, whole_CJ))
    else:  # sorted, so that the order of facets does not matter
        scores_C, whole_C = (np.sort(shares, axis=1).sum(axis=1) for shares in (shares_CJ, whole_CJ))
    scores_C, whole_C = (np.clip(scores, -1.0, 1.0).astype(np.float32) for scores in (scores_C, whole_C))
    return Meetings(scores_C, shares_CJ.astype(np.float32), best_CJ - starts_C1[:-1, None], whole_C)


def _shares(met_CJD: NDArray[np.floating | np.integer], query_JD: Floats) -> Doubles:
    """What vectors of documents add to the score, ``[C, J]``: cosines with the query's facets times their weights.

    ``met_CJD``: the vector that each facet of the query meets, or ``[C, 1, D]`` if that is the same for all.
    """
    met_CJD = met_CJD.astype(np.float64)
    norms_CJ = np.sqrt(np.einsum("cjd,cjd->cj", met_CJD, met_CJD))
    shares_CJ: Doubles = np.einsum("cjd,jd->cj", met_CJD, query_JD.astype(np.float64))
    return shares_CJ / np.where(norms_CJ == 0, 1.0, norms_CJ)


def select_diverse(
    scores_C: Vectors, shares_CJ: Vectors, similarities: Callable[[int], Vectors], *, diversify: float, top_k: int
) -> Ints:
    """Chooses documents one by one: the next has the largest ``(1 - diversify) score + diversify novelty``.

    Scores are scaled to [0, 1] over the candidates. Novelty, in [0, 1], depends on the query:

    - up to one facet: ``1 - max similarity with those chosen`` (MMR, Carbonell and Goldstein 1998);
    - several facets: the mean of that and ``sum_j w_j r_j prod (1 - r_j of those chosen)``, so that results cover the
      facets of the query (xQuAD, Santos et al. 2010). ``r_j`` is how well a document answers facet j: its share, scaled
      to [0, 1] over the candidates and raised to the 4th power. The weights ``w_j`` are the largest shares.

    ``shares_CJ``: what each query facet adds to the score; facets that add nothing are ignored. ``similarities``:
    ``[C]`` of one candidate to all, in [0, 1]. ``diversify``: 0 keeps the order of scores, 1 uses novelty only; the
    first document is always the best one. Returns the positions of ``top_k`` documents, in order.

    Example:
        >>> alike = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).__getitem__
        >>> select_diverse(np.array([0.9, 0.8, 0.5]), np.ones((3, 1)), alike, diversify=0.5, top_k=2).tolist()
        [0, 2]
    """
    relevance_C = _scaled(scores_C)
    used_J = np.flatnonzero(shares_CJ.max(axis=0, initial=0.0) > 0) if len(shares_CJ) else np.empty(0, dtype=np.int64)
    answers_CJ = _scaled(shares_CJ[:, used_J]) ** _ANSWER_EXPONENT
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
        nearest_C = np.maximum(nearest_C, similarities(best))
        novelty_C = 1 - nearest_C
        if len(used_J) > 1:
            novelty_C = (novelty_C + answers_CJ @ (weights_J * left_J)) / 2
        gains_C = (1 - diversify) * relevance_C + diversify * novelty_C
    return np.array(chosen, dtype=np.int64)


def _scaled(values: Vectors) -> Doubles:
    """Scales each column to [0, 1]; all 1 if its values are equal."""
    if not len(values):
        return values.astype(np.float64)
    least, most = values.min(axis=0), values.max(axis=0)
    scaled: Doubles = np.where(most > least, (values - least) / np.where(most > least, most - least, 1.0), 1.0)
    return scaled
