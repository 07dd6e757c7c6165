"""Where the entities of a text are: given by the caller, a gazetteer, or an installed spaCy pipeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["EntityFinder", "EntitySpan", "Gazetteer", "SpacyEntities"]


@dataclass(frozen=True, slots=True, order=True)
class EntitySpan:
    """An entity's place in a text: ``text[start:end]``; offsets count characters (Unicode code points)."""

    start: int
    end: int


class EntityFinder(Protocol):
    """Finds entities."""

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """Entities of each text, in order, not overlapping."""
        ...


class Gazetteer:
    """Finds the names of a list; the longest name wins.

    Raises:
        InvalidInputError: A name has no word (``field`` is ``names[i]``).
    """

    def __init__(self, names: Iterable[str]) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        raise NotImplementedError


class SpacyEntities:
    """Named entities of an installed spaCy pipeline; nothing is downloaded.

    Args:
        pipeline: Name of an installed pipeline or its folder.

    Raises:
        NotFoundError: It is not installed; the message lists the installed ones (``resource_type`` is ``pipeline``).
        InvalidInputError: It has no named entity recognizer.
    """

    def __init__(self, pipeline: str) -> None:
        raise NotImplementedError

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        raise NotImplementedError
