"""Results that differ: documents re-ranked so that each adds what those above it lack.

Shape letters: C candidates, J facets of a query, T facets of all documents, D dimensions.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["diversify", "similarities"]

_SHARPNESS = 4
_BLOCK_FACETS = 1024  # compared with all others at a time: bounds the memory


def diversify(
    scores_C: NDArray[np.floating],
    shares_CJ: NDArray[np.floating],
    similarities_CC: NDArray[np.floating],
    *,
    strength: float,
    top_k: int,
) -> NDArray[np.int64]:
    """Chooses documents one by one: the next has the largest ``(1 - strength) score + strength novelty``.

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
        strength: 0 keeps the order of scores, 1 looks at novelty alone; the first document is the best one anyway.
        top_k: How many.

    Returns:
        Places of the documents, in order; of equal ones the first comes first.

    Example:
        >>> alike = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> diversify(np.array([0.9, 0.8, 0.5]), np.ones((3, 1)), alike, strength=0.5, top_k=2).tolist()
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
        gains_C = (1 - strength) * relevance_C + strength * novelty_C
    return np.array(chosen, dtype=np.int64)


def similarities(facets_TD: NDArray[np.floating], starts_C1: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much of one document another one holds too, ``[C, C]`` in [0, 1], symmetric, 1 for equal ones.

    The mean over the facets of both of the best cosine that the other one has for them; zero facets are none.

    Args:
        facets_TD: Facets of the documents, one document after another; norms do not matter.
        starts_C1: Where the facets of each document begin, and T; each has at least one.
    """
    facets = facets_TD.astype(np.float32)
    norms_T = np.linalg.norm(facets, axis=1)
    units = facets / np.where(norms_T > 0, norms_T, 1.0)[:, None]
    # [T, T] -> the best facet of each document for every facet, [T, C]; zero facets of others have cosine 0
    best_TC = np.empty((len(units), len(starts_C1) - 1), dtype=np.float32)
    for start in range(0, len(units), _BLOCK_FACETS):
        cosines = units[start : start + _BLOCK_FACETS] @ units.T
        best_TC[start : start + _BLOCK_FACETS] = np.maximum.reduceat(cosines, starts_C1[:-1], axis=1)
    best_CC = np.add.reduceat(np.maximum(best_TC, 0.0), starts_C1[:-1], axis=0)
    counts_C = np.add.reduceat((norms_T > 0).astype(np.int64), starts_C1[:-1])
    both = np.maximum(counts_C[:, None] + counts_C, 1)
    return np.clip(((best_CC + best_CC.T) / both).astype(np.float64), 0.0, 1.0)


def _scaled(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each column to [0, 1]: from the least to the largest; all 1 where these are equal."""
    if not len(values):
        return values.astype(np.float64)
    least, most = values.min(axis=0), values.max(axis=0)
    scaled: NDArray[np.float64] = np.where(
        most > least, (values - least) / np.where(most > least, most - least, 1.0), 1.0
    )
    return scaled
