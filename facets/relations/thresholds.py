"""Numbers fitted on development data that turn scores of relations and features of entailment into decisions."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from facets.config import Settings

_MODEL_FEATURES = (
    "coverage",  # how well the premise's facets cover the hypothesis' (eq. 3.10)
    "generality",  # how much better the hypothesis' facets cover other patterns than the premise's facets do
    "similarity",  # cosine of the sentence vectors, at least 0
)
WORD_FEATURES = (
    "hypernym",  # a word of the premise is a kind of one of the hypothesis: assassinated, killed
    "same_words",  # share of common words, on the side where it is smaller
    "hedged",  # the premise is possible or attempted, the hypothesis is stated
    "roles_exchanged",  # the roles are exchanged: defeated, was defeated by
    "opposite",  # opposites: buy, sell
    "converse",  # converses: husband, wife, with the arguments exchanged
    "negated",  # one side is negated and the other is not
    "doubted",  # one side is possible, attempted or reported, and the other is stated
    "implied",  # according to the table of relations, the hypothesis follows
    "apart",  # the table of relations knows both sides, and the hypothesis does not follow
)
FEATURES = (*_MODEL_FEATURES, *WORD_FEATURES)
CONSTANT = "constant"
# Means over both directions, and absolute differences.
PARAPHRASE_FEATURES = (*FEATURES, *(f"{name}_difference" for name in FEATURES))
# Prior weights, kept where the pairs give no evidence: similarity makes entailment possible; exchanged roles,
# opposites and negation rule it out.
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
    """Weights of features by name; a missing feature has weight 0."""

    # Weights of `FEATURES` and `CONSTANT`, for "the premise entails the hypothesis"; the reverse uses the same weights
    # with the sides exchanged.
    entails: Mapping[str, float] = _ENTAILS
    paraphrase: Mapping[str, float] = _PARAPHRASE  # weights of `PARAPHRASE_FEATURES` and `CONSTANT`
    threshold: float = 0.5  # a label other than neutral needs this probability of entailment in one direction

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, features in (("entails", FEATURES), ("paraphrase", PARAPHRASE_FEATURES)):
            unknown = getattr(self, name).keys() - {*features, CONSTANT}
            self.require(name, not unknown, f"of known features, got {sorted(unknown)}")
        self.require("paraphrase", len(self.model_fields_set & {"entails", "paraphrase"}) != 1, "given with entails")
        return self


class Confidence(Settings):
    """Numbers fitted on development data."""

    thresholds: Annotated[tuple[float, ...], Field(strict=False)]  # lowest accepted score, by relation
    default_threshold: float = 0.5  # for relations added later
    use_asymmetric: bool = False  # score facets by eq. 3.10 with the pattern as premise, not by eq. 3.11
    margin: float = 2.0  # a relation is accepted only if its score is at most this far below the pattern's best
    # `probability = 1 / (1 + exp(-slope * (score - threshold) - gap_slope * gap - offset))`; the gap is the score minus
    # the pattern's best.
    slope: float = 10.0
    gap_slope: float = 0.0
    offset: float = 0.0
    # The look-up score is `schema_scale * cosine + schema_shift`. If the two numbers sum to more than 1, all scores
    # are divided by the sum.
    schema_scale: float = 1.0
    schema_shift: float = 0.0
    type_weight: float = 0.08  # weight of the log-odds of an argument's type
    entailment: EntailmentWeights = EntailmentWeights()

    @property
    def peak(self) -> float:
        """Divisor of scores, so that the highest is 1."""
        return max(1.0, self.schema_scale + self.schema_shift)
