"""The catalogue of relations, and patterns known to express one of them or none.

Shape suffixes: P patterns, R relations.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from facets.arrays import Bools
from facets.config import Name, Settings
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntityType
from facets.relations.patterns import ARG1, ARG2, ENTITY, mirrored, tokenize_patterns
from facets_lab.evaluation.files import read_table

_EntityTypes = Annotated[list[Annotated[EntityType, Field(strict=False)]], Field(min_length=1)]
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PREPOSITIONS = frozenset("at by for from in of on to with".split())
_NAMES_AS_PATTERNS = 3  # a relation's name and two aliases become patterns

Pattern = tuple[str, ...]


class CatalogueEntry(Settings):
    """One relation; ``tail`` is the NAME of ``head``: capital(France, Paris)."""

    name: Name  # canonical name
    aliases: list[Name] = Field(default=[])  # other names of the relation
    inverse_aliases: list[Name] = Field(default=[])  # names of the relation with head and tail exchanged
    head: _EntityTypes  # types of heads
    tail: _EntityTypes  # types of tails
    symmetric: bool = False  # whether the relation holds both ways round
    example: str  # a sentence with the head in [..] and the tail in {..}
    description: str  # one line

    @model_validator(mode="after")
    def _check(self) -> Self:
        marks = [self.example.count(mark) for mark in "[]{}"]
        self.require("example", marks == [1, 1, 1, 1], "a sentence with one [head] and one {tail}")
        return self


class RelationCatalogue(Settings):
    """All relations of a catalogue (``lab/configs/relations-en.toml``); every name and alias occurs once."""

    relation: Annotated[list[CatalogueEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: set[str] = set()
        for entry in self.relation:
            for name in (entry.name, *entry.aliases, *entry.inverse_aliases):
                self.require("relation", name not in seen, f"one meaning for each name, {name!r} has two")
                seen.add(name)
        return self

    def meanings(self) -> dict[str, tuple[str, bool]]:
        """Canonical name of each name and alias, and whether head and tail are exchanged."""
        meanings: dict[str, tuple[str, bool]] = {}
        for entry in self.relation:
            meanings |= dict.fromkeys([entry.name, *entry.aliases], (entry.name, False))
            meanings |= dict.fromkeys(entry.inverse_aliases, (entry.name, True))
        return meanings


def read_phrases(path: Path) -> dict[str, list[str]]:
    """Patterns by relation, from lines ``relation<TAB>pattern``."""
    phrases: dict[str, list[str]] = {}
    for relation, pattern in read_table(path, {"relation": str, "pattern": _parse_pattern}):
        phrases.setdefault(relation, []).append(pattern)
    return phrases


def _parse_pattern(text: str) -> str:
    tokens = text.split()
    if tokens.count(ARG1) != 1 or tokens.count(ARG2) != 1:
        raise ValueError(f"expected {ARG1} and {ARG2} once")
    return " ".join(tokens)


def relations_by_pattern(phrases: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Relations by pattern in its mined form: lower-case tokens separated by spaces.

    Example:
        >>> relations_by_pattern({"author": ["$ARG2 , who wrote $ARG1"], "creator": ["$ARG2, who wrote $ARG1"]})
        {'$ARG2 , who wrote $ARG1': ['author', 'creator']}
    """
    flat = [(relation, phrase) for relation, patterns in phrases.items() for phrase in patterns]
    relations: dict[str, dict[str, None]] = {}
    for (relation, _), tokens in zip(flat, tokenize_patterns([p for _, p in flat], Tokenizer()), strict=True):
        relations.setdefault(" ".join(tokens), {})[relation] = None
    return {pattern: list(names) for pattern, names in relations.items()}


def name_patterns(relation: str) -> list[str]:
    """Patterns made of the words of a relation's name.

    Example:
        >>> name_patterns("leaderName")[0], name_patterns("worksFor")
        ("$ARG1 's leader name is $ARG2", ['$ARG1 works for $ARG2'])
    """
    patterns = []
    for alternative in re.split(r"[/(]", relation):
        name = [word.lower() for word in _CAMEL.findall(alternative.replace("_", " "))]
        words = " ".join(name)
        if name and name[-1] not in _PREPOSITIONS:  # ``worksFor`` is a verb, not a noun
            patterns += [
                f"{ARG1} 's {words} is {ARG2}",
                f"{ARG1} has the {words} {ARG2}",
                f"{ARG2} is the {words} of {ARG1}",
            ]
        if name:
            patterns.append(f"{ARG1} {words} {ARG2}")
    return list(dict.fromkeys(patterns))


@dataclass(frozen=True, slots=True)
class LabelledPatterns:
    """Patterns and the relations they express."""

    patterns: list[Pattern]  # distinct tokenized patterns that express a relation, P
    labels: Bools  # true where the pattern expresses the relation with $ARG1 as head, [P, R]
    others: list[Pattern]  # tokenized patterns that express none of the relations


def label_patterns(
    catalogue: RelationCatalogue, phrases: Mapping[str, Sequence[str]], none_patterns: Sequence[str]
) -> LabelledPatterns:
    """Phrases and names of the relations, of symmetric ones also mirrored, and ``none_patterns`` of no relation."""
    tokenizer = Tokenizer()
    relations_of: dict[Pattern, set[int]] = {}
    for row, entry in enumerate(catalogue.relation):
        names = (entry.name, *entry.aliases)[:_NAMES_AS_PATTERNS]
        texts = [*phrases.get(entry.name, ()), *(pattern for name in names for pattern in name_patterns(name))]
        for tokens in tokenize_patterns(texts, tokenizer, path=("phrases", entry.name)):
            for pattern in (tokens, mirrored(tokens)) if entry.symmetric else (tokens,):
                relations_of.setdefault(pattern, set()).add(row)
    labels = np.zeros((len(relations_of), len(catalogue.relation)), dtype=np.bool_)
    for row, relations in enumerate(relations_of.values()):
        labels[row, list(relations)] = True
    others = tokenize_patterns(none_patterns, tokenizer, path=("none_patterns",))
    both_ways = dict.fromkeys([*others, *map(mirrored, others)])
    return LabelledPatterns(
        patterns=list(relations_of),
        labels=labels,
        others=[pattern for pattern in both_ways if pattern not in relations_of],
    )


def compose(pattern: Pattern, other: Pattern, form: int) -> Pattern:
    """Puts a pattern into a sentence with another fact about the same head; ``form`` chooses one of four sentences.

    Returns the pattern itself if either pattern does not begin with the head and end with the tail.

    Example:
        >>> mass, speed = "$ARG1 has a mass of $ARG2".split(), "$ARG1 has a speed of $ARG2".split()
        >>> " ".join(compose(tuple(speed), tuple(mass), 0))
        '$ARG1 has a mass of $ENT and has a speed of $ARG2'
    """
    if any(p[0] != ARG1 or p[-1] != ARG2 for p in (pattern, other)):
        return pattern
    rest, clause = pattern[1:], (*other[1:-1], ENTITY)
    forms = (
        (ARG1, *clause, "and", *rest),
        (ARG1, *clause, ",", *rest),
        (ARG1, ",", "which", *clause, ",", *rest),
        (ARG1, "(", ENTITY, ")", *rest),
    )
    return forms[form % len(forms)]
