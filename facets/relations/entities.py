"""Where the entities of a text are: given by the caller, or found by a gazetteer (or by ``recognizer``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import ahocorasick_rs

from facets.errors import ErrorPath, InvalidInputError
from facets.relations.entity_types import EntityType

__all__ = ["EntityFinder", "EntitySpan", "Gazetteer", "check_spans"]


@dataclass(frozen=True, slots=True, order=True)
class EntitySpan:
    """An entity's place in a text: ``text[start:end]``; offsets count characters (Unicode code points).

    Attributes:
        start: First character.
        end: Behind the last character.
        type: What it is, where that is known; does not count in comparisons.
        clauses: Numbers of the clauses that it belongs to, from a parse; entities without a common one are no pair.
            Empty: not known. Does not count either.
        is_adjunct: Stands in a phrase that belongs to a verb (``met Ann in Oslo``), so that it says nothing about the
            noun right before it; from a parse. Does not count either.
    """

    start: int
    end: int
    type: EntityType = field(default=EntityType.UNKNOWN, compare=False)
    clauses: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    is_adjunct: bool = field(default=False, compare=False, repr=False)


class EntityFinder(Protocol):
    """Finds entities."""

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """Entities of each text, in order, not overlapping."""
        ...


class Gazetteer:
    """Finds the names of a list, with the same case, at the borders of words; the longest name from the left wins.

    All names are sought at once (Aho-Corasick): the time does not depend on how many there are.

    Attributes:
        names: Distinct names, in the given order.

    Raises:
        InvalidInputError: A name has no letter or digit (``field`` is ``names[i]``).

    Example:
        >>> gazetteer = Gazetteer(["York", "New York"])
        >>> gazetteer.find(["He left New York for Yorkshire."])
        [[EntitySpan(start=8, end=16, type=<EntityType.UNKNOWN: ''>)]]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        for position, name in enumerate(self.names):
            if not any(map(str.isalnum, name)):
                raise InvalidInputError(f"must hold a letter or digit, got {name[:40]!r}", path=("names", position))
        self._automaton = ahocorasick_rs.AhoCorasick(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        return [[EntitySpan(start, end) for start, end, _ in self.find_names(text)] for text in texts]

    def find_names(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and number of each name in a text, in order, not overlapping."""
        found = []
        last = len(text)
        for name, start, end in self._automaton.find_matches_as_indexes(text, overlapping=True):
            inside = (start > 0 and text[start - 1].isalnum() and text[start].isalnum()) or (
                end < last and text[end].isalnum() and text[end - 1].isalnum()
            )
            if not inside:
                found.append((start, -end, name))
        return list(longest_from_left(found))


def longest_from_left(found: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """``(start, -end, tag)`` in any order -> ``(start, end, tag)`` that do not overlap, the longest from the left."""
    found.sort()
    border = 0
    for start, negative_end, tag in found:
        if start >= border:
            border = -negative_end
            yield start, border, tag


def check_spans(text: str, spans: Sequence[EntitySpan], path: ErrorPath) -> list[EntitySpan]:
    """The caller's spans in the order of the text.

    Args:
        text: The text they belong to.
        spans: In any order.
        path: Where the spans stand in the caller's input.

    Raises:
        InvalidInputError: One is empty, outside the text, or overlaps another; ``field`` is ``spans[j]``.
    """
    order = sorted(range(len(spans)), key=lambda place: spans[place])
    end_before, start_before = 0, 0
    for place in order:
        start, end = spans[place].start, spans[place].end
        where = (*path, place)
        if not 0 <= start < end <= len(text):
            raise InvalidInputError(
                f"must be a part of its text of {len(text)} characters, got [{start}, {end})", path=where
            )
        if text[start:end].isspace():
            raise InvalidInputError(f"must hold a word, got white space at [{start}, {end})", path=where)
        if start < end_before:
            raise InvalidInputError(
                f"must not overlap another span, got [{start}, {end}) over [{start_before}, {end_before})", path=where
            )
        end_before, start_before = end, start
    return [spans[place] for place in order]
