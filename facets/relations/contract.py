"""What the relation tasks need of a model; ``facets.load`` of a relation checkpoint returns one."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.model.contract import Model

__all__ = ["Calibration", "PatternLookUp", "RelationModel", "Relations"]


class Calibration(Protocol):
    """Numbers fitted on development data; see ``facets.relations.tables.RelationCalibration``."""

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Scores from here on are accepted, one a relation."""
        ...

    @property
    def default_threshold(self) -> float:
        """For relations added later."""
        ...

    @property
    def use_asymmetric(self) -> bool:
        """Facets count by eq. 3.10 with the pattern as premise, instead of eq. 3.11."""
        ...

    @property
    def margin(self) -> float:
        """Accepted are only relations at most so far below the pattern's best."""
        ...

    @property
    def gap_slope(self) -> float:
        """Of the curve to probability, for the distance from the pattern's best."""
        ...

    @property
    def slope(self) -> float:
        """Of the logistic curve from ``score - threshold`` to probability."""
        ...

    @property
    def offset(self) -> float:
        """Of the same curve."""
        ...

    @property
    def schema_scale(self) -> float:
        """The look-up's cosine times this ..."""
        ...

    @property
    def schema_shift(self) -> float:
        """... plus this is compared with the facets' score."""
        ...

    @property
    def peak(self) -> float:
        """What scores are divided by, so that the highest is 1."""
        ...

    @property
    def entailment_weights(self) -> tuple[float, ...]:
        """Of similarity, its square, size of the asymmetry, size of the difference in coverage, and 1."""
        ...

    @property
    def paraphrase_weights(self) -> tuple[float, ...]:
        """Of the same."""
        ...

    @property
    def direction_weights(self) -> tuple[float, ...]:
        """Of the asymmetry and of the difference in coverage."""
        ...


class Relations(Protocol):
    """Relations and their facets."""

    @property
    def names(self) -> tuple[str, ...]:
        """Distinct names."""
        ...

    @property
    def num_pairs(self) -> tuple[int, ...]:
        """Entity pairs each was trained on."""
        ...

    @property
    def facets(self) -> NDArray[np.float32]:
        """``[R, J, D]``, unit length."""
        ...

    @property
    def calibration(self) -> Calibration:
        """Thresholds and more."""
        ...


class PatternLookUp(Protocol):
    """The look-up model (universal schema)."""

    @property
    def rows(self) -> Mapping[str, int]:
        """Row of each pattern, its tokens joined by one blank."""
        ...

    @property
    def patterns(self) -> NDArray[np.float32]:
        """``[P, D]``, unit length."""
        ...

    @property
    def relations(self) -> NDArray[np.float32]:
        """``[R, D]``, unit length."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """Entity pairs each pattern was seen with, ``[P]``."""
        ...

    def find(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Row of each tokenized pattern, -1 where it was not seen."""
        ...


class RelationModel(Model, Protocol):
    """A model of patterns."""

    @property
    def num_relation_facets(self) -> int:
        """K_rel of a relation."""
        ...

    @property
    def relations(self) -> Relations:
        """Relations and their facets."""
        ...

    @property
    def table(self) -> PatternLookUp:
        """Seen patterns."""
        ...

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Facets ``[len(patterns), K, D]`` of tokenized patterns."""
        ...
