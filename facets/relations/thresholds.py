"""Thresholds and weights, fitted on development data: how scores of relations and of entailment become decisions."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from facets.config import Settings

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
    "roles_exchanged",  # who acts is exchanged: defeated, was defeated by
    "opposite",  # buy, sell
    "converse",  # husband, wife, with the arguments exchanged
    "negated",  # one side is negated and the other is not
    "doubted",  # one side may be, was tried or is said, and the other is
    "implied",  # the table of relations: the hypothesis follows
    "apart",  # the table of relations has both, and it does not
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
    "roles_exchanged": -6.0,
    "opposite": -6.0,
    "negated": -6.0,
    "doubted": -1.75,
    "implied": 4.0,
    "apart": -1.0,
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
    "doubted": -4.0,
    "implied": 6.0,
    "implied_difference": -4.0,
    "apart": -1.5,
}


class EntailmentWeights(Settings):
    """Weights by the names of features; one that is absent counts 0."""

    # Of `FEATURES` and `CONSTANT`, for "the premise entails the hypothesis"; for the reverse the features of the
    # exchanged sides count by the same weights.
    entails: Mapping[str, float] = _ENTAILS
    paraphrase: Mapping[str, float] = _PARAPHRASE  # of `PARAPHRASE_FEATURES` and `CONSTANT`
    # A label other than neutral needs that probability of entailment in one direction at least.
    threshold: float = _THRESHOLD

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, features in (("entails", FEATURES), ("paraphrase", PARAPHRASE_FEATURES)):
            unknown = getattr(self, name).keys() - {*features, CONSTANT}
            self.require(name, not unknown, f"of known features, got {sorted(unknown)}")
        self.require("paraphrase", len(self.model_fields_set & {"entails", "paraphrase"}) != 1, "given with entails")
        return self


class Confidence(Settings):
    """Numbers fitted on development data."""

    thresholds: Annotated[tuple[float, ...], Field(strict=False)]  # scores from here on are accepted, one a relation
    default_threshold: float = 0.5  # for relations added later
    use_asymmetric: bool = False  # facets count by eq. 3.10 with the pattern as premise, instead of eq. 3.11.
    margin: float = 2.0  # accepted are only relations whose score is at most so far below the pattern's best
    # `probability = 1 / (1 + exp(-slope * (score - threshold) - gap_slope * gap - offset))`; the gap is the score less
    # the pattern's best.
    slope: float = 10.0
    gap_slope: float = 0.0  # see `slope`
    offset: float = 0.0  # see `slope`
    # The look-up's cosine times this, plus `schema_shift`, is compared with the facets' score.
    schema_scale: float = 1.0
    schema_shift: float = 0.0  # see `schema_scale`. Where both together exceed 1, all scores are divided by their sum.
    type_weight: float = 0.08  # what a log-odds of an argument's type adds to the score
    entailment: EntailmentWeights = EntailmentWeights()  # what the features of a pair of patterns count for each label

    @property
    def peak(self) -> float:
        """What scores are divided by, so that the highest is 1."""
        return max(1.0, self.schema_scale + self.schema_shift)
