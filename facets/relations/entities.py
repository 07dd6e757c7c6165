"""Entities: their kinds, and where they are in a text: given by the caller, found by a gazetteer or ``recognizer``."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from facets.errors import ErrorPath, InvalidInputError

_MAX_NAME_CHARACTERS = 1000
# Names begin and end at borders of words. Both are marked in names and texts, by what is no character in Unicode.
_WORD = re.compile(r"[^\W_]+")
_MARKED = "\ufdd0\\g<0>\ufdd1"


class EntityType(StrEnum):
    """What an entity is; the order of the members is that of type arrays (``[R, T]``)."""

    PERSON = "person"  # people, fictional ones too
    ORGANIZATION = "organization"  # companies, institutions, teams, bands, parties
    PLACE = "place"  # countries, cities, mountains, buildings
    DATE = "date"  # dates, years, times, periods
    NUMBER = "number"  # counts, ordinals, amounts, measures
    WORK = "work"  # books, films, pieces of music, paintings, laws
    EVENT = "event"  # wars, battles, matches, festivals
    GROUP = "group"  # nationalities, religions, languages
    THING = "thing"  # any other known kind: products, dishes, species, occupations, awards
    UNKNOWN = ""  # not given


# Labels of spaCy's English pipelines (OntoNotes 5).
_LABELS = {
    EntityType.PERSON: ("PERSON", "PER"),
    EntityType.ORGANIZATION: ("ORG",),
    EntityType.PLACE: ("GPE", "LOC", "FAC"),
    EntityType.DATE: ("DATE", "TIME"),
    EntityType.NUMBER: ("CARDINAL", "ORDINAL", "QUANTITY", "MONEY", "PERCENT"),
    EntityType.WORK: ("WORK_OF_ART", "LAW"),
    EntityType.EVENT: ("EVENT",),
    EntityType.GROUP: ("NORP", "LANGUAGE"),
    EntityType.THING: ("PRODUCT",),
}
_TYPE_OF_LABEL = {label: kind for kind, labels in _LABELS.items() for label in labels}
# What is known for sure; a recognizer errs about the other kinds.
VALUES = frozenset([EntityType.DATE, EntityType.NUMBER])


def entity_type_of_label(label: str) -> EntityType:
    """The kind behind a recogniser's label; ``UNKNOWN`` for labels of no known kind.

    Example:
        >>> entity_type_of_label("GPE"), entity_type_of_label("MISC")
        (<EntityType.PLACE: 'place'>, <EntityType.UNKNOWN: ''>)
    """
    return _TYPE_OF_LABEL.get(label, EntityType.UNKNOWN)


@dataclass(frozen=True, slots=True, order=True)
class EntitySpan:
    """An entity's place in a text: ``text[start:end]``; offsets count characters (Unicode code points)."""

    start: int  # first character
    end: int  # behind the last character
    # What it is, where that is known; does not count in comparisons.
    type: EntityType = field(default=EntityType.UNKNOWN, compare=False)
    # Numbers of the clauses that it belongs to, from a parse; entities without a common one are no pair. Empty: not
    # known. Does not count either.
    clauses: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    # Stands in a phrase that belongs to a verb (`met Ann in Oslo`), so that it says nothing about the noun right before
    # it; from a parse. Does not count either.
    is_adjunct: bool = field(default=False, compare=False, repr=False)


class EntityFinder(Protocol):
    """Finds entities."""

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """Entities of each text, in order, not overlapping."""


class Gazetteer:
    """Finds the names of a list, with the same case, at the borders of words; the longest name from the left wins.

    All names are sought at once (Aho-Corasick): the time does not depend on how many there are. Borders are marked in
    names and texts, so that only what counts is found: of names that lie in one another a text of 32,000 characters
    has millions of matches.

    Attributes:
        names: Distinct names, in the given order.

    Raises:
        InvalidInputError: A name has no letter or digit, or more than 1,000 characters (``field`` is ``names[i]``).

    Example:
        >>> gazetteer = Gazetteer(["York", "New York"])
        >>> gazetteer.find(["He left New York for Yorkshire."])
        [[EntitySpan(start=8, end=16, type=<EntityType.UNKNOWN: ''>)]]
    """

    def __init__(self, names: Iterable[str]) -> None:
        given = tuple(names)
        for position, name in enumerate(given):
            if not any(map(str.isalnum, name)):
                raise InvalidInputError(f"must hold a letter or digit, got {name[:40]!r}", path=("names", position))
            if len(name) > _MAX_NAME_CHARACTERS:
                rule = f"must have at most {_MAX_NAME_CHARACTERS} characters, got {len(name)}"
                raise InvalidInputError(rule, path=("names", position))
        self.names = tuple(dict.fromkeys(given))
        marked = [_WORD.sub(_MARKED, name) for name in self.names]
        # Not the DFA that the library takes for a few names: of one long name that repeats itself it takes minutes.
        self._automaton = AhoCorasick(
            marked, matchkind=MatchKind.LeftmostLongest, implementation=Implementation.ContiguousNFA
        )

    def __len__(self) -> int:
        return len(self.names)

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        return [[EntitySpan(start, end) for start, end, _ in self.find_names(text)] for text in texts]

    def find_names(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and number of each name in a text, in order, not overlapping."""
        marks = [
            place
            for number, word in enumerate(_WORD.finditer(text))
            for place in (word.start() + 2 * number, word.end() + 2 * number + 1)
        ]
        found = self._automaton.find_matches_as_indexes(_WORD.sub(_MARKED, text))
        return [(start - bisect_left(marks, start), end - bisect_left(marks, end), name) for name, start, end in found]


def check_spans(text: str, spans: Sequence[EntitySpan], path: ErrorPath) -> list[EntitySpan]:
    """The caller's spans in the order of the text.

    ``spans``: in any order. ``path``: where the spans stand in the caller's input.

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
