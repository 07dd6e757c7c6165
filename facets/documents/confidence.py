"""Confidence: the probability that a hit is relevant, comparable across queries.

The score of a search orders the hits of one query. Confidence is a logistic curve over features of a hit; its weights
belong to a model and are stored in ``relevance.json`` of the model's folder::

    {"format": 1, "revision": "0123456789ab", "source": "judgements it was fitted on",
     "modes": {"hybrid": {"intercept": -5.6, "cosine": 7.2, "lead": 10.2, "behind": -22.0}, "facets": ...}}

Unrelated texts have a cosine of 0.05 with one encoder and of 0.75 with another. So the scores of facets are read on the
scale of all-MiniLM-L6-v2, for whose space words were weighed against facets.

Shape letters: C candidates, S signals of each, F features.
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np

from facets.arrays import Doubles, Floats, Vectors
from facets.documents.types import SearchMode
from facets.errors import CheckpointError
from facets.storage.fitted import LogisticCurves

SIGNALS = ("cosine", "coverage")
"""Signals of one hit; those that the mode does not use are 0.

- ``cosine``: score of the facets, see ``RelevanceCurve.comparable``.
- ``coverage``: share of the query's words that the document has, in [0, 1], each weighted by its rarity in the
  collection; words in no document count as the rarest. 0 for a query of stop words only.
"""
FEATURES = (*SIGNALS, "size", "lead", "behind")
"""Features of a curve. All but the last belong to the query, so confidence depends on the score, not on the rank.

- ``cosine``, ``coverage``: signals of the best candidate.
- ``size``: logarithm of the number of documents searched, at most 1,000 (curves were not fitted on more). The best of
  many documents is similar to a query by chance, the best of few is not.
- ``lead``: score of the best minus score of the tenth, or 0 if there are fewer. Where all documents are alike, a high
  score says little.
- ``behind``: score of the best minus the score of the hit. Its weight is never above 0.
"""
_MAX_SIZE = 1_000
_BACKGROUND_RANK = 10  # any document of the collection might have the score of this rank
_UNRELATED, _RELATED = 0.043, 0.63  # of all-MiniLM-L6-v2, see `facets.model.background.score_scale`
_LEAST_RANGE = 0.02  # of the cosines of a model; those of random weights mean nothing


def features_of(scores_C: Vectors, signals_CS: Vectors, *, num_searched: int) -> Doubles:
    """The features of the candidates of one query, ``[C, F]`` in the order of :data:`FEATURES`.

    ``scores_C``: ranking scores, among them those of the ten best candidates. ``num_searched``: number of documents.
    """
    features_CF = np.zeros((len(scores_C), len(FEATURES)))
    if not len(scores_C):
        return features_CF
    best, scores = int(np.argmax(scores_C)), scores_C.astype(np.float64)
    background = min(0.0, scores[best])
    if len(scores) >= _BACKGROUND_RANK:
        background = np.partition(scores, -_BACKGROUND_RANK)[-_BACKGROUND_RANK]
    features_CF[:, : len(SIGNALS)] = signals_CS[best]
    features_CF[:, FEATURES.index("size")] = np.log(np.clip(num_searched, 1, _MAX_SIZE))
    features_CF[:, FEATURES.index("lead")] = scores[best] - background
    features_CF[:, FEATURES.index("behind")] = scores[best] - scores
    return features_CF


@dataclass(frozen=True, kw_only=True, slots=True)
class RelevanceCurve(LogisticCurves):
    """Weights of a logistic curve for each search mode; hits of a mode without weights have no confidence.

    Example:
        >>> curve = RelevanceCurve(revision="r", weights={"facets": {"intercept": -2.0, "cosine": 4.0}})
        >>> features = features_of(np.array([0.5]), np.array([[0.5, 0]]), num_searched=9)
        >>> curve.confidence("facets", features).tolist()
        [0.5]
    """

    GROUP, NAMES, FEATURES = "modes", get_args(SearchMode), FEATURES

    # Mean score of the facets, with this model, of sentences that do not answer a question, and of those that do.
    scale: tuple[float, float] = (_UNRELATED, _RELATED)

    def __post_init__(self) -> None:
        """Checks names and numbers, and that confidence does not increase after the first hit."""
        LogisticCurves.__post_init__(self)
        for mode, weights in self.weights.items():
            if weights.get("behind", 0.0) > 0:
                raise CheckpointError(f"{mode}.behind: expected a number of at most 0, got {weights['behind']}")

    def comparable(self, cosines_C: Floats) -> Floats:
        """Scores of the facets as they would be if the scale of the model were that of all-MiniLM-L6-v2, ``[C]``."""
        unrelated, related = self.scale
        steepness = (_RELATED - _UNRELATED) / max(related - unrelated, _LEAST_RANGE)
        return np.asarray(_UNRELATED + steepness * (cosines_C - unrelated), dtype=np.float32)

    def confidence(self, mode: SearchMode, features_CF: Doubles) -> Floats | None:
        """Probabilities of being relevant, ``[C]`` in [0, 1]; None without weights for the mode."""
        probabilities_C = self.probabilities(mode, features_CF)
        return None if probabilities_C is None else probabilities_C.astype(np.float32)
