"""The catalogue of relations and patterns that are known to say them, or none.

Shape suffixes: P patterns, R relations.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from facets.config import Settings
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntityType
from facets.relations.patterns import ARG1, ARG2, ENTITY, mirrored, tokenize_patterns
from facets_lab.evaluation.files import read_table

# TOML gives the names of kinds.
_Kinds = Annotated[list[Annotated[EntityType, Field(strict=False)]], Field(min_length=1)]
_Name = Annotated[str, Field(min_length=1)]


class CatalogueEntry(Settings):
    """One relation; ``tail`` is the NAME of ``head``: capital(France, Paris).

    Attributes:
        name: Canonical name.
        aliases: Other names of the same relation.
        inverse_aliases: Names of the same relation with head and tail exchanged.
        head: What a head may be.
        tail: What a tail may be.
        symmetric: Holds both ways round.
        example: A sentence; the head stands in ``[..]``, the tail in ``{..}``.
        description: One line.
    """

    name: _Name
    aliases: list[_Name] = Field(default=[])
    inverse_aliases: list[_Name] = Field(default=[])
    head: _Kinds
    tail: _Kinds
    symmetric: bool = False
    example: str
    description: str

    @model_validator(mode="after")
    def _check(self) -> Self:
        marks = [self.example.count(mark) for mark in "[]{}"]
        self.require("example", marks == [1, 1, 1, 1], "a sentence with one [head] and one {tail}")
        return self


class RelationCatalogue(Settings):
    """All relations of a catalogue (``lab/configs/relations-en.toml``); every name and alias stands there once.

    Example:
        >>> entry = {"name": "capital", "inverse_aliases": ["capitalOf"], "head": ["place"], "tail": ["place"]}
        >>> entry |= {"example": "{Paris} is the capital of [France].", "description": "Where a government is."}
        >>> RelationCatalogue.from_dict({"relation": [entry]}).canonical("capitalOf")
        ('capital', True)
    """

    relation: Annotated[list[CatalogueEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: set[str] = set()
        for entry in self.relation:
            for name in (entry.name, *entry.aliases, *entry.inverse_aliases):
                self.require("relation", name not in seen, f"one meaning for each name, {name!r} has two")
                seen.add(name)
        return self

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a TOML file with one ``[[relation]]`` each.

        Raises:
            ConfigError: It cannot be read, is not TOML, or an entry breaks its rule.
        """
        return cls.from_toml(path)

    def meanings(self) -> dict[str, tuple[str, bool]]:
        """The canonical relation behind each name and alias, and whether head and tail are exchanged."""
        meanings: dict[str, tuple[str, bool]] = {}
        for entry in self.relation:
            meanings |= dict.fromkeys([entry.name, *entry.aliases], (entry.name, False))
            meanings |= dict.fromkeys(entry.inverse_aliases, (entry.name, True))
        return meanings

    def canonical(self, name: str) -> tuple[str, bool]:
        """As ``meanings`` of one name; unknown names mean themselves."""
        return self.meanings().get(name, (name, False))

    def canonical_triples(self, triples: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Triples head, tail, relation under canonical names, each once; symmetric ones as they are given."""
        meanings = self.meanings()
        result = []
        for head, tail, name in triples:
            relation, is_inverse = meanings.get(name, (name, False))
            result.append((tail, head, relation) if is_inverse else (head, tail, relation))
        return list(dict.fromkeys(result))


_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PREPOSITIONS = frozenset("at by for from in of on to with".split())
_SPACES = re.compile(r"\s+")


def read_phrases(path: Path) -> dict[str, list[str]]:
    """Phrases by relation: ``relation<TAB>pattern`` a line.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    phrases: dict[str, list[str]] = {}
    for relation, pattern in read_table(path, {"relation": str, "pattern": _pattern}):
        phrases.setdefault(relation, []).append(pattern)
    return phrases


def _pattern(text: str) -> str:
    tokens = text.split()
    if tokens.count(ARG1) != 1 or tokens.count(ARG2) != 1:
        raise ValueError(f"expected {ARG1} and {ARG2} once")
    return " ".join(tokens)


def phrase_patterns(phrases: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Phrases by relation -> relations by pattern as it is mined: lower-case tokens joined by blanks.

    Example:
        >>> phrase_patterns({"author": ["$ARG2 , who wrote $ARG1"], "creator": ["$ARG2, who wrote $ARG1"]})
        {'$ARG2 , who wrote $ARG1': ['author', 'creator']}
    """
    flat = [(relation, phrase) for relation, own in phrases.items() for phrase in own]
    relations: dict[str, list[str]] = {}
    for (relation, _), tokens in zip(flat, tokenize_patterns([p for _, p in flat], Tokenizer()), strict=True):
        own = relations.setdefault(" ".join(tokens), [])
        if relation not in own:
            own.append(relation)
    return relations


def name_words(relation: str) -> list[str]:
    """Lower-case words of a relation's name.

    Example:
        >>> name_words("leaderName"), name_words("associatedBand/associatedMusicalArtist")[:3]
        (['leader', 'name'], ['associated', 'band', 'associated'])
    """
    return [word.lower() for word in _CAMEL.findall(relation.replace("_", " "))]


def name_patterns(relation: str) -> list[str]:
    """Patterns that say a relation by the words of its name.

    Example:
        >>> name_patterns("leaderName")[0], name_patterns("worksFor")
        ("$ARG1 's leader name is $ARG2", ['$ARG1 works for $ARG2'])
    """
    patterns = []
    for alternative in re.split(r"[/(]", relation):
        own = name_words(alternative)
        words = " ".join(own)
        # ``worksFor`` says a relation as a verb does; nobody is "the works for of" anybody.
        if own and own[-1] not in _PREPOSITIONS:
            patterns += [
                f"{ARG1} 's {words} is {ARG2}",
                f"{ARG1} has the {words} {ARG2}",
                f"{ARG2} is the {words} of {ARG1}",
            ]
        if own:
            patterns.append(f"{ARG1} {words} {ARG2}")
    return [_SPACES.sub(" ", pattern) for pattern in dict.fromkeys(patterns)]


_NAMES_OF_A_RELATION = 3  # itself and two aliases are put into words


@dataclass(frozen=True, slots=True)
class LabelledPatterns:
    """Patterns and what they say.

    Attributes:
        relations: Canonical names, ``R``.
        is_symmetric: Relations that hold both ways round, ``[R]``.
        patterns: Distinct tokenized patterns that say a relation, ``P``.
        labels: ``[P, R]``, True where the pattern says the relation with ``$ARG1`` as head.
        others: Tokenized patterns that say none of the relations.
    """

    relations: tuple[str, ...]
    is_symmetric: NDArray[np.bool_]
    patterns: list[tuple[str, ...]]
    labels: NDArray[np.bool_]
    others: list[tuple[str, ...]]


def label_patterns(
    catalogue: RelationCatalogue, phrases: Mapping[str, Sequence[str]], none_patterns: Sequence[str]
) -> LabelledPatterns:
    """Phrases and names of the relations as patterns; those of symmetric relations also the other way round.

    Args:
        catalogue: The relations.
        phrases: Patterns by canonical relation.
        none_patterns: Patterns that say none of them; they count both ways round.

    Raises:
        InvalidInputError: A pattern lacks an argument or has one twice.
    """
    tokenizer = Tokenizer()
    relations_of: dict[tuple[str, ...], set[int]] = {}
    for place, entry in enumerate(catalogue.relation):
        names = (entry.name, *entry.aliases)[:_NAMES_OF_A_RELATION]
        said = [*phrases.get(entry.name, ()), *(pattern for name in names for pattern in name_patterns(name))]
        for tokens in tokenize_patterns(said, tokenizer, path=("phrases", entry.name)):
            for pattern in (tokens, mirrored(tokens)) if entry.symmetric else (tokens,):
                relations_of.setdefault(pattern, set()).add(place)
    labels = np.zeros((len(relations_of), len(catalogue.relation)), dtype=np.bool_)
    for row, places in enumerate(relations_of.values()):
        labels[row, list(places)] = True
    others = tokenize_patterns(none_patterns, tokenizer, path=("none_patterns",))
    both_ways = dict.fromkeys([*others, *map(mirrored, others)])
    return LabelledPatterns(
        relations=tuple(entry.name for entry in catalogue.relation),
        is_symmetric=np.array([entry.symmetric for entry in catalogue.relation]),
        patterns=list(relations_of),
        labels=labels,
        others=[pattern for pattern in both_ways if pattern not in relations_of],
    )


def composed(pattern: tuple[str, ...], other: tuple[str, ...], form: int) -> tuple[str, ...]:
    """A pattern beside another fact of the same head, whose tail is an entity like any other.

    Args:
        pattern: What is said of the arguments.
        other: What is said beside it.
        form: Which of the forms of a sentence, counted from 0 and in turn.

    Returns:
        The pattern alone where either does not begin with the head and end with the tail.

    Example:
        >>> mass, speed = "$ARG1 has a mass of $ARG2".split(), "$ARG1 has a speed of $ARG2".split()
        >>> " ".join(composed(tuple(speed), tuple(mass), 0))
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
