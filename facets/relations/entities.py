"""Entities: their types, and their positions in a text as given by the caller or found by a gazetteer."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from facets.errors import InvalidInputError

_MAX_NAME_CHARACTERS = 1000
# Word borders in names and texts are marked by two code points that are never characters.
_WORD = re.compile(r"[^\W_]+")
_MARKED = "\ufdd0\\g<0>\ufdd1"


class EntityType(StrEnum):
    """Type of an entity; the order of the members is that of type arrays (``[R, T]``)."""

    PERSON = "person"  # people, also fictional
    ORGANIZATION = "organization"  # companies, institutions, teams, bands, parties
    PLACE = "place"  # countries, cities, mountains, buildings
    DATE = "date"  # dates, years, times, periods
    NUMBER = "number"  # counts, ordinals, amounts, measures
    WORK = "work"  # books, films, pieces of music, paintings, laws
    EVENT = "event"  # wars, battles, matches, festivals
    GROUP = "group"  # nationalities, religions, languages
    THING = "thing"  # any other known type: products, dishes, species, occupations, awards
    UNKNOWN = ""  # not given


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
# By label of spaCy's English pipelines (OntoNotes 5).
TYPE_OF_LABEL = {label: entity_type for entity_type, labels in _LABELS.items() for label in labels}
# Types that a recogniser rarely gets wrong.
VALUES = frozenset([EntityType.DATE, EntityType.NUMBER])


@dataclass(frozen=True, slots=True, order=True)
class EntitySpan:
    """Position of an entity: ``text[start:end]``; offsets count characters (Unicode code points).

    Only the offsets count in comparisons.
    """

    start: int
    end: int
    type: EntityType = field(default=EntityType.UNKNOWN, compare=False)
    # Numbers of the clauses that contain the entity, from a parse; empty: unknown. Entities that share no clause are
    # not paired.
    clauses: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    # Whether its phrase belongs to a verb ("met Ann in Oslo") and says nothing about the noun before it; from a parse.
    is_adjunct: bool = field(default=False, compare=False, repr=False)


class EntityFinder(Protocol):
    """Finds entities."""

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """Entities of each text, in order, not overlapping."""


class Gazetteer:
    """Finds the names of a list, case-sensitively, at word borders; scans from the left, and the longest name wins.

    All names are matched at once (Aho-Corasick), so the time does not depend on their number. Raises InvalidInputError
    for a name without a letter or digit, or of more than 1,000 characters.

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
        # The library's DFA would take minutes to build for a long repetitive name.
        self._automaton = AhoCorasick(
            marked, matchkind=MatchKind.LeftmostLongest, implementation=Implementation.ContiguousNFA
        )

    def __len__(self) -> int:
        return len(self.names)

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        return [[EntitySpan(start, end) for start, end, _ in self.find_names(text)] for text in texts]

    def find_names(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and index of each name in a text, in order, not overlapping."""
        marks = [
            mark
            for number, word in enumerate(_WORD.finditer(text))
            for mark in (word.start() + 2 * number, word.end() + 2 * number + 1)
        ]
        matches = self._automaton.find_matches_as_indexes(_WORD.sub(_MARKED, text))
        return [
            (start - bisect_left(marks, start), end - bisect_left(marks, end), name) for name, start, end in matches
        ]


def checked_spans(texts: Sequence[str], spans: Sequence[Sequence[EntitySpan]]) -> list[list[EntitySpan]]:
    """The caller's spans of each text in text order; raises InvalidInputError."""
    if len(spans) != len(texts):
        raise InvalidInputError(f"must have one list for each of {len(texts)} texts, got {len(spans)}", path="spans")
    return [_in_order(text, own, number) for number, (text, own) in enumerate(zip(texts, spans, strict=True))]


def _in_order(text: str, spans: Sequence[EntitySpan], number: int) -> list[EntitySpan]:
    order = sorted(range(len(spans)), key=lambda position: spans[position])
    previous_start = previous_end = 0
    for position in order:
        start, end = spans[position].start, spans[position].end
        where = ("spans", number, position)
        if not 0 <= start < end <= len(text):
            rule = f"must be a part of its text of {len(text)} characters, got [{start}, {end})"
            raise InvalidInputError(rule, path=where)
        if text[start:end].isspace():
            raise InvalidInputError(f"must hold a word, got white space at [{start}, {end})", path=where)
        if start < previous_end:
            rule = f"must not overlap another span, got [{start}, {end}) over [{previous_start}, {previous_end})"
            raise InvalidInputError(rule, path=where)
        previous_start, previous_end = start, end
    return [spans[position] for position in order]
