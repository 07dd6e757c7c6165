"""One score of two: how well the facets of a document answer, and how well its words do.

Shape letter: C candidates.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FACETS_SHARE", "FACETS_SHARES", "fuse", "share_of"]

# Both tuned on squad, covid-qa, bioasq and quora together, see docs/search.md
FACETS_SHARE = 0.2  # of word spaces
FACETS_SHARES = {"all-MiniLM-L6-v2": 0.5}
"""Share of the facets by the space they lie in, where it is another one: sentence vectors lie where questions lie."""


def share_of(space: str) -> float:
    """Share of the facets in the hybrid score of a collection of this space."""
    return FACETS_SHARES.get(space, FACETS_SHARE)


def fuse(
    facet_scores_C: NDArray[np.float32], lexical_scores_C: NDArray[np.float32], *, facets_share: float = FACETS_SHARE
) -> NDArray[np.float32]:
    """A convex sum of both scores, each scaled over the candidates of one query.

    Cosines go from the least (0) to the largest (1) among the candidates; BM25 from none (0) to the largest (1).
    Without a word in common with any candidate, facets alone decide.

    Returns:
        ``[C]`` in [0, 1].

    Example:
        >>> fuse(np.array([0.2, 0.8], np.float32), np.array([3.0, 0.0], np.float32), facets_share=0.25).tolist()
        [0.75, 0.25]
    """
    if not len(facet_scores_C):
        return np.empty(0, dtype=np.float32)
    least, most = float(facet_scores_C.min()), float(facet_scores_C.max())
    facets_C = (facet_scores_C - least) / (most - least) if most > least else np.ones_like(facet_scores_C)
    lexical_C = lexical_scores_C / max(float(lexical_scores_C.max()), float(np.finfo(np.float32).tiny))
    return (facets_share * facets_C + (1 - facets_share) * lexical_C).astype(np.float32)
