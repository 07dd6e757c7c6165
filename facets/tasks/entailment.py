"""Entailment between sentence patterns, from their facets alone."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["EntailmentLabel", "EntailmentResult"]


class EntailmentLabel(StrEnum):
    """What holds between premise and hypothesis."""

    ENTAILS = "entails"  # the premise entails the hypothesis
    ENTAILED_BY = "entailed_by"  # the hypothesis entails the premise
    PARAPHRASE = "paraphrase"  # each entails the other
    NEUTRAL = "neutral"  # neither


@dataclass(frozen=True, slots=True)
class EntailmentResult:
    """Both directions of a pair of patterns.

    Attributes:
        premise: Normalised pattern.
        hypothesis: Normalised pattern.
        forward: ``asymmetric_score(premise, hypothesis)``, eq. 3.10, in ``[-1, 1]``.
        backward: ``asymmetric_score(hypothesis, premise)``.
        direction: ``forward - backward``, in ``[-2, 2]``; above 0 the premise is the more specific pattern.
        label: The decision.
        confidence: Calibrated probability of ``label``, in ``[0, 1]``.
        negation_differs: One side is negated and the other is not; the label is then ``NEUTRAL``.
    """

    premise: str
    hypothesis: str
    forward: float
    backward: float
    direction: float
    label: EntailmentLabel
    confidence: float
    negation_differs: bool
