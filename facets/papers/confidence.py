"""Confidence: the probability that a paper lies in a candidate's field at all, comparable across papers.

A score only orders the candidates of one paper: some candidate is the best one even for a cooking recipe. Confidence is
a logistic curve over evidence for a candidate, fitted on papers of the model's field and as many texts of other
fields. Its weights are in the model's ``relevance.json``::

    {"format": 1, "revision": "0123456789ab", "source": "papers and texts it was fitted on",
     "kinds": {"authors": {"intercept": -9.1, "document": 20.3, "facet": 1.2}, "citations": ...}}

Shape letters: C candidates, F features.
"""

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Doubles, Vectors
from facets.papers.records import CandidateKind
from facets.storage.fitted import LogisticCurves

FEATURES = (
    "document",  # greatest cosine of the paper with one of the candidate's papers
    "facet",  # log(1 + x) of the relevance by facets, eq. 3.13
    "known",  # share of the paper's words that the model knows
    "words",  # log(1 + number of its words), at most 100: a title alone is less similar to any paper than an abstract
    "document_words",  # document times words
)
_MAX_WORDS = 100


def text_features(rows: NDArray[np.integer], *, vocabulary_size: int) -> tuple[float, float]:
    """Features ``known`` and ``words`` of a paper, given its typed rows (``facets.papers.reading``).

    Example:
        >>> [round(value, 2) for value in text_features(np.array([0, 2, 3]), vocabulary_size=2)]
        [0.67, 1.39]
    """
    known = float(np.mean(rows % (vocabulary_size + 1) < vocabulary_size)) if len(rows) else 0.0
    return known, float(np.log1p(min(_MAX_WORDS, len(rows))))


def features_of(documents_C: Vectors, facets_C: Vectors, *, known: float, words: float) -> Doubles:
    """Features of the candidates of one paper, ``[C, F]`` in the order of :data:`FEATURES`."""
    documents_C = np.asarray(documents_C, dtype=np.float64)
    columns = (documents_C, np.log1p(facets_C), np.full(len(documents_C), known), np.full(len(documents_C), words))
    return np.stack([*columns, documents_C * words], axis=1)


class PaperConfidence(LogisticCurves):
    """Weights of one logistic curve per kind of candidate."""

    __slots__ = ()
    GROUP, NAMES, FEATURES = "kinds", tuple(CandidateKind), FEATURES

    def confidence(self, kind: CandidateKind, features_CF: Doubles) -> Doubles | None:
        """Probabilities ``[C]`` in [0, 1] for a ranking, made non-increasing; None: no curve for the kind."""
        probabilities_C = self.probabilities(kind, features_CF)
        return None if probabilities_C is None else np.minimum.accumulate(probabilities_C)
