"""Confidence: how probable it is that a hit is relevant, comparable across queries.

The score of a search orders the hits of one query. Confidence is a logistic curve over what spoke for a hit; its
weights belong to a model and lie in ``relevance.json`` of the model's folder::

    {"format": 1, "revision": "0123456789ab", "source": "judgements it was fitted on",
     "modes": {"hybrid": {"intercept": -5.6, "cosine": 7.2, "lead": 10.2, "behind": -22.0}, "facets": ...}}

Shape letters: C candidates, S signals of each, F features.
"""

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from facets.documents.types import SearchMode
from facets.errors import CheckpointError
from facets.storage import LogisticCurves

SIGNALS = ("cosine", "coverage", "saturation")
"""What speaks for one hit.

- ``cosine``: the facets' score of the document; 0 in mode lexical.
- ``coverage``: what share of the query's words the document has, each by its rarity in the collection, words that no
  document has being the rarest; in [0, 1]. Stop words are no words here: 0 for a query of them alone.
- ``saturation``: BM25 of the document as a share of the most that any document could have; in [0, 1].

Without lexical search (mode facets) the last two are 0.
"""
FEATURES = (*SIGNALS, "size", "lead", "behind")
"""What a curve weighs: of a query all but the last, so that confidence falls with the score and never with the rank.

- ``cosine``, ``coverage``, ``saturation``: those of the best candidate.
- ``size``: logarithm of the number of documents that were searched, those that a filter leaves; 1,000 at most, as none
  was fitted on more. The best of many is like the query by chance, the best of few is not.
- ``lead``: by how much the score of the best exceeds that of the tenth, which is 0 where there are fewer. What stands
  out answers; where everything is alike, as in papers about one disease, little is sure.
- ``behind``: by how much the score is less than that of the best. Its weight is never above 0.
"""
_LARGEST = 1_000
_BACKGROUND = 10  # the rank whose score is what any document of the collection might have


def features_of(
    scores_C: NDArray[np.floating], signals_CS: NDArray[np.floating], *, num_searched: int
) -> NDArray[np.float64]:
    """The features of the candidates of one query, ``[C, F]`` in the order of :data:`FEATURES`.

    Args:
        scores_C: What they are ranked by; the ten best candidates of the search must be among them.
        signals_CS: In the order of :data:`SIGNALS`.
        num_searched: Documents among which they were looked for.
    """
    features_CF = np.zeros((len(scores_C), len(FEATURES)))
    if not len(scores_C):
        return features_CF
    best, scores = int(np.argmax(scores_C)), scores_C.astype(np.float64)
    has_background = len(scores) >= _BACKGROUND
    background = np.partition(scores, -_BACKGROUND)[-_BACKGROUND] if has_background else min(0.0, scores[best])
    features_CF[:, : len(SIGNALS)] = signals_CS[best]
    features_CF[:, FEATURES.index("size")] = np.log(np.clip(num_searched, 1, _LARGEST))
    features_CF[:, FEATURES.index("lead")] = scores[best] - background
    features_CF[:, FEATURES.index("behind")] = scores[best] - scores
    return features_CF


class RelevanceCurve(LogisticCurves):
    """Weights of a logistic curve by mode of search; hits of a mode that is left out have no confidence.

    Example:
        >>> curve = RelevanceCurve(revision="r", weights={"facets": {"intercept": -2.0, "cosine": 4.0}})
        >>> found = features_of(np.array([0.5]), np.array([[0.5, 0, 0]]), num_searched=9)
        >>> curve.confidence("facets", found).tolist()
        [0.5]
    """

    __slots__ = ()
    GROUP, NAMES, FEATURES = "modes", get_args(SearchMode), FEATURES

    def __post_init__(self) -> None:
        """Checks names and numbers, and that confidence does not rise behind the first hit."""
        super().__post_init__()
        for mode, weights in self.weights.items():
            if weights.get("behind", 0.0) > 0:
                raise CheckpointError(f"{mode}.behind: expected no number above 0, got {weights['behind']}")

    def confidence(self, mode: SearchMode, features_CF: NDArray[np.float64]) -> NDArray[np.float32] | None:
        """Probabilities of being relevant, ``[C]`` in [0, 1]; None where nothing was fitted for the mode."""
        found_C = self.probabilities(mode, features_CF)
        return None if found_C is None else found_C.astype(np.float32)
