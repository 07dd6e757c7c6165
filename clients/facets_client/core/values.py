"""Value types, and base classes that add methods to records."""

from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FacetsArray: TypeAlias = NDArray[np.floating]  # float32, or float16 when asked for


class _Acceptable(Protocol):
    @property
    def accepted(self) -> bool: ...


ScoreT = TypeVar("ScoreT", bound=_Acceptable)


class OfPattern(Generic[ScoreT]):
    """Base of a pattern with scores of relations, accepted ones first."""

    __slots__ = ()
    relations: tuple[ScoreT, ...]


class OfPair(Generic[ScoreT]):
    """Base of a pair of entities with the score of the pattern between them."""

    __slots__ = ()
    pattern_score: OfPattern[ScoreT]

    @property
    def relations(self) -> tuple[ScoreT, ...]:
        """The accepted relations, most probable first; empty: no relation."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)
