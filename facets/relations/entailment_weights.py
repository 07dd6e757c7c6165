"""The features of a pair of patterns by name, and what each counts for a label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["CONSTANT", "FEATURES", "PARAPHRASE_FEATURES", "WORD_FEATURES", "EntailmentWeights"]

_MODEL_FEATURES = (
    "coverage",  # how well the premise's facets cover the hypothesis' (eq. 3.10)
    "generality",  # how much better the hypothesis' facets cover patterns in general than the premise's
    "similarity",  # cosine of the patterns as a whole, at least 0
)
WORD_FEATURES = (
    "hypernym",  # a word of the premise is a kind of one of the hypothesis: assassinated, killed
    "included",  # share of the hypothesis' words that the premise says too, or more specifically
    "same_words",  # share of the words that both say, of the side where it is smaller
    "hedged",  # the premise may be or was tried, the hypothesis is
    "freed",  # the reverse, times the similarity
    "roles_exchanged",  # who acts is exchanged: defeated, was defeated by
    "opposite",  # buy, sell
    "converse",  # husband, wife, with the arguments exchanged
    "negated",  # one side is negated and the other is not
)
FEATURES = (*_MODEL_FEATURES, *WORD_FEATURES)
CONSTANT = "constant"
# Means of both directions, and sizes of their difference.
PARAPHRASE_FEATURES = (*FEATURES, *(f"{name}_difference" for name in FEATURES))
_THRESHOLD = 0.5
# What is believed before any pair is seen, of every feature that counts; where the pairs say nothing, it stays. Round
# numbers: likeness makes entailment possible; exchanged roles, opposites and negation make it impossible.
_ENTAILS = {
    CONSTANT: -9.5,
    "coverage": 4.0,
    "generality": 1.0,
    "similarity": 10.0,
    "hypernym": 4.0,
    "hedged": -2.0,
    "freed": 1.0,
    "roles_exchanged": -6.0,
    "opposite": -6.0,
    "negated": -6.0,
}
_PARAPHRASE = {
    CONSTANT: -11.0,
    "coverage": 4.0,
    "similarity": 12.0,
    "same_words": 2.0,
    "hypernym_difference": -2.0,
    "hedged_difference": -4.0,
    "roles_exchanged": -8.0,
    "opposite": -8.0,
    "converse": 3.0,
    "negated": -8.0,
}


@dataclass(frozen=True, slots=True)
class EntailmentWeights:
    """Weights by the names of features; one that is absent counts 0.

    Attributes:
        entails: Of ``FEATURES`` and ``CONSTANT``, for "the premise entails the hypothesis"; for the reverse the
            features of the exchanged sides count by the same weights.
        paraphrase: Of ``PARAPHRASE_FEATURES`` and ``CONSTANT``.
        threshold: A label other than neutral needs that probability of entailment in one direction at least.
    """

    entails: Mapping[str, float] = field(default_factory=lambda: dict(_ENTAILS))
    paraphrase: Mapping[str, float] = field(default_factory=lambda: dict(_PARAPHRASE))
    threshold: float = _THRESHOLD

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Of a file; features that are not known any more are left out.

        Raises:
            TypeError: It is no table of numbers.
            ValueError: A weight is no number.
        """

        def table(name: str, features: tuple[str, ...]) -> dict[str, float]:
            weights = values[name] if name in values else None
            if not isinstance(weights, Mapping):
                raise TypeError(f"expected a table of weights under {name!r}, got {weights!r}")
            return {key: float(weight) for key, weight in weights.items() if key in (*features, CONSTANT)}

        entails, paraphrase = table("entails", FEATURES), table("paraphrase", PARAPHRASE_FEATURES)
        return cls(entails, paraphrase, float(values.get("threshold", _THRESHOLD)))

    def to_dict(self) -> dict[str, object]:
        """For a file."""
        return {"entails": dict(self.entails), "paraphrase": dict(self.paraphrase), "threshold": self.threshold}
