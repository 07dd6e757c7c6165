"""How scores of relations and of entailment become decisions and confidence: numbers fitted on development data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from facets.relations.entailment_weights import EntailmentWeights

__all__ = ["Confidence"]

# Of features that earlier files weighed; the weights of today's take their place.
_OUTDATED = frozenset(("entailment_weights", "paraphrase_weights", "direction_weights"))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Numbers fitted on development data.

    Attributes:
        thresholds: Scores from here on are accepted, one a relation.
        default_threshold: For relations added later.
        use_asymmetric: Facets count by eq. 3.10 with the pattern as premise, instead of eq. 3.11.
        margin: Accepted are only relations whose score is at most so far below the pattern's best.
        slope: ``probability = 1 / (1 + exp(-slope * (score - threshold) - gap_slope * gap - offset))``; the gap is
            the score less the pattern's best.
        gap_slope: See ``slope``.
        offset: See ``slope``.
        schema_scale: The look-up's cosine times this, plus ``schema_shift``, is compared with the facets' score.
        schema_shift: See ``schema_scale``. Where both together exceed 1, all scores are divided by their sum.
        type_weight: What a log-odds of an argument's type adds to the score.
        entailment: What the features of a pair of patterns count for each label.
    """

    thresholds: tuple[float, ...]
    default_threshold: float = 0.5
    use_asymmetric: bool = False
    margin: float = 2.0
    slope: float = 10.0
    gap_slope: float = 0.0
    offset: float = 0.0
    schema_scale: float = 1.0
    schema_shift: float = 0.0
    type_weight: float = 0.08
    entailment: EntailmentWeights = field(default_factory=EntailmentWeights)

    @property
    def peak(self) -> float:
        """What scores are divided by, so that the highest is 1."""
        return max(1.0, self.schema_scale + self.schema_shift)

    def to_dict(self) -> dict[str, object]:
        """For a file."""
        return asdict(self) | {"entailment": self.entailment.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What ``to_dict`` gave, now or in an earlier version.

        Raises:
            TypeError: A setting is unknown or no number.
            ValueError: A setting is no number.
        """

        def checked(value: Any) -> Any:
            if isinstance(value, dict):
                return EntailmentWeights.from_dict(value)
            if isinstance(value, list):
                return tuple(map(float, value))
            return value if isinstance(value, bool) else float(value)

        return cls(**{name: checked(value) for name, value in values.items() if name not in _OUTDATED})
