"""Sentence patterns: what stands between and around two entities, as ``$ARG1 , the partner of fellow $ARG2``."""

from dataclasses import dataclass

__all__ = ["ARG1", "ARG2", "ENTITY", "PatternLimits"]

ARG1 = "$ARG1"
ARG2 = "$ARG2"
ENTITY = "$ENT"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternLimits:
    """What is a pattern.

    Attributes:
        max_tokens_between: Tokens between the two entities at most.
        max_entities_between: Other entities between them at most, each is one ``$ENT``.
        max_pairs: Pairs of one sentence at most, the closest first.
    """

    max_tokens_between: int = 12
    max_entities_between: int = 2
    max_pairs: int = 200
