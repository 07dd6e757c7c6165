"""One score of two: how well the facets of a document answer, and how well its words do.

Shape letter: C candidates.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FACETS_SHARE", "FACETS_SHARES", "fuse", "share_of"]

# Both tuned on squad, covid-qa, bioasq and quora together, see docs/use/search.md
FACETS_SHARE = 0.2  # of word spaces
FACETS_SHARES = {"all-MiniLM-L6-v2": 0.5}
"""Share of the facets by the space they lie in, where it is another one: sentence vectors lie where questions lie."""


def share_of(space: str) -> float:
    """Share of the facets in the hybrid score of a collection of this space."""
    return FACETS_SHARES.get(space, FACETS_SHARE)


def fuse(
    facet_scores_C: NDArray[np.float32],
    lexical_scores_C: NDArray[np.float32],
    *,
    most_lexical: float,
    facets_share: float = FACETS_SHARE,
) -> NDArray[np.float32]:
    """A convex sum of the facets' score as it is and of BM25 as a share of what no document can exceed.

    Nothing is scaled over the candidates, so that scores of one collection can be compared across queries, and one
    strong document does not push the words of the others aside. Without a known word facets alone decide.

    Args:
        facet_scores_C: In [-1, 1].
        lexical_scores_C: 0 or more.
        most_lexical: The bound of BM25 for this query; 0 where it has no known word.
        facets_share: Of the facets, in [0, 1].

    Returns:
        ``[C]`` in [-1, 1].

    Example:
        >>> both = np.array([0.25, 0.75], np.float32), np.array([3.0, 0.0], np.float32)
        >>> fuse(*both, most_lexical=4.0, facets_share=0.5).tolist()
        [0.5, 0.375]

    References:
        Bruch, Gai and Ingber 2023, "An analysis of fusion functions for hybrid retrieval" (theoretical bounds).
    """
    lexical_C = lexical_scores_C / most_lexical if most_lexical > 0 else np.zeros_like(lexical_scores_C)
    return np.asarray(facets_share * facet_scores_C + (1 - facets_share) * lexical_C, dtype=np.float32)
