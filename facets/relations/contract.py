"""What the relation tasks need of a model; ``facets.load`` of a relation checkpoint returns one."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.model.contract import Model
from facets.relations.tables import PatternTable, RelationTable

__all__ = ["PatternEncoder"]


class PatternEncoder(Model, Protocol):
    """A model of patterns."""

    @property
    def num_relation_facets(self) -> int:
        """K_rel of a relation."""
        ...

    @property
    def relations(self) -> RelationTable:
        """Relations and their facets."""
        ...

    @property
    def table(self) -> PatternTable:
        """The look-up of seen patterns (universal schema)."""
        ...

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Facets ``[len(patterns), K, D]`` of tokenized patterns."""
        ...

    def pattern_vectors(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """One unit vector a tokenized pattern, ``[len(patterns), V]``; cosines say how alike patterns are."""
        ...
