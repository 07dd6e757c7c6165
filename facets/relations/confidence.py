"""How scores of relations and of entailment become decisions and confidence: numbers fitted on development data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

__all__ = ["Confidence"]


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
        entailment_weights: Of similarity, its square, sizes of asymmetry and of difference in generality, and 1.
        paraphrase_weights: Of the same.
        direction_weights: Of the asymmetry and of the difference in generality.
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
    entailment_weights: tuple[float, ...] = (2.0, 0.0, 4.0, 4.0, -2.0)
    paraphrase_weights: tuple[float, ...] = (8.0, 0.0, -10.0, -10.0, -6.0)
    direction_weights: tuple[float, ...] = (10.0, 10.0)

    @property
    def peak(self) -> float:
        """What scores are divided by, so that the highest is 1."""
        return max(1.0, self.schema_scale + self.schema_shift)

    def to_dict(self) -> dict[str, object]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What ``to_dict`` gave.

        Raises:
            TypeError: A setting is unknown or no number.
            ValueError: A setting is no number.
        """

        def checked(value: Any) -> Any:
            if isinstance(value, list):
                return tuple(map(float, value))
            return value if isinstance(value, bool) else float(value)

        return cls(**{name: checked(value) for name, value in values.items()})
