"""What records about a pattern and a pair of entities say of the relations that are taken to hold."""

from typing import Generic, Protocol, TypeVar


class _Score(Protocol):
    @property
    def accepted(self) -> bool: ...


ScoreT = TypeVar("ScoreT", bound=_Score)


class OfPattern(Generic[ScoreT]):
    """A pattern with scores of relations, accepted ones first."""

    __slots__ = ()
    relations: tuple[ScoreT, ...]

    @property
    def best(self) -> ScoreT | None:
        """The most probable accepted relation; None is the answer "no relation"."""
        return next((score for score in self.relations if score.accepted), None)


class OfPair(Generic[ScoreT]):
    """A pair of entities with what the pattern between them says."""

    __slots__ = ()
    pattern_score: OfPattern[ScoreT]

    @property
    def relations(self) -> tuple[ScoreT, ...]:
        """The accepted relations, most probable first; empty is "no relation"."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)
